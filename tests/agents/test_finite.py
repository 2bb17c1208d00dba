"""Infinite numbers and NaN: their source is named; they are not stored, learned from or saved."""

import pathlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import dm_env
import numpy as np
import pytest
import tensorflow as tf

from agents.environment_loop import VectorEnvironmentLoop
from agents.finite import NotFiniteError, check_update
from agents.learner import MAX_UNCHECKED, Learner
from agents.single_process import AcmeActor
from replay.structures import Batch
from tensor_ops import xla
from tests.agents.adding import AddReward, Priorities, for_ever, make_learner
from tests.agents.recording import recorded_actor


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
        (
            ["catch"],
            0,
            -1e39,
            "catch gave the reward -1e+39 (infinite in float32): rewards must be finite.",
        ),
    ],
)
def test_a_reward_that_is_not_finite_names_its_environment_and_is_not_written(
    names: list[str], which: int, pays: float, sentence: str
) -> None:
    n = len(names)
    actor, recorder = recorded_actor(n)
    observations, ends = np.zeros((n, 1), np.float32), np.zeros(n, bool)
    rewards = np.ones((3, n))
    rewards[2, which] = pays
    steps: Any = iter((observations, reward, ends, ends, {}) for reward in rewards)
    environments: Any = SimpleNamespace(
        num_envs=n, reset=lambda: (observations, {}), step=lambda action: next(steps)
    )
    loop = VectorEnvironmentLoop(environments, actor, names)
    loop.step()
    loop.step()
    with pytest.raises(NotFiniteError) as error:
        loop.step()
    assert str(error.value) == sentence
    assert recorder.column("reward").tolist() == [[1.0] * len(names)] * 2


@pytest.mark.parametrize("ends", [False, True])
def test_acmes_loop_accepts_no_such_reward_either(ends: bool) -> None:
    recurrent, recorder = recorded_actor(1)
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


@pytest.mark.parametrize("has_priorities", [True, False])
@pytest.mark.parametrize(("metrics", "sentence"), BREAKS)
def test_an_update_that_is_not_finite_writes_no_priorities_and_is_never_saved(
    tmp_path: pathlib.Path, metrics: dict[str, float], sentence: str, has_priorities: bool
) -> None:
    """Without priorities the learner goes on a little: it does not wait for an accelerator."""
    priorities = Priorities()
    told: list[Any] = []
    learner, _ = make_learner(
        for_ever(),
        Breaking(has_priorities, **metrics),
        priorities=priorities,
        on_metrics=told.append,
    )
    _learn(learner, steps=2)
    if has_priorities:
        assert _raises(learner.step) == sentence
        assert len(priorities.updates) == len(told) == 2
    else:
        learner.step()

    def assert_not_saved() -> None:
        for save in (lambda: learner.write_checkpoint(str(tmp_path / "3")), learner.save):
            assert _raises(save) == sentence

    assert_not_saved()
    if not has_priorities:
        assert _raises(lambda: _learn(learner, steps=MAX_UNCHECKED)) == sentence
    assert_not_saved()
    assert not list(tmp_path.iterdir())


def test_where_there_is_a_gpu_an_update_that_is_not_finite_is_found_after_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(xla, "has_gpu", lambda: True)
    priorities = Priorities()
    learner, _ = make_learner(for_ever(), Breaking(True, loss=np.nan), priorities=priorities)
    _learn(learner, steps=3)
    assert _raises(learner.step) == "Update 3 is not finite: loss nan." + SEEN
    assert len(priorities.updates) == 2
    assert _raises(learner.end) == "Update 3 is not finite: loss nan." + SEEN
    assert len(priorities.updates) == 2


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
    """The mean over a task that a batch lacks may be NaN."""
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
