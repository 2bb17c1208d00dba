"""Rates and loads of links and cores, computed by hand."""

import dataclasses

import pytest

from benchmarks import scale
from benchmarks.scale import (
    ITEM,
    PARAMETERS,
    PRIORITY,
    SAMPLE,
    Cost,
    Plan,
)

FREE = dict.fromkeys((ITEM, SAMPLE, PRIORITY, PARAMETERS), Cost(0.0, 0.0, 0.0))
PLAN = Plan(actors=24, actors_per_node=4, num_shards=2, update_seconds=0.25)


@pytest.mark.parametrize(
    ("sent", "cost", "value", "resource", "expected"),
    [  # a rate of the whole run over the hosts that share it, times what each one costs
        (ITEM, "bytes", 1e6, "shard's link, in", 1560 / 40 / 2 * 1e6 / 1.25e9),
        (ITEM, "bytes", 1e6, "actor node's link, out", 1560 / 40 / 6 * 1e6 / 1.25e9),
        (ITEM, "server", 1e-2, "shard's cores", 1560 / 40 / 2 * 1e-2 / 4),
        (SAMPLE, "bytes", 1e5, "learner's link, in", 64 / 0.25 * 1e5 / 1.25e9),
        (SAMPLE, "bytes", 1e5, "shard's link, out", 64 / 0.25 / 2 * 1e5 / 1.25e9),
        (SAMPLE, "server", 1e-3, "shard's cores", 64 / 0.25 / 2 * 1e-3 / 4),
        (SAMPLE, "client", 1e-3, "learner's cores", 64 / 0.25 * 1e-3 / 8),
        (PRIORITY, "client", 1e-3, "learner's cores", 64 / 0.25 * 1e-3 / 8),
        (PRIORITY, "server", 1e-3, "shard's cores", 64 / 0.25 / 2 * 1e-3 / 4),
        (PRIORITY, "bytes", 1e5, "learner's link, out", 64 / 0.25 * 1e5 / 1.25e9),
        (PARAMETERS, "bytes", 3e7, "learner's link, out", 6 * 65 / 400 * 3e7 / 1.25e9),
        (PARAMETERS, "bytes", 3e7, "actor node's link, in", 65 / 400 * 3e7 / 1.25e9),
        (PARAMETERS, "server", 0.05, "learner's cores", 6 * 65 / 400 * 0.05 / 8),
    ],
)
def test_a_load_is_a_rate_times_what_one_costs(
    sent: str, cost: str, value: float, resource: str, expected: float
) -> None:
    of = FREE | {sent: FREE[sent]._replace(**{cost: value})}
    assert scale.loads(PLAN, of)[resource] == pytest.approx(expected)


def test_the_last_node_may_hold_fewer_actors() -> None:
    assert dataclasses.replace(PLAN, actors=22).num_nodes == PLAN.num_nodes == 6


OF = {
    ITEM: Cost(10e3, 1e-3, 0.0),
    SAMPLE: Cost(50e3, 2e-3, 3e-3),
    PRIORITY: Cost(20.0, 4e-3, 5e-3),
    PARAMETERS: Cost(30e6, 6e-3, 0.0),
}


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


@pytest.mark.repository
def test_serving_parameters_takes_little_of_the_learners_host() -> None:
    assert scale.serving_share(Plan(actors=80), OF) == pytest.approx(10 * 65 / 400 * 6e-3 / 8)
    assert scale.serving_share(scale.PAPER, scale.costs(scale.newest())) <= 0.05
