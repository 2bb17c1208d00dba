"""Members of populations: those that have played, and two of whom one takes over the other's."""

import pathlib

import pytest

from population.decisions import State
from population.folder import PopulationFolder
from run_folder.layout import RunFolder
from tests.population.learners import Learning, saved
from tests.population.populations import RETURNS, log_episodes, settings_of


@pytest.fixture
def rival(tmp_path: pathlib.Path) -> Learning:
    """One that has learned for 9 updates, and saved three times."""
    return saved(RunFolder(tmp_path / "rival"), 3.0, [2, 3, 4])


@pytest.fixture
def own(tmp_path: pathlib.Path) -> Learning:
    """The member that adopts, at update 5."""
    return saved(RunFolder(tmp_path / "own"), -1.0, [3, 2])


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> PopulationFolder:
    """Of a population that has not begun."""
    return PopulationFolder(tmp_path)


@pytest.fixture
def state(folder: PopulationFolder) -> State:
    """Of members that have played once."""
    found = State(settings_of(), folder)
    for member, saves in enumerate(([2, 3], [4, 3], [5, 6])):
        found.begin(member)
        run = folder.member(member)
        saved(run, member + 1.0, saves)
        steps = 10 * sum(saves)
        # The last episodes are logged after the learner heard of the counts.
        log = [(steps // 2, "catch", 9.0), *[(steps + 3, "catch", RETURNS[member])] * 100]
        log_episodes(run, log)
    return found
