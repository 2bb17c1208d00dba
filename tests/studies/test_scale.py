"""What goes over each link, by hand; docs/scale.md is made of it."""

import pytest

from benchmarks.scale import Costs, Plan
from studies import scale

pytestmark = pytest.mark.repository

OF = Costs(
    item_bytes=10e3,
    item_server=1e-3,
    sample_bytes=50e3,
    sample_server=2e-3,
    sample_client=3e-3,
    priority_bytes=20.0,
    priority_server=4e-3,
    priority_client=5e-3,
    parameter_bytes=30e6,
    parameter_server=6e-3,
)


def test_rates_are_of_each_link() -> None:
    plan = Plan(actors=40, actors_per_node=4, num_shards=2, steps_per_second=20.0)
    steps, items, sampled = 800.0, 20.0, 64 / 0.2
    assert items == steps / plan.period
    assert scale.rates(plan, OF) == pytest.approx(
        {
            "items, from an actor node": items * 10e3 / 10,
            "items, into a shard": items * 10e3 / 2,
            "items, from a shard to the learner": sampled * 50e3 / 2,
            "items, into the learner": sampled * 50e3,
            "priorities, from the learner to a shard": sampled * 20 / 2,
            "parameters, into an actor node": 20 / 400 * 30e6,
            "parameters, from the learner": 10 * 20 / 400 * 30e6,
        }
    )


def test_serving_parameters_takes_little_of_the_learners_host() -> None:
    assert scale.serving_share(Plan(actors=80), OF) == pytest.approx(10 * 65 / 400 * 6e-3 / 8)
    assert scale.serving_share(scale.PAPER, scale.costs(scale.newest())) <= 0.05
