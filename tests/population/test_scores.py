"""A member's score, from the episodes that its run has logged."""

import math
import pathlib
from typing import Any

import numpy as np
import pytest

from environments.scores import SCORES
from population import scores
from run_folder import log_reader
from run_folder.layout import RunFolder
from run_folder.log_reader import Log
from tests.population.populations import log_episodes

GAMES = ("atari:pong", "atari:boxing", "atari:qbert")


def _game(number: int, normalised: float) -> tuple[int, str, float]:
    """An episode of a game that has this human-normalised score."""
    random, human = (SCORES[GAMES[number]][name] for name in ("random", "human"))
    return 1, GAMES[number], random + normalised * (human - random)


@pytest.fixture
def run(tmp_path: pathlib.Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


MEAN_OF_TWO = (90 * 0.5 - 10) / 100
CATCH, RECALL, MIXED = ("catch",), ("catch", "memory:recall"), ("atari:pong", "memory:recall")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("tasks", "logged", "since", "score"),
    [
        (CATCH, [], 0, math.nan),  # the first line alone
        # The last hundred episodes count, of each task.
        (CATCH, [(1, "catch", -1.0)] * 50 + [(2, "catch", 0.5)] * 90, 0, MEAN_OF_TWO),
        (CATCH, [(1, "catch", -1.0)] * 50 + [(2, "catch", 0.5)] * 100, 0, 0.5),
        # Plain returns are averaged over the tasks that were played, however often each was.
        ((*RECALL, "catch:other"), [(1, "catch", 1.0)] * 9 + [(1, RECALL[1], 4.0)], 0, 2.5),
        # Human-normalised scores are capped before that; who was not played is left out.
        (GAMES, [_game(0, 0.2), _game(1, 4.0), _game(2, 0.6)], 0, (0.2 + 1.0 + 0.6) / 3),
        # Of a mixed suite the tasks with human scores count.
        (MIXED, [(1, "memory:recall", 100.0)], 0, math.nan),
        (MIXED, [(1, "memory:recall", 100.0), _game(0, 0.5)], 0, 0.5),
        # Episodes of weights that were given up do not, nor those that a killed run logged in vain.
        (CATCH, [(100, "catch", -1.0), (200, "catch", 1.0)], 99, 0.0),
        (CATCH, [(100, "catch", -1.0), (200, "catch", 1.0)], 100, 1.0),
        (CATCH, [(100, "catch", -1.0), (200, "catch", 1.0)], 200, math.nan),
        (CATCH, [(100, "catch", 0.0), (900, "catch", 1.0), (500, "catch", 0.5)], 0, 0.25),
    ],
)
def test_the_score_of_a_member_is_what_its_last_episodes_returned(
    tasks: tuple[str, ...],
    logged: list[tuple[int, str, float]],
    since: int,
    score: float,
    run: RunFolder,
) -> None:
    assert math.isnan(scores.score(run, tasks, since))
    assert scores.last_logged(run) == 0
    log_episodes(run, logged)
    assert scores.score(run, tasks, since) == pytest.approx(score, nan_ok=True)
    assert scores.is_normalised(tasks) is any(task in GAMES for task in tasks)
    assert scores.last_logged(run) == (logged[-1][0] if logged else 0)


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
        for step in range(8_000)
    ]
    log_episodes(run, returns)
    whole = scores.episodes(run)
    monkeypatch.setattr(scores, "_FIRST_BYTES", 1_000)
    monkeypatch.setattr(log_reader, "read", read)
    for tasks, since, most in (
        (["catch"], 0, 500),
        (["catch", "memory:recall"], 0, 7_000),
        (["catch"], 7_990, 300),
        (["catch", "memory:recall"], 7_500, 2_000),
        (["catch", "memory:unplayed"], 0, 8_000),
    ):
        rows.clear()
        assert scores.recent_returns(run, tasks, since) == pytest.approx(
            scores.recent_of(whole, tasks, since), nan_ok=True
        )
        assert rows[-1] <= most
    assert rows[-1] == 8_000  # as one was never played
    rows.clear()
    assert scores.last_logged(run) == 7_999
    assert rows[0] < 100
