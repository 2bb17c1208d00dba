"""Agents that act and learn in one thread: when the learner steps, and that it never waits."""

from typing import Any

import acme
import dm_env
import numpy as np
import pytest
from acme import specs
from acme.utils import loggers

from agents.contract import Agent
from agents.impala import agent as impala
from agents.single_process import Pace, SingleProcessAgent, pace_of
from environments import dm
from r2d2 import agent as r2d2
from tests.agents import steering

SMALL: dict[str, Any] = dict(torso="mlp", hidden_sizes=(8,), lstm_size=4, frame_stack=1)


def _impala(**changes: Any) -> impala.Config:
    values = dict(SMALL, length=4, batch_size=2, queue_size=4, rmsprop_epsilon=1e-3)
    return impala.Config(**{**values, **changes})


def _r2d2(**changes: Any) -> Agent:
    return r2d2.make(r2d2.Config(length=16, period=8, batch_size=4, min_replay_size=20, **changes))


def test_steps_of_a_pace() -> None:
    pace = Pace(first=5, period=2)
    assert [pace.learner_steps(rows) for rows in range(10)] == [0, 0, 0, 0, 0, 1, 1, 2, 2, 3]
    assert Pace(first=5, period=0.5).learner_steps(6) == 3


def test_a_queue_paces_by_its_batches() -> None:
    agent = impala.make(_impala())
    assert pace_of(agent) == Pace(first=2 * 4 + 1, period=2 * 4)
    assert pace_of(impala.make(_impala(replay_fraction=0.5))) == Pace(first=4 + 1, period=4)


def test_other_tables_pace_by_their_ratio() -> None:
    """An item brings 8 rows; the paper replays 0.8 trained rows for each."""
    assert pace_of(_r2d2(samples_per_insert=2.0)).period == 4 * 8 / 2
    assert pace_of(_r2d2()).period == 4 * 16 / 0.8
    assert pace_of(_r2d2()).first == 20 * 8


@pytest.mark.parametrize("replay_fraction", [0.0, 0.5])
@pytest.mark.parametrize(("lstm_size", "burn_in"), [(0, 0), (4, 3)])
def test_impala_learns_from_every_unroll_and_never_waits(
    replay_fraction: float, lstm_size: int, burn_in: int
) -> None:
    """Catch's episodes of nine steps have a tenth row each: counting steps would fill the queue."""
    environment = dm.make("catch")
    config = _impala(replay_fraction=replay_fraction, lstm_size=lstm_size, burn_in=burn_in)
    agent = impala.IMPALA(acme.make_environment_spec(environment), config, seed=3)
    loop = acme.EnvironmentLoop(environment, agent, logger=loggers.NoOpLogger())
    for _ in range(30):
        loop.run_episode()
    unrolls = (30 * 10 - 1) // 4  # the row after an unroll completes it
    assert agent.learner.learner_steps == unrolls // (1 if replay_fraction else 2)
    agent.close()


class Target(dm_env.Environment):
    """Episodes of five steps, to act near `AIM` in. Its actions are float64, as dm_control's."""

    AIM = np.array([0.6, -0.3])

    def __init__(self) -> None:
        self.rewards: list[float] = []

    def reset(self) -> dm_env.TimeStep:
        return dm_env.restart(np.ones(1, np.float32))

    def step(self, action: np.ndarray) -> dm_env.TimeStep:
        self.action_spec().validate(action)
        self.rewards.append(-float(np.square(action - self.AIM).sum()))
        end = dm_env.transition if len(self.rewards) % 5 else dm_env.termination
        return end(self.rewards[-1], np.ones(1, np.float32))

    def observation_spec(self) -> specs.Array:
        return specs.Array((1,), np.float32)

    def action_spec(self) -> specs.BoundedArray:
        return specs.BoundedArray((2,), np.float64, -1, 1)


def test_an_agent_of_bounded_actions_learns_in_acmes_loop() -> None:
    environment = Target()
    agent = SingleProcessAgent(steering.make(), acme.make_environment_spec(environment), seed=1)
    loop = acme.EnvironmentLoop(environment, agent, logger=loggers.NoOpLogger())
    for _ in range(100):
        loop.run_episode()
    assert agent.learner.learner_steps == (100 * 6 - 1) // 4 // 2
    # Noise around the aim costs 2 * 0.3², noise around zero 0.45 more.
    assert np.mean(environment.rewards[:10]) < -0.4
    assert np.mean(environment.rewards[-100:]) > -0.25
    agent.close()


def test_the_environment_gets_whole_numbers_of_its_own_size() -> None:
    environment = dm.make("catch")
    spec = acme.make_environment_spec(environment)
    wide = spec._replace(actions=spec.actions.replace(dtype=np.int64))
    agent = impala.IMPALA(wide, _impala(), seed=3)
    loop = acme.EnvironmentLoop(environment, agent, logger=loggers.NoOpLogger())
    for _ in range(2):
        loop.run_episode()
    assert agent.learner.learner_steps > 0
    timestep = environment.reset()
    agent.observe_first(timestep)
    wide.actions.validate(agent.select_action(timestep.observation))
    agent.close()


def test_the_actor_has_the_learners_newest_parameters() -> None:
    environment = dm.make("catch")
    agent = impala.IMPALA(acme.make_environment_spec(environment), _impala(), seed=3)
    loop = acme.EnvironmentLoop(environment, agent, logger=loggers.NoOpLogger())
    for _ in range(5):
        loop.run_episode()
    assert agent.learner.learner_steps > 0
    (variables,) = agent.get_variables(["policy"])
    assert int(variables[-1]) == agent.learner.learner_steps
    agent.close()
