"""Logs are read as they are left: cut short, resumed, with what no episode defined."""

import pathlib

import numpy as np
import pytest

from run_folder import log_reader

HEADER = "actor_steps,walltime,task,episode_return\n"


def _read(tmp_path: pathlib.Path, text: str) -> log_reader.Log:
    path = tmp_path / "log.csv"
    path.write_text(text)
    return log_reader.read(path, texts=("task",))


def test_columns_of_numbers_and_of_text(tmp_path: pathlib.Path) -> None:
    log = _read(tmp_path, HEADER + "10,1.5,catch,-1\n20,2.5,atari:pong,nan\n30,3.5,catch,2e3\n")
    assert len(log) == 3
    np.testing.assert_array_equal(log["actor_steps"], [10, 20, 30])
    np.testing.assert_array_equal(log["episode_return"], [-1, np.nan, 2_000])
    assert log.texts["task"].tolist() == ["catch", "atari:pong", "catch"]
    steps, returns = log.defined("actor_steps", "episode_return")
    assert (steps.tolist(), returns.tolist()) == ([10, 30], [-1, 2_000])
    assert log.last("episode_return") == 2_000
    assert np.isnan(log["absent"]).all()
    assert np.isnan(log.last("absent"))
    assert log.where(log.texts["task"] == "catch")["walltime"].tolist() == [1.5, 3.5]


@pytest.mark.parametrize(
    "broken", ["20,2.5,ca", "20,2.5,catch,1,1\n", "20,,catch,1\n", "x,2,catch,1\n", "\n"]
)
def test_a_broken_row_is_left_out(broken: str, tmp_path: pathlib.Path) -> None:
    log = _read(tmp_path, f"{HEADER}10,1.5,catch,-1\n{broken}")
    assert log["actor_steps"].tolist() == [10]


@pytest.mark.parametrize("text", ["", HEADER, "actor_st"])
def test_a_young_log_has_no_rows(text: str, tmp_path: pathlib.Path) -> None:
    log = _read(tmp_path, text)
    assert len(log) == 0
    assert [len(column) for column in log.defined("actor_steps", "episode_return")] == [0, 0]
    assert np.isnan(log.last("actor_steps"))


def test_a_log_that_is_not_there_has_no_rows(tmp_path: pathlib.Path) -> None:
    assert len(log_reader.read(tmp_path / "log.csv")) == 0


def test_what_a_resume_undid_is_left_out(tmp_path: pathlib.Path) -> None:
    """Killed at 40 steps, gone on from a checkpoint at 20; killed at 35, gone on from 30."""
    steps = [10, 20, 30, 40, 25, 30, 35, 32, 50]
    log = _read(
        tmp_path, HEADER + "".join(f"{s},{s / 10},catch,{i}\n" for i, s in enumerate(steps))
    )
    assert log["actor_steps"].tolist() == [10, 20, 25, 30, 32, 50]
    assert log["episode_return"].tolist() == [0, 1, 4, 5, 7, 8]


def test_rows_stand_unless_a_later_one_counts_less() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.integers(0, 30, size=(2, 12)).astype(float)
        naive = [all(a[i] <= a[j] and b[i] <= b[j] for j in range(i, 12)) for i in range(12)]
        assert log_reader.standing([a, b]).tolist() == naive
    assert not all(naive)
    undefined = np.array([1, np.nan, 3, 2, 4])
    assert log_reader.standing([undefined]).tolist() == [True, False, False, True, True]


def test_rows_of_one_moment_all_stand() -> None:
    assert log_reader.standing([np.array([5.0, 5.0, 5.0])]).all()


def test_the_end_of_a_log_is_the_end_of_all_its_rows(tmp_path: pathlib.Path) -> None:
    steps = [10, 20, 30, 40, 25, 30, 35, 32, 50]
    text = HEADER + "".join(f"{s},{s / 10},catch,{i}\n" for i, s in enumerate(steps))
    whole = _read(tmp_path, text)
    numbers = set()
    for last_bytes in range(1, len(text) + 9):
        log = log_reader.read(tmp_path / "log.csv", texts=("task",), last_bytes=last_bytes)
        numbers.add(len(log))
        if len(log):
            for name in ("actor_steps", "walltime", "episode_return"):
                assert log[name].tolist() == whole[name][-len(log) :].tolist()
            assert set(log.texts["task"]) == {"catch"}
    assert numbers == set(range(len(whole) + 1))


@pytest.mark.parametrize(("there", "wanted"), [(0, 5), (3, 5), (50, 50), (1_000, 20), (1_000, 1)])
def test_rows_are_spread_over_a_log(there: int, wanted: int, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("actor_steps,loss\n" + "".join(f"{10**6 + i},1\n" for i in range(there)))
    steps = log_reader.read(path, most_rows=wanted)["actor_steps"] - 10**6
    assert len(steps) == min(there, wanted)
    assert np.abs(steps - np.arange(len(steps)) * there / max(len(steps), 1)).max(initial=0) <= 1
