"""Populations as they are typed, of which none is trained."""

import pathlib

import pytest

from launch import population
from launch.members import loop
from launch.members.view import View
from population.folder import PopulationFolder
from population.settings import Population
from tests.launch import typed

NEW = ("--agent=impala", "--env=catch", "--members=4")
SWEEP = "--sweep=impala.learning_rate=log:1e-4:1e-2"
APART = "--evolve=none"


class NoLoop:
    """Stands for what trains a population.

    Attributes:
      trained: the populations that were trained, each with its members and its folder.
      well: whether all goes well.
      values: the scores in the end.
      raises: what happens in its place.
      finished: whether every member has reached a limit.
    """

    trained: list[tuple[Population, list[int], pathlib.Path]]
    well: bool
    values: dict[int, float]
    raises: BaseException | None
    finished: bool

    def __init__(
        self, population: Population, folder: PopulationFolder, members: range, view: View
    ) -> None:
        self.trained.append((population, list(members), folder.path))

    def run(self) -> bool:
        if self.raises is not None:
            raise self.raises
        return self.well

    def has_finished(self) -> bool:
        return self.finished

    def scores(self) -> dict[int, float]:
        return self.values


def instead_of_training(monkeypatch: pytest.MonkeyPatch) -> type[NoLoop]:
    """Has a stand-in train populations from now on; returns it."""
    NoLoop.trained, NoLoop.well, NoLoop.values, NoLoop.raises = [], True, {}, None
    NoLoop.finished = False
    monkeypatch.setattr(loop, "Loop", NoLoop)
    return NoLoop


def run(*argv: str) -> int:
    """The exit code of `launch.population` with these arguments."""
    return typed.run(population.main, *argv)


def refused(capsys: pytest.CaptureFixture[str], folder: pathlib.Path, *argv: str) -> str:
    """The sentence by which arguments are refused, with nothing trained and a folder as it was."""
    before = typed.contents(folder)
    capsys.readouterr()
    assert run(*argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1 or "FATAL" in err  # absl's sentences have a heading
    assert typed.contents(folder) == before
    assert not NoLoop.trained
    return err
