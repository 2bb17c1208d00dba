"""What is not finite: its source is named, and nothing of it is stored."""

from typing import Any

import dm_env
import numpy as np
import pytest
import tensorflow as tf

from agents.actor import AcmeActor, RecurrentActor
from agents.environment_loop import VectorEnvironmentLoop
from agents.finite import NotFiniteError
from tests.agents.recording import Recorder, policy


def _actor(num_environments: int) -> tuple[RecurrentActor, Recorder]:
    recorder, initial_state = Recorder(), tf.zeros(num_environments)
    actor = RecurrentActor(
        policy, initial_state, num_environments=num_environments, frame_stack=1, writer=recorder
    )
    return actor, recorder


class Paying:
    """Environments that pay 1 for each step, but one of them something else for the third."""

    def __init__(self, num_envs: int, which: int, pays: float) -> None:
        self.num_envs = num_envs
        self._which, self._pays, self._step = which, pays, 0

    def reset(self) -> tuple[np.ndarray, dict[str, Any]]:
        return np.zeros((self.num_envs, 1), np.float32), {}

    def step(self, action: np.ndarray) -> tuple[Any, ...]:
        self._step += 1
        reward, ends = np.ones(self.num_envs, np.float32), np.zeros(self.num_envs, bool)
        if self._step == 3:
            reward[self._which] = self._pays
        return np.zeros((self.num_envs, 1), np.float32), reward, ends, ends, {}


@pytest.mark.parametrize(
    ("names", "which", "pays", "sentence"),
    [
        (
            ["catch"] * 8,
            2,
            float("nan"),
            "catch, environment 3 of 8, gave the reward nan: rewards must be finite.",
        ),
        (
            ["catch", "memory:recall"],
            1,
            float("-inf"),
            "memory:recall, environment 2 of 2, gave the reward -inf: rewards must be finite.",
        ),
        (["catch"], 0, float("inf"), "catch gave the reward inf: rewards must be finite."),
    ],
)
def test_a_reward_that_is_not_finite_names_its_environment_and_is_not_written(
    names: list[str], which: int, pays: float, sentence: str
) -> None:
    actor, recorder = _actor(len(names))
    environments: Any = Paying(len(names), which, pays)
    loop = VectorEnvironmentLoop(environments, actor, names)
    loop.step()
    loop.step()
    with pytest.raises(NotFiniteError) as error:
        loop.step()
    assert str(error.value) == sentence
    assert recorder.column("reward").tolist() == [[1.0] * len(names)] * 2


@pytest.mark.parametrize("ends", [False, True])
def test_acmes_loop_accepts_no_such_reward_either(ends: bool) -> None:
    recurrent, recorder = _actor(1)
    actor, observation = AcmeActor(recurrent), np.zeros(1, np.float32)
    actor.observe_first(dm_env.restart(observation))
    actor.observe(actor.select_action(observation), dm_env.transition(1.0, observation))
    action = actor.select_action(observation)
    outcome = dm_env.termination if ends else dm_env.transition
    with pytest.raises(NotFiniteError) as error:
        actor.observe(action, outcome(float("nan"), observation))
    sentence = "The environment gave the reward nan: rewards must be finite."
    assert str(error.value) == sentence
    assert recorder.column("reward").tolist() == [[1.0]]
