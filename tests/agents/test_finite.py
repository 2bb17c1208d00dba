"""What is not finite: its source is named, and nothing of it is stored, learned from or saved."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import dm_env
import numpy as np
import pytest
import tensorflow as tf

from agents.actor import RecurrentActor
from agents.environment_loop import VectorEnvironmentLoop
from agents.finite import NotFiniteError, check_update
from agents.learner import MAX_UNCHECKED, Learner
from agents.single_process import AcmeActor
from replay.structures import Batch
from tests.agents.adding import AddReward, Priorities, for_ever, make_learner
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


class Breaking(AddReward):
    """An update whose third call gives other metrics."""

    def __init__(self, has_priorities: bool, **metrics: Any) -> None:
        super().__init__()
        self._has_priorities = has_priorities
        self._metrics = {name: tf.constant(value) for name, value in metrics.items()}
        self._calls = 0

    def __call__(self, batch: Batch) -> tuple[tf.Tensor | None, Mapping[str, tf.Tensor]]:
        self._calls += 1
        priorities, metrics = super().__call__(batch)
        changed = {**metrics, **self._metrics} if self._calls == 3 else metrics
        return priorities if self._has_priorities else None, changed


SEEN = " It learned from rewards from 0 to 2."

BREAKS = [
    ({"loss": np.nan}, "Update 3 is not finite: loss nan." + SEEN),
    ({"gradient_norm": np.inf}, "Update 3 is not finite: gradient_norm inf." + SEEN),
    ({"metagradient_norm": np.nan}, "Update 3 is not finite: metagradient_norm nan." + SEEN),
    (
        {"loss": -np.inf, "gradient_norm": np.nan, "baseline_loss": np.inf, "entropy": 1.0},
        "Update 3 is not finite: loss -inf, gradient_norm nan, baseline_loss inf." + SEEN,
    ),
]


@pytest.mark.parametrize(("metrics", "sentence"), BREAKS)
def test_an_update_that_is_not_finite_writes_no_priorities_and_is_never_saved(
    tmp_path: pathlib.Path, metrics: dict[str, float], sentence: str
) -> None:
    priorities = Priorities()
    told: list[Any] = []
    learner, _ = make_learner(
        for_ever(), Breaking(True, **metrics), priorities=priorities, on_metrics=told.append
    )
    learner.step()
    learner.step()
    assert _raises(learner.step) == sentence
    assert len(priorities.updates) == len(told) == 2
    for _ in range(2):
        assert _raises(lambda: learner.write_checkpoint(str(tmp_path / "3"))) == sentence
        assert _raises(learner.save) == sentence
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("metrics", "sentence"), BREAKS)
def test_one_without_priorities_is_not_saved_either_and_soon_ends_the_learner(
    tmp_path: pathlib.Path, metrics: dict[str, float], sentence: str
) -> None:
    learner, _ = make_learner(for_ever(), Breaking(False, **metrics))
    for _ in range(3):
        learner.step()
    assert _raises(lambda: learner.write_checkpoint(str(tmp_path / "3"))) == sentence
    assert _raises(learner.save) == sentence
    assert not list(tmp_path.iterdir())
    # What an accelerator still computes is not waited for at every step.
    assert _raises(lambda: _learn(learner, steps=MAX_UNCHECKED)) == sentence
    assert _raises(lambda: learner.write_checkpoint(str(tmp_path / "3"))) == sentence


@pytest.mark.parametrize("has_priorities", [True, False])
def test_parameters_that_are_not_finite_are_not_served(has_priorities: bool) -> None:
    update = Breaking(has_priorities, loss=np.nan)
    learner, _ = make_learner(for_ever(), update, priorities=Priorities())
    learner.step()
    learner.get_variables(["policy"])
    learner.step()
    if has_priorities:
        _raises(learner.step)
    else:
        learner.step()
    assert update.network.weight.numpy().tolist() == [9.0, 9.0]
    ((weight, at),) = learner.get_variables(["policy"])
    assert (weight.tolist(), int(at)) == ([3.0, 3.0], 1)


def test_a_learner_that_is_set_back_goes_on(tmp_path: pathlib.Path) -> None:
    learner, _ = make_learner(for_ever(), Breaking(True, loss=np.nan), priorities=Priorities())
    learner.step()
    state = learner.save()
    learner.step()
    prefix = learner.write_checkpoint(str(tmp_path / "2"))
    _raises(learner.step)
    learner.read_checkpoint(prefix)
    learner.step()
    assert learner.learner_steps == 3
    learner.restore(state)
    learner.step()
    assert learner.learner_steps == 2


def test_other_metrics_need_not_be_finite() -> None:
    """A task of which a batch holds nothing may have a mean that is not a number."""
    metrics = {"loss": tf.constant(1.0), "gradient_norm": tf.constant(2.0)}
    others = {"mean_rho": tf.constant(np.nan), "mu": tf.constant([0.0, np.nan, 1.0, np.inf])}
    reward = tf.constant([[0.0, -1e20], [7.0, 0.0]])
    check_update(5, metrics | others, reward)
    with pytest.raises(NotFiniteError) as error:
        check_update(1234, {**others, "loss": tf.constant(np.nan), "gradient_norm": 2.0}, reward)
    found = "mean_rho nan, mu[1] nan, mu[3] inf, loss nan"
    seen = "It learned from rewards from -1e+20 to 7."
    assert str(error.value) == f"Update 1,234 is not finite: {found}. {seen}"


@pytest.mark.parametrize("missing", ["loss", "gradient_norm"])
def test_an_update_that_does_not_say_its_loss_is_no_update(missing: str) -> None:
    metrics = {"loss": tf.constant(1.0), "gradient_norm": tf.constant(2.0)}
    lacking = {name: metric for name, metric in metrics.items() if name != missing}
    with pytest.raises(KeyError, match=missing):
        check_update(5, lacking, tf.zeros([1, 1]))


def _learn(learner: Learner, steps: int) -> None:
    for _ in range(steps):
        learner.step()


def _raises(what: Callable[[], Any]) -> str:
    """The error's sentence."""
    with pytest.raises(NotFiniteError) as error:
        what()
    return str(error.value)
