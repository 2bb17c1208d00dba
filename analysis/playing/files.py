"""A run's evaluations on disk: one CSV file each, one row for each episode.

    evaluations/r2d2-1200.csv               agent and update
    evaluations/r2d2-1200-2.csv             the same again: nothing is ever overwritten
    evaluations/r2d2-1200-epsilon0.05.csv   played otherwise than the agent is evaluated
    evaluations/r2d2-1200-memory8.csv

A task's rows appear together, once all of its episodes have ended: of an evaluation that is cut
short, whole tasks are there, never only the short episodes of one. Columns are the fields of `Row`;
an empty cell is None.
"""

import csv
import dataclasses
import io
import itertools
import pathlib
import re
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from run_folder import disk, log_reader, texts
from run_folder.layout import RunFolder

if TYPE_CHECKING:
    from agents.environment_loop import Episode


@dataclasses.dataclass(frozen=True)
class Played:
    """Everything that an evaluation's numbers depend on."""

    agent: str  # its name
    learner_steps: int  # updates made when its parameters were saved
    actor_steps: int  # actor steps counted then
    walltime: float  # seconds that the run had lasted then
    # Probability of a random action; None where actions are sampled from the policy.
    epsilon: float | None
    memory_steps: int | None  # inputs that the agent remembers; None is no limit
    seed: int  # of environments and policy


@dataclasses.dataclass(frozen=True)
class Row(Played):
    """One episode."""

    task: str  # of a level with a held-out twin, the twin
    episode: int  # from 0, for each task
    episode_return: float  # undiscounted, unclipped
    episode_length: int  # actor steps


_COLUMNS = typing.get_type_hints(Row)  # in the order in which `File` writes a row's cells


class File:
    """An evaluation's file, which nobody else writes. It is made with its first rows.

    Args:
      run_dir: the run folder.
      played: the evaluation.
    """

    def __init__(self, run_dir: pathlib.Path, played: Played) -> None:
        self._folder = RunFolder(run_dir).evaluations
        self._played = played
        self.path: pathlib.Path | None = None

    def append(self, task: str, episodes: "Sequence[Episode]") -> None:
        """Adds all episodes of one task."""
        if self.path is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self.path = vacant(self._folder, name(self._played), ".csv")
        how, text = dataclasses.astuple(self._played), io.StringIO()
        writer = csv.writer(text)
        for i, episode in enumerate(episodes):
            writer.writerow([*how, task, i, episode.episode_return, episode.length])
        disk.append(self.path, text.getvalue(), header=",".join(_COLUMNS) + "\r\n")


def read(path: pathlib.Path) -> list[Row]:
    """The rows of a file, in the order in which they were written.

    Raises:
      SettingsError: it cannot be read, or holds what no evaluation writes.
    """
    with texts.reading(path):
        with path.open(newline="", errors="replace") as file:
            lines = list(file)
        if lines and not lines[-1].endswith("\n"):  # a crash leaves half a row
            del lines[-1]
        header, *rows = log_reader.rows(lines) if lines else [list(_COLUMNS)]
        if header != list(_COLUMNS):
            wanted, got = ",".join(_COLUMNS), ",".join(header)
            raise ValueError(f"line 1 must be {wanted}, got {got!r}")
        return [_parse(number, row) for number, row in enumerate(rows, 2)]


def read_all(run_dir: pathlib.Path) -> dict[str, list[Row]]:
    """Every evaluation of a run: file name without `.csv` -> rows.

    They are in the order of their updates, and those of one update in which they were made.
    """
    paths = sorted(RunFolder(run_dir).evaluations.glob("*.csv"), key=_numbered)
    return {path.stem: read(path) for path in paths}


def _numbered(path: pathlib.Path) -> list[tuple[str, int]]:
    """A name's texts, each with the number after it: r2d2-7-10 comes after r2d2-7 and r2d2-7-2."""
    parts = re.split(r"(\d+)", path.stem)
    pairs = itertools.zip_longest(parts[::2], parts[1::2], fillvalue="0")
    return [(text, int(number)) for text, number in pairs]


def returns(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Each task's returns, `[episodes]`."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row.task, []).append(row.episode_return)
    return {task: np.asarray(values) for task, values in found.items()}


def _parse(number: int, cells: Sequence[str]) -> Row:
    try:
        if len(cells) != len(_COLUMNS):
            raise ValueError(f"there must be {len(_COLUMNS)} cells, got {len(cells)}")
        typed = zip(_COLUMNS.items(), cells, strict=True)
        return Row(**{name: texts.value_of(name, cell or "none", of) for (name, of), cell in typed})
    except ValueError as error:
        raise ValueError(f"of line {number}, {error}") from None


def name(played: Played) -> str:
    """The name of a file of such an evaluation, without a suffix."""
    return "-".join([played.agent, str(played.learner_steps), *variation(played)])


def variation(played: Played) -> list[str]:
    """The ways in which an agent did not act as it is usually evaluated, as words of a name."""
    parts = []
    if played.epsilon:
        parts.append(f"epsilon{played.epsilon:g}")
    if played.memory_steps is not None:
        parts.append(f"memory{played.memory_steps}")
    return parts


def vacant(folder: pathlib.Path, name: str, suffix: str) -> pathlib.Path:
    """A path at which there is no file: of this name, or else of this name with a number."""
    numbers = itertools.count(2)
    path = folder / f"{name}{suffix}"
    while path.exists():
        path = folder / f"{name}-{next(numbers)}{suffix}"
    return path
