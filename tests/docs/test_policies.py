"""What is kept in policies/ reaches what docs/results.md says of it."""

import pathlib

import pytest

from analysis.playing import evaluation, files, intervals
from benchmarks.results_runs import EPISODES, POLICIES
from environments import suites
from run_folder import settings

KEPT = sorted(config.parent for config in POLICIES.glob("*/config.json"))
MOST_BYTES = 20_000_000


def test_they_are_small() -> None:
    files_ = [path for path in POLICIES.rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_size for path in files_) < MOST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_other_episodes_return_what_the_page_says(folder: pathlib.Path) -> None:
    run = settings.load(folder)
    try:
        suites.check(run.env)
    except ValueError as error:
        pytest.skip(str(error))
    player = evaluation.load(run, seed=1)
    played = evaluation.play(player, run.env, EPISODES)
    again = intervals.of_mean([episode.episode_return for episode in played])
    (rows,) = files.read_all(folder).values()
    told = intervals.of_mean([row.episode_return for row in rows])
    assert again.low <= told.high
    assert told.low <= again.high
