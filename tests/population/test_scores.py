"""A member's score, from the episodes that its run has logged."""

import math
import pathlib
from typing import Any

import numpy as np
import pytest

from environments.scores import SCORES
from population import scores
from run_folder import log_reader
from run_folder.episodes import RECENT_EPISODES
from run_folder.layout import RunFolder
from run_folder.log_reader import Log
from tests.population.populations import log_episodes

GAMES = ("atari:pong", "atari:boxing", "atari:qbert")


def _return(task: str, normalised: float) -> float:
    """The return of a task that has this human-normalised score."""
    random, human = SCORES[task]["random"], SCORES[task]["human"]
    return random + normalised * (human - random)


@pytest.fixture
def run(tmp_path: pathlib.Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def test_a_member_that_has_not_played_has_no_score(run: RunFolder) -> None:
    assert math.isnan(scores.score(run, ["catch"]))
    assert math.isnan(scores.score(run, GAMES))
    log_episodes(run, [])  # the first line alone
    assert math.isnan(scores.score(run, ["catch"]))
    assert math.isnan(scores.score(run, GAMES))


def test_a_single_task_counts_its_last_episodes(run: RunFolder) -> None:
    log_episodes(run, [(1, "catch", -1.0)] * 50)
    assert scores.score(run, ["catch"]) == -1.0
    log_episodes(run, [(2, "catch", 0.5)] * (RECENT_EPISODES - 10))
    assert scores.score(run, ["catch"]) == pytest.approx((90 * 0.5 - 10) / 100)
    log_episodes(run, [(3, "catch", 0.25)] * RECENT_EPISODES)
    assert scores.score(run, ["catch"]) == 0.25


def test_plain_returns_are_averaged_over_the_tasks_that_were_played(run: RunFolder) -> None:
    tasks = ("catch", "catch:large_rewards", "memory:recall")
    log_episodes(run, [(1, "catch", 1.0)] * 9 + [(1, "catch:large_rewards", 4.0)])
    assert scores.score(run, tasks) == 2.5  # of two tasks, however often each was played


def test_human_normalised_scores_are_capped_before_they_are_averaged(run: RunFolder) -> None:
    normalised = dict(zip(GAMES, (0.2, 4.0, 0.6), strict=True))
    log_episodes(run, [(1, task, _return(task, value)) for task, value in normalised.items()])
    assert scores.score(run, GAMES) == pytest.approx((0.2 + 1.0 + 0.6) / 3)


@pytest.mark.filterwarnings("error")
def test_a_game_that_was_not_played_yet_is_left_out(run: RunFolder) -> None:
    log_episodes(run, [(1, "atari:pong", _return("atari:pong", 0.2))])
    log_episodes(run, [(1, "atari:qbert", _return("atari:qbert", 0.4))])
    assert scores.score(run, GAMES) == pytest.approx(0.3)


def test_of_a_mixed_suite_the_tasks_with_human_scores_count(run: RunFolder) -> None:
    tasks = ("atari:pong", "memory:recall")
    assert scores.is_normalised(tasks)
    assert not scores.is_normalised(["catch", "memory:recall"])
    log_episodes(run, [(1, "memory:recall", 100.0)])
    assert math.isnan(scores.score(run, tasks))
    log_episodes(run, [(2, "atari:pong", _return("atari:pong", 0.5))])
    assert scores.score(run, tasks) == pytest.approx(0.5)


def test_episodes_of_weights_that_were_given_up_do_not_count(run: RunFolder) -> None:
    log_episodes(run, [(100, "catch", -1.0), (200, "catch", -1.0), (200, "memory:recall", 5.0)])
    assert scores.score(run, ["catch"], since=99) == -1.0
    assert math.isnan(scores.score(run, ["catch"], since=200))
    log_episodes(run, [(201, "catch", 1.0)])
    assert scores.score(run, ["catch"], since=200) == 1.0
    returns = scores.recent_returns(run, ["catch", "memory:recall"], since=200)
    assert returns["catch"] == 1.0
    assert math.isnan(returns["memory:recall"])


def test_of_a_long_log_no_more_is_read_than_decides(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*args: Any, last_bytes: int | None, read: Any = log_reader.read, **kwargs: Any) -> Log:
        log: Log = read(*args, last_bytes=last_bytes, **kwargs)
        rows.append(len(log))
        return log

    rows: list[int] = []
    rng = np.random.default_rng(0)
    returns = [
        (step, "catch" if rng.random() < 0.95 else "memory:recall", float(rng.normal()))
        for step in range(20_000)
    ]
    log_episodes(run, returns)
    whole = scores.episodes(run)
    monkeypatch.setattr(scores, "_FIRST_BYTES", 1_000)
    monkeypatch.setattr(log_reader, "read", read)
    for tasks, since, most in (
        (["catch"], 0, 500),
        (["catch", "memory:recall"], 0, 7_000),
        (["catch"], 19_990, 300),
        (["catch", "memory:recall"], 19_500, 2_000),
        (["catch", "memory:unplayed"], 0, 20_000),
    ):
        rows.clear()
        assert scores.recent_returns(run, tasks, since) == pytest.approx(
            scores.recent_of(whole, tasks, since), nan_ok=True
        )
        assert rows[-1] <= most
    assert rows[-1] == 20_000  # as one was never played
    rows.clear()
    assert scores.last_logged(run) == 19_999
    assert rows[0] < 100


def test_an_end_that_a_crash_left_without_rows_is_passed_over(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_episodes(run, [(1, "catch", 0.5)])
    with run.log("episodes").open("a") as file:
        file.write("x" * 2_000)
    monkeypatch.setattr(scores, "_FIRST_BYTES", 1_000)
    assert scores.score(run, ["catch"]) == 0.5


def test_a_member_that_logged_nothing_has_made_no_steps(run: RunFolder) -> None:
    assert scores.last_logged(run) == 0
    log_episodes(run, [])
    assert scores.last_logged(run) == 0


def test_what_a_killed_run_logged_in_vain_does_not_count(run: RunFolder) -> None:
    log_episodes(run, [(100, "catch", 0.0), (900, "catch", 1.0)])
    log_episodes(run, [(500, "catch", 0.5)])  # it went on from 400
    assert scores.score(run, ["catch"]) == 0.25
