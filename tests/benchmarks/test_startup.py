"""benchmarks.startup: two runs of seconds, one interrupted, one that loses its learner."""

import pytest

from tests.benchmarks.commands import report, tiny
from tests.commands import Commands


@pytest.mark.slow
@pytest.mark.launchpad
def test_a_runs_beginning_and_its_two_ends_are_measured(commands: Commands) -> None:
    flags = ["--env=catch", "--num_actors=2", "--actors_per_node=1", "--runs=1"]
    mlp = ["--impala.torso=mlp"]
    contents = report(commands, "startup", *tiny("impala"), *mlp, *flags)
    figures = {name: found["value"] for name, found in contents["figures"].items()}
    units = {name: found["unit"] for name, found in contents["figures"].items()}
    assert units == {
        "first_acting_step": "s",
        "all_acting": "s",
        "first_learner_step": "s",
        "memory": "GB",
        "end_when_interrupted": "s",
        "end_after_a_crash": "s",
    }
    assert 0 < figures["first_acting_step"] <= figures["all_acting"]
    assert figures["first_acting_step"] <= figures["first_learner_step"]
    assert 0.1 < figures["memory"] < 10
    assert all(0 < figures[name] < 60 for name in ("end_when_interrupted", "end_after_a_crash"))
