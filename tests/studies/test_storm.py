"""studies.storm: when it strikes, what it calls a broken promise, and some minutes of it."""

import pathlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from run_folder.layout import RunFolder
from studies import storm
from studies.storm import Outcome

KEPT = Outcome(
    code=0,
    seconds=300.0,
    counts={},
    struck=[],
    mended=3,
    begun_again=1,
    redone=[12.0, 17.5],
    stood=[0.0, 19.0],
    longest_save=2.0,
    repeated=[],
    left=[],
)


def test_signals_come_as_often_as_was_asked_and_follow_from_the_seed() -> None:
    found, again = (list(storm._moments(random.Random(1), 60.0, 36_000.0, 60.0)) for _ in range(2))
    assert found == again == sorted(found)
    assert all(60.0 < moment < 36_000.0 for moment in found)
    assert 540 < len(found) < 660  # 599 are expected, give or take 24


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        (dict(redone=[19.9]), []),  # an interval of 15 s, a save of 2, and 3 unseen
        (dict(redone=[1.0, 20.1]), ["It redid 20.1 s."]),
        (dict(longest_save=3.0, redone=[20.1]), []),
        (dict(code=1), ["It ended with code 1."]),
        (dict(repeated=["actor.csv"]), ["A step is logged twice in actor.csv."]),
        (dict(redone=[], left=["a process"]), ["It left a process."]),
    ],
)
def test_what_is_a_broken_promise(changes: dict[str, Any], said: list[str]) -> None:
    assert storm.broken(KEPT._replace(**changes)) == said


def test_what_was_played_twice_is_told_from_what_nobody_played() -> None:
    counted = storm.Counts()
    for second in range(20):  # saved at 12 s
        counted.take(dict(walltime=second, actor_steps=100 * second))
    for second in range(20, 38):  # nobody sees yet that the learner stands still
        counted.take(dict(walltime=second, actor_steps=1900))
    for second in range(12, 30):
        counted.take(dict(walltime=second, actor_steps=100 * second))
    for second in range(27, 31):  # what was written last may not be seen: this is no return
        counted.take(dict(walltime=second, actor_steps=100 * second))
    for second in range(20, 22):  # a kill, at once
        counted.take(dict(walltime=second, actor_steps=100 * second))
    assert counted.redone == [7.0, 10.0]
    assert counted.stood == [18.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ("1,5,0.1\n2,5,0.2\n", []),
        ("1,5,0.1\n2,4,0.2\n", ["actor.csv (actor_steps)"]),
        ("2,5,0.1\n1,6,0.2\n", ["actor.csv (learner_steps)"]),
        ("", []),
    ],
)
def test_logs_that_go_back_are_found(tmp_path: pathlib.Path, rows: str, found: list[str]) -> None:
    folder = RunFolder(tmp_path)
    folder.logs.mkdir()
    folder.log("actor").write_text(f"learner_steps,actor_steps,walltime\n{rows}")
    assert storm.repeated(folder) == found


_SLOW = """
import time
import gymnasium

class Slow(gymnasium.Wrapper):
    def step(self, action):
        time.sleep(0.001)
        return super().step(action)

def make():
    return Slow(gymnasium.make("CartPole-v1"))
"""


@pytest.mark.launchpad
@pytest.mark.slow
@pytest.mark.parametrize("agent", ["r2d2", "r2d2,impala"])
def test_a_storm(
    agent: str,
    tmp_path: pathlib.Path,
    write_module: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Strikes every ten seconds, and an environment so slow that there is time for some."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = storm.storm(
        agent,
        tmp_path / "run",
        minutes=5.0,
        per_hour=360.0,
        steps=200_000,  # over 100 s, where 16 copies take turns at 1 ms
        seed=1,
        env=f"{write_module(_SLOW)}:make",
    )
    assert outcome.mended >= 3
    assert storm.broken(outcome) == []
