"""What a learner's node does before its first batch arrives: nothing that could be seen later."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.contract import Agent
from agents.learner import Learner
from launch import catalogue
from launch.learner_node import zeros
from launch.nodes import core_state_spec
from replay import dataset, tables
from tests.batches import environment_spec, random_batch

SMALL: dict[str, Any] = dict(
    torso="mlp", hidden_sizes=(8,), frame_stack=1, burn_in=0, length=4, batch_size=4
)


def _agent(name: str) -> Agent:
    config = catalogue.AGENTS[name].config("catch")
    own = {"lstm_size": min(config.lstm_size, 8)}
    if not hasattr(config, "queue_size"):
        own |= {"period": 4, "head_size": 8, "target_update_period": 1}
    return catalogue.make(name, dataclasses.replace(config, **SMALL, **own))


def _zeros(agent: Agent) -> Any:
    batches = dataset.make_dataset(
        ["localhost:1"],
        agent.tables,
        environment_spec(),
        core_state_spec(agent, environment_spec()),
        tables.block_length(agent.tables),
        agent.batch_sizes,
    )
    return zeros(batches.element_spec)


@pytest.mark.parametrize("name", catalogue.AGENTS)
def test_a_warm_up_leaves_no_trace_in_what_is_learned(name: str) -> None:
    agent = _agent(name)
    nothing, batch = _zeros(agent), random_batch(agent.config)
    found = []
    for warm in (False, True):
        tf.random.set_seed(0)
        update = agent.make_update(environment_spec())
        metrics: list[Any] = []
        learner = Learner(update, iter([batch, batch]), on_metrics=metrics.append)
        before = learner.save()
        if warm:
            learner.warm_up(nothing)
        drawn = tf.random.uniform([4])
        warmed, served = learner.save(), learner.get_variables(["policy"])
        np.testing.assert_equal(warmed, before)
        learner.step()
        first = learner.save()
        learner.step()
        found.append((drawn, served, first, learner.save(), metrics))
        # A second graph would mean that the warm-up's batch was not like those to come.
        traces = update.__call__.experimental_get_tracing_count()  # type: ignore[attr-defined]
        assert traces == 1
        assert any((first[key] != before[key]).any() for key in before)
    tree.map_structure(np.testing.assert_array_equal, found[1], found[0])


@pytest.mark.parametrize("name", catalogue.AGENTS)
def test_an_update_on_zeros_would_change_the_learner(name: str) -> None:
    """Or there were nothing that the warm-up had to undo."""
    agent = _agent(name)
    update = agent.make_update(environment_spec())
    before = [variable.numpy() for variable in update.variables]
    update(_zeros(agent))
    after = [variable.numpy() for variable in update.variables]
    assert any((x != y).any() for x, y in zip(before, after, strict=True))
