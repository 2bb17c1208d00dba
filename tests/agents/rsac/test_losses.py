"""Soft actor-critic's targets and losses beside naive loops, and first priorities."""

import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.rsac import losses
from replay.structures import PriorityInput
from tests.r2d2.oracle import n_step_return
from tests.small_agents import make_agent, small_config

ROWS, ITEMS = 6, 4
ALPHA = 0.3


@pytest.fixture
def drawn() -> dict[str, Any]:
    """Each critic is the smaller one somewhere, entropy on both sides; masked rows are nonsense."""
    rng = np.random.default_rng(0)
    mask = np.ones((ROWS, ITEMS), np.float32)
    mask[4:, 1] = mask[:2, 2] = mask[1:, 3] = 0
    q = rng.normal(size=(2, ROWS, ITEMS)).astype(np.float32) * 2
    log_probability = rng.normal(size=(ROWS, ITEMS)).astype(np.float32) * 2
    real = mask > 0
    assert 0 < (q[0] < q[1])[real].sum() < real.sum()
    assert 0 < (log_probability < 1.0)[real].sum() < real.sum()
    found = dict(
        q=np.where(real, q, 1e3),
        targets=np.where(real, rng.normal(size=real.shape), np.nan).astype(np.float32),
        log_probability=np.where(real, log_probability, 1e3),
        mask=mask,
        weights=rng.uniform(0.2, 1, ITEMS).astype(np.float32),
    )
    return {name: tf.constant(x, tf.float32) for name, x in found.items()}


def _naive_mean(each: Any, drawn: dict[str, Any]) -> float:
    """The mean over all rows of what a function makes of real ones, weighted by their item."""
    total = 0.0
    for t in range(ROWS):
        for b in range(ITEMS):
            if drawn["mask"][t, b]:
                total += float(drawn["weights"][b]) * each(t, b)
    return total / (ROWS * ITEMS)


def _of_loss(drawn: dict[str, Any]) -> tuple[tf.Tensor, tf.Tensor]:
    return drawn["mask"], drawn["weights"]


def test_the_soft_value_is_the_smaller_criticss_and_entropy() -> None:
    q = tf.constant([[1.0, 5.0, -1.0], [2.0, 3.0, -4.0]])
    log_probability = tf.constant([-2.0, 0.5, 3.0])
    found = losses.soft_value(q, log_probability, tf.constant(ALPHA))
    np.testing.assert_allclose(found, [1 + 0.6, 3 - 0.15, -4 - 0.9], rtol=1e-6)


def test_the_critics_loss_equals_the_naive_one(drawn: dict[str, Any]) -> None:
    def each(t: int, b: int) -> float:
        return sum(0.5 * float(drawn["targets"][t, b] - drawn["q"][i, t, b]) ** 2 for i in (0, 1))

    with tf.GradientTape() as tape:
        tape.watch([drawn["q"], drawn["targets"]])
        loss = losses.critic_loss(drawn["q"], drawn["targets"], *_of_loss(drawn))
    assert float(loss) == pytest.approx(_naive_mean(each, drawn), rel=1e-5)
    by_q, by_targets = tape.gradient(loss, [drawn["q"], drawn["targets"]])
    assert by_targets is None
    expected = drawn["weights"] * (drawn["q"] - drawn["targets"]) / (ROWS * ITEMS)
    np.testing.assert_allclose(by_q, np.where(drawn["mask"] > 0, expected, 0), rtol=1e-5)


def test_the_policys_loss_equals_the_naive_one(drawn: dict[str, Any]) -> None:
    def each(t: int, b: int) -> float:
        least = min(float(drawn["q"][0, t, b]), float(drawn["q"][1, t, b]))
        return ALPHA * float(drawn["log_probability"][t, b]) - least

    temperature = tf.constant(ALPHA)
    with tf.GradientTape() as tape:
        tape.watch([temperature, drawn["log_probability"], drawn["q"]])
        loss = losses.policy_loss(
            drawn["q"], drawn["log_probability"], temperature, *_of_loss(drawn)
        )
    assert float(loss) == pytest.approx(_naive_mean(each, drawn), rel=1e-5)
    sources = [temperature, drawn["log_probability"], drawn["q"]]
    by_temperature, by_log_probability, by_q = tape.gradient(loss, sources)
    assert by_temperature is None
    weight = np.where(drawn["mask"] > 0, drawn["weights"], 0) / (ROWS * ITEMS)
    np.testing.assert_allclose(by_log_probability, ALPHA * weight, rtol=1e-5)
    smaller = np.argmin(drawn["q"], axis=0)
    for i in (0, 1):
        np.testing.assert_allclose(by_q[i], np.where(smaller == i, -weight, 0), rtol=1e-5)


@pytest.mark.parametrize("target_entropy", [-1.0, 5.0, -5.0])
def test_the_temperatures_loss_and_gradient_equal_the_naive_ones(
    target_entropy: float, drawn: dict[str, Any]
) -> None:
    """By log α it is the loss itself: d exp(x) / dx = exp(x). Too little entropy raises α."""

    def each(t: int, b: int) -> float:
        return -ALPHA * (float(drawn["log_probability"][t, b]) + target_entropy)

    log_temperature = tf.Variable(math.log(ALPHA))
    with tf.GradientTape() as tape:
        tape.watch(drawn["log_probability"])
        loss = losses.temperature_loss(
            tf.exp(log_temperature), drawn["log_probability"], target_entropy, *_of_loss(drawn)
        )
    expected = _naive_mean(each, drawn)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    gradient, by_policy = tape.gradient(loss, [log_temperature, drawn["log_probability"]])
    assert float(gradient) == pytest.approx(expected, rel=1e-5)
    assert by_policy is None
    if abs(target_entropy) == 5:  # beyond most entropies, so that the sign is known
        assert (float(gradient) < 0) == (target_entropy > 0)


@pytest.mark.parametrize("n_step", [1, 3])
def test_targets_and_first_priorities_equal_the_naive_ones(n_step: int) -> None:
    config = small_config("rsac", n_step=n_step, length=5, eta=0.7, discount=0.8)
    rng = np.random.default_rng(1)
    mask = np.ones((5, 3), np.float32)
    mask[3:, 1] = mask[1:, 2] = 0
    continuation = np.ones((5, 3), np.float32)
    continuation[2, 1] = 0  # where item 1 ends
    q, value = rng.normal(size=(2, 6, 3)).astype(np.float32)
    reward = rng.normal(size=(5, 3)).astype(np.float32)
    expected = np.zeros((5, 3))
    for b in range(3):
        for t in np.flatnonzero(mask[:, b]):
            column = value[:, b], reward[:, b], 0.8 * continuation[:, b], mask[:, b]
            expected[t, b] = n_step_return(t, *column, n_step)
    found = losses.item_targets(config, *map(tf.constant, (value, reward, continuation, mask)))
    np.testing.assert_allclose(np.where(mask, found, 0), expected, rtol=1e-5)

    errors = [np.abs(expected - q[:-1])[mask[:, b] > 0, b] for b in range(3)]
    items = PriorityInput(
        {"q_taken": q, "value": value}, reward, continuation, np.zeros((6, 3), bool), mask
    )
    initial_priority = make_agent(config).initial_priority
    assert initial_priority is not None
    np.testing.assert_allclose(
        initial_priority(items),
        [0.7 * error.max() + 0.3 * error.mean() for error in errors],
        rtol=1e-5,
    )
