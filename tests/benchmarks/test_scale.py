"""Loads of links, computed by hand and simulated, with one full queue or none."""

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
    Result,
    Server,
    Simulation,
)

FREE = dict.fromkeys((ITEM, SAMPLE, PRIORITY, PARAMETERS), Cost(1e-9, 1e-9, 1e-9))
PLAN = Plan(actors=24, actors_per_node=4, num_shards=2, update_seconds=0.25)
SECONDS = 200.0


def _run(plan: Plan = PLAN, sent: str = ITEM, **cost: float) -> Result:
    return Simulation(plan, FREE | {sent: FREE[sent]._replace(**cost)}).run(SECONDS)


def test_a_queue_serves_in_order_as_many_at_a_time_as_it_can() -> None:
    server = Server(capacity=2)
    assert [server.done(0.0, 3.0), server.done(0.0, 1.0), server.done(0.5, 1.0)] == [3.0, 1.0, 2.0]
    assert server.done(10.0, 1.0) == 11.0
    assert server.utilisation(12.0) == pytest.approx(6 / 12 / 2)


def test_where_nothing_is_short_everybody_goes_at_their_own_rate() -> None:
    result = _run()
    assert result.steps_per_second == pytest.approx(24 * 65, rel=0.03)
    assert result.updates_per_second == pytest.approx(1 / 0.25, rel=0.03)
    assert result.utilisation["learner's accelerator"] == pytest.approx(1.0, abs=0.03)
    assert result.parameter_seconds < 1e-6
    others = {k: v for k, v in result.utilisation.items() if k != "learner's accelerator"}
    assert max(others.values()) < 1e-3


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
def test_what_is_sent_keeps_its_resource_busy(
    sent: str, cost: str, value: float, resource: str, expected: float
) -> None:
    result = _run(PLAN, sent, **{cost: value})
    assert result.utilisation[resource] == pytest.approx(expected, rel=0.1)
    assert result.utilisation["learner's accelerator"] > 0.95


def test_actors_go_as_fast_as_their_shard_takes_items() -> None:
    result = _run(dataclasses.replace(PLAN, shard_cores=1), ITEM, server=0.1)
    assert result.utilisation["shard's cores"] == pytest.approx(1.0, rel=0.05)
    assert result.steps_per_second == pytest.approx(2 * 10 * 40, rel=0.05)


def test_a_learner_goes_as_fast_as_its_batches_are_put_together() -> None:
    plan = dataclasses.replace(PLAN, learner_cores=1)
    result = _run(plan, SAMPLE, client=1 / 64)  # one second for a batch
    assert result.updates_per_second == pytest.approx(1.0, rel=0.05)
    assert result.utilisation["learner's cores"] == pytest.approx(1.0, rel=0.05)
    assert result.utilisation["learner's accelerator"] == pytest.approx(0.25, rel=0.05)


def test_parameters_are_waited_for_where_the_link_is_full() -> None:
    free = _run(PLAN, PARAMETERS, bytes=3e7)
    assert free.parameter_seconds == pytest.approx(2 * 3e7 / 1.25e9, rel=0.2)
    full = _run(dataclasses.replace(PLAN, link=2e7), PARAMETERS, bytes=3e7)
    assert full.utilisation["learner's link, out"] == pytest.approx(1.0, rel=0.1)
    assert full.parameter_seconds > 3.0


def test_parameters_are_fetched_no_less_often_because_they_take_a_while() -> None:
    result = _run(dataclasses.replace(PLAN, link=1e8), PARAMETERS, bytes=3e7)
    assert result.parameter_seconds == pytest.approx(2 * 3e7 / 1e8, rel=0.1)
    expected = 6 * 65 / 400 * 3e7 / 1e8
    assert result.utilisation["learner's link, out"] == pytest.approx(expected, rel=0.04)


def test_the_last_node_may_hold_fewer_actors() -> None:
    result = _run(dataclasses.replace(PLAN, actors=22))
    assert result.steps_per_second == pytest.approx(22 * 65, rel=0.03)


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
