"""The surroundings of an actor: policies, a writer, a learner and environments, all tiny."""

from typing import Any

import acme
import dm_env
import numpy as np
import tensorflow as tf
import tree
from acme import specs
from acme.utils import loggers

from agents.actor import RecurrentActor
from agents.contract import Policy, PolicyOutput
from replay.structures import Nest, NetworkInput, Step
from tests.replay.streams import Row

NUM_ACTIONS = 5
DISCRETE = specs.DiscreteArray(NUM_ACTIONS)
BOUNDED = specs.BoundedArray((2,), np.float32, -1, 1)


class Recorder:
    """A writer that keeps a copy of every row."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        row = Row(step, core_state, values, learner_step)
        self.rows.append(tree.map_structure(lambda x: np.array(x), row))

    def column(self, name: str) -> np.ndarray:
        """One field of the steps, `[T, N, ...]`."""
        return np.stack([getattr(row.step, name) for row in self.rows])

    def value(self, name: str) -> np.ndarray:
        """One of the policy's values, `[T, N, ...]`."""
        return np.stack([row.values[name] for row in self.rows])


def policy(inputs: NetworkInput, core_state: tf.Tensor) -> PolicyOutput:
    """Counts in its core state, and tells in its values what it was shown.

    The action is the step's number since the last reset, so that streams tell resets apart.
    """
    action = tf.cast(core_state, tf.int32) % NUM_ACTIONS
    return PolicyOutput(
        action=action,
        log_probability=-tf.cast(action + 1, tf.float32),
        values={
            "previous_action": tf.cast(inputs.previous_action, tf.float32),
            "previous_reward": tf.convert_to_tensor(inputs.previous_reward),
            "newest": _pixel(inputs.observation, -1),
            "oldest": _pixel(inputs.observation, 0),
        },
        core_state=core_state + 1.0,
    )


def bounded_policy(inputs: NetworkInput, core_state: tf.Tensor) -> PolicyOutput:
    """The same with two numbers for an action: that count's hundredth, and minus that."""
    action = tf.stack([core_state / 100, -core_state / 100], axis=1)  # [N, 2]
    return PolicyOutput(
        action=action,
        log_probability=-core_state,
        values={"previous_action": tf.convert_to_tensor(inputs.previous_action)},
        core_state=core_state + 1.0,
    )


def _pixel(observation: tf.Tensor, frame: int) -> tf.Tensor:
    """The first pixel of one frame of a stack `[N, ..., k]`."""
    frames = tf.reshape(observation, [observation.shape[0], -1, observation.shape[-1]])
    return tf.cast(frames[:, 0, frame], tf.float32)


class Source:
    """A learner whose parameters are constants, and which is one step further at each fetch."""

    def __init__(self, parameters: list[np.ndarray]) -> None:
        self.parameters = parameters
        self.step = 0

    def get_variables(self, names: list[str]) -> list[list[Any]]:
        assert list(names) == ["policy"]
        self.step += 1
        return [[*self.parameters, np.int64(self.step)]]


def recorded_actor(
    num_environments: int = 2, policy: Policy = policy, **changes: Any
) -> tuple[RecurrentActor, Recorder]:
    """An actor of single frames whose state begins at 0, and what it writes."""
    recorder = Recorder()
    arguments: dict[str, Any] = dict(
        num_environments=num_environments, frame_stack=1, writer=recorder
    )
    return RecurrentActor(policy, tf.zeros(num_environments), **arguments | changes), recorder


class Episodes(dm_env.Environment):
    """Episodes of so many steps that are cut off, all of them alike; keeps its actions."""

    def __init__(self, observations: Any, actions: specs.BoundedArray, length: int) -> None:
        self._observations, self._actions, self._length = observations, actions, length
        self.actions: list[np.ndarray] = []

    def reset(self) -> dm_env.TimeStep:
        self._step = 0
        return dm_env.restart(self._seen())

    def step(self, action: np.ndarray) -> dm_env.TimeStep:
        self._actions.validate(action)
        self.actions.append(action)
        self._step += 1
        end = dm_env.truncation if self._step == self._length else dm_env.transition
        return end(1.0, self._seen())

    def _seen(self) -> Any:
        return tree.map_structure(lambda spec: spec.generate_value(), self._observations)

    def observation_spec(self) -> Any:
        return self._observations

    def action_spec(self) -> specs.BoundedArray:
        return self._actions


def run_episodes(environment: Any, actor: Any, count: int) -> None:
    """Plays in Acme's loop, without its log."""
    loop = acme.EnvironmentLoop(environment, actor, logger=loggers.NoOpLogger())
    for _ in range(count):
        loop.run_episode()
