"""What is kept of the episodes that end."""

import math
import pathlib

from run_folder import episodes
from run_folder.episodes import Episodes

TASKS = ("catch", "catch:large_rewards")


def test_recent_returns_are_those_of_each_task_s_last_hundred_episodes(
    tmp_path: pathlib.Path,
) -> None:
    collected = Episodes(tmp_path, TASKS)
    assert all(math.isnan(value) for value in collected.recent_returns().values())
    collected.add([(0, 0, -5.0, 1, 1)] * 50, 1, (0, 0.0), 1.0)
    assert collected.recent_returns()["catch"] == -5
    later = [(0, 0, 1.0, 1, 1)] * episodes.RECENT_EPISODES + [(1, 1, 1_000.0, 1, 1)]
    collected.add(later, 1, (1, 1.0), 2.0)
    assert collected.recent_returns() == {"catch": 1, "catch:large_rewards": 1_000}


def test_each_episode_is_taken_once_and_in_order(tmp_path: pathlib.Path) -> None:
    collected = Episodes(tmp_path, TASKS)
    collected.add([(0, 0, 1.0, 9, 30)], 40, (100, 7.0), 9.0)
    collected.add([(1, 1, -1_000.0, 9, 9), (0, 0, -1.0, 9, 18)], 18, (140, 9.0), 10.0)
    assert collected.take_new() == [
        (130, 8.5, 0, "catch", 1.0, 9),  # three quarters of its report's steps and seconds
        (149, 9.5, 1, "catch:large_rewards", -1_000.0, 9),
        (158, 10.0, 0, "catch", -1.0, 9),
    ]
    assert collected.take_new() == []


def test_a_resumed_run_appends_its_episodes(tmp_path: pathlib.Path) -> None:
    for part in (1, 2):
        collected = Episodes(tmp_path, TASKS)
        since = (100 * part - 9, 60.0404 * part)
        collected.add([(3, 1, 1_000.0, 9, 9)], 9, since, 60.0404 * part)
        for _ in range(2):
            collected.write()
    assert (tmp_path / "logs" / "episodes.csv").read_text().splitlines() == [
        "actor_steps,walltime,actor,task,episode_return,episode_length",
        "100,60.04,3,catch:large_rewards,1000.0,9",
        "200,120.081,3,catch:large_rewards,1000.0,9",
    ]
