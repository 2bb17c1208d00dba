"""What is known of three members that have played, of whom 0 is worst and 2 is best."""

from launch.members.state import State
from population.folder import PopulationFolder
from tests.population.learners import saved
from tests.population.populations import log_episodes, settings_of

RETURNS = (-1.0, 0.5, 1.0)


def play(folder: PopulationFolder, member: int, saves: list[int]) -> None:
    """A member's first turn, of as many updates."""
    run = folder.member(member)
    saved(run, member + 1.0, saves)
    steps = 10 * sum(saves)
    # The last episodes are logged after the learner heard of the counts.
    logged = [(steps // 2, "catch", 9.0), *[(steps + 3, "catch", RETURNS[member])] * 100]
    log_episodes(run, logged)


def state_of(folder: PopulationFolder) -> State:
    """Of members that have played once."""
    found = State(settings_of(), folder)
    for member, saves in enumerate(([2, 3], [4, 3], [5, 6])):
        found.begin(member)
        play(folder, member, saves)
    return found
