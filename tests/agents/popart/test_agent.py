"""PopArt-IMPALA as a record of functions, and as a library."""

import acme
import numpy as np
import pytest
from acme.utils import loggers

from agents.actor import network_input
from agents.popart.agent import (
    PopArtIMPALA,
    make,
)
from agents.popart.statistics import PopArt
from environments import dm
from tests.agents.popart.batches import NUM_TASKS, make_update, small_config
from tests.batches import environment_spec


@pytest.mark.parametrize("normalise", [True, False])
def test_a_value_and_statistics_for_each_task(normalise: bool) -> None:
    config = small_config(normalise=normalise)
    update = make_update(config)
    network = make(config).make_network(environment_spec())
    inputs, state = network_input(environment_spec(), 1), update.network.initial_state(1)
    output, _ = update.learned_network.step(inputs, state)
    assert output.value.shape == (1, NUM_TASKS)
    for acting, learning in zip(network.variables, update.network.variables, strict=True):
        assert acting.shape == learning.shape
    assert any(isinstance(m, PopArt) for m in update.submodules) == normalise


@pytest.mark.parametrize("num_tasks", [1, 2])
def test_it_learns_in_acmes_loop(num_tasks: int) -> None:
    environment = dm.make("catch")
    config = small_config(num_tasks=num_tasks, length=4, batch_size=2)
    agent = PopArtIMPALA(acme.make_environment_spec(environment), config, seed=3)
    before = agent.get_variables(["policy"])[0]
    loop = acme.EnvironmentLoop(environment, agent, logger=loggers.NoOpLogger())
    loop.run(num_episodes=10)
    after = agent.get_variables(["policy"])[0]
    assert agent.learner.learner_steps == (10 * 10 - 1) // 4 // 2
    assert any((x != y).any() for x, y in zip(before[:-1], after[:-1], strict=True))
    assert all(np.isfinite(x).all() for x in after)
    agent.close()
