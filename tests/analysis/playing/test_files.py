"""Evaluations are written into a run folder, and read again."""

import dataclasses
import pathlib
from typing import Any

import pytest

from agents.environment_loop import Episode
from analysis.playing import files
from analysis.playing.files import Played
from run_folder.settings import SettingsError
from tests.run_folder.filling import fill

PLAYED = Played("r2d2", 1200, 60_000, 7.25, epsilon=0.0, memory_steps=None, seed=3)
EPISODES = [Episode(0, -1.5, 9), Episode(0, 21.0, 1), Episode(1, 0.1, 27_000)]


def test_what_is_written_is_read(tmp_path: pathlib.Path) -> None:
    played = dataclasses.replace(PLAYED, memory_steps=8)
    file = files.File(tmp_path, played)
    file.append("atari:pong", EPISODES)
    file.append("atari:breakout", EPISODES[:1])
    assert file.path is not None
    rows = files.read(file.path)
    assert [(r.task, r.episode, r.episode_return, r.episode_length) for r in rows] == [
        ("atari:pong", 0, -1.5, 9),
        ("atari:pong", 1, 21.0, 1),
        ("atari:pong", 2, 0.1, 27_000),
        ("atari:breakout", 0, -1.5, 9),
    ]
    for row in rows:
        assert vars(row) == vars(row) | vars(played)


def test_an_agent_without_epsilon_has_none_in_its_file(tmp_path: pathlib.Path) -> None:
    file = files.File(tmp_path, dataclasses.replace(PLAYED, epsilon=None))
    file.append("catch", EPISODES)
    (rows,) = files.read_all(tmp_path).values()
    assert {(row.epsilon, row.memory_steps) for row in rows} == {(None, None)}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "r2d2-1200.csv"),
        ({"epsilon": None}, "r2d2-1200.csv"),
        ({"epsilon": 0.05}, "r2d2-1200-epsilon0.05.csv"),
        ({"memory_steps": 8}, "r2d2-1200-memory8.csv"),
        ({"epsilon": 0.5, "memory_steps": 1}, "r2d2-1200-epsilon0.5-memory1.csv"),
    ],
)
def test_files_are_named_by_what_was_played(
    tmp_path: pathlib.Path, changes: dict[str, Any], name: str
) -> None:
    file = files.File(tmp_path, dataclasses.replace(PLAYED, **changes))
    file.append("catch", EPISODES)
    assert file.path == tmp_path / "evaluations" / name


def test_nothing_is_overwritten(tmp_path: pathlib.Path) -> None:
    names = ["r2d2-1200", *(f"r2d2-1200-{number}" for number in range(2, 12))]
    for count in range(len(names)):
        file = files.File(tmp_path, PLAYED)
        for _ in range(count):
            file.append("catch", EPISODES[:1])
        file.append("catch", EPISODES[:1])
    earlier = files.File(tmp_path, dataclasses.replace(PLAYED, learner_steps=900))
    earlier.append("catch", EPISODES[:1])
    found = {name: len(rows) for name, rows in files.read_all(tmp_path).items()}
    assert list(found) == ["r2d2-900", *names]  # as they were made
    assert [found[name] for name in names] == list(range(1, len(names) + 1))


def test_a_full_disk_leaves_no_part_of_a_task(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.File(tmp_path, PLAYED)
    file.append("atari:pong", EPISODES)
    assert file.path is not None
    before = file.path.read_bytes()
    with monkeypatch.context() as full:
        fill(full, 60)
        with pytest.raises(OSError, match="No space left"):
            file.append("catch", EPISODES)
    assert file.path.read_bytes() == before
    file.append("catch", EPISODES)
    assert [row.task for row in files.read(file.path)] == ["atari:pong"] * 3 + ["catch"] * 3


def test_an_evaluation_that_ended_before_its_first_task_leaves_nothing(
    tmp_path: pathlib.Path,
) -> None:
    assert files.File(tmp_path, PLAYED).path is None
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_never_evaluated_has_no_evaluations(tmp_path: pathlib.Path) -> None:
    assert files.read_all(tmp_path) == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("agent,", "who,", "line 1 must be agent,learner_steps,"),
        ("catch,0,", "", "of line 2, there must be 11 cells, got 9"),
        ("1200", "many", "of line 2, learner_steps must be of type int, got 'many'"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: pathlib.Path, old: str, new: str, said: str) -> None:
    file = files.File(tmp_path, PLAYED)
    file.append("catch", EPISODES[:1])
    assert file.path is not None
    file.path.write_text(file.path.read_text().replace(old, new))
    with pytest.raises(SettingsError) as error:
        files.read(file.path)
    assert str(error.value).startswith(f"{file.path} cannot be read: {said}")
