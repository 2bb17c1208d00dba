"""The losses with their costs against the oracle; their derivatives against differences."""

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.impala.distributions import Categorical, SquashedGaussian
from agents.impala.vtrace import Correction, Evaluation, Hyperparameters, Outputs, vtrace_losses
from replay.structures import TrainedRows
from tests.agents.impala import oracle

L, B, A = 8, 5, 3
HYPERPARAMETERS = Hyperparameters(
    discount=0.9,
    lambda_=0.8,
    rho_bar=1.3,
    c_bar=0.8,
    policy_gradient_cost=0.7,
    baseline_cost=0.4,
    entropy_cost=0.2,
    alpha_rho=0.7,
    alpha_c=0.6,
)


def _costs(policy_gradient: float, baseline: float, entropy: float) -> Hyperparameters:
    return HYPERPARAMETERS._replace(
        policy_gradient_cost=policy_gradient, baseline_cost=baseline, entropy_cost=entropy
    )


KINDS = pytest.mark.parametrize("kind", [Categorical, SquashedGaussian])


def played(kind: type = Categorical) -> tuple[Outputs, TrainedRows]:
    """Float64 arrays; episodes that the environment ended, or a time limit; padding."""
    rng = np.random.default_rng(0)
    mask, continuation = np.ones((2, L, B))
    for row, column, terminated in [(3, 0, True), (3, 1, False), (1, 2, True), (7, 2, False)]:
        mask[row, column] = 0
        continuation[row - 1, column] = 0 if terminated else 1
    mask[:2, 3] = 0
    outputs = Outputs(
        policy=Categorical(rng.normal(size=(L, B, A))),
        value=rng.normal(size=(L + 1, B)),
        shift=rng.normal(size=B),
        scale=rng.uniform(0.5, 3.0, size=B),
    )
    rows = TrainedRows(
        action=rng.integers(A, size=(L, B), dtype=np.int32),
        log_probability=oracle.log_softmax(rng.normal(size=(L, B, A)))[..., 0],
        reward=rng.normal(size=(L, B)),
        continuation=continuation,
        mask=mask,
        life_lost=np.zeros((L + 1, B), bool),
    )
    if kind is Categorical:
        return outputs, rows
    mean, log_sigma, action = rng.normal(size=(3, L, B, 2)) / 2
    return outputs._replace(policy=SquashedGaussian(mean, log_sigma)), rows._replace(
        action=action, log_probability=rng.normal(size=(L, B)) - 1
    )


def _evaluate(
    outputs: Any, rows: Any, hyperparameters: Any = HYPERPARAMETERS, correction: Any = "vtrace"
) -> Evaluation:
    outputs, rows = (tree.map_structure(tf.convert_to_tensor, x) for x in (outputs, rows))
    return vtrace_losses(outputs, rows, hyperparameters, correction)


@KINDS
def test_the_rows_reach_both_sides_of_every_clip(kind: type) -> None:
    outputs, rows = played(kind)
    ratio = np.exp(oracle.log_ratio(outputs, rows))[rows.mask > 0]
    for least, most in [(0, 0.8), (0.8, 1.3), (1.3, np.inf)]:
        assert ((ratio > least) & (ratio < most)).sum() > 3
    assert (rows.continuation == 0).sum() == 2
    assert (rows.mask == 0).sum() == 6


@KINDS
@pytest.mark.parametrize(
    ("correction", "wrap"),
    [*((correction, lambda f: f) for correction in get_args(Correction)), ("vtrace", tf.function)],
    ids=[*get_args(Correction), "traced"],
)
def test_the_loss_and_its_targets_are_the_oracles(
    correction: Correction, wrap: Callable, kind: type
) -> None:
    outputs, rows = played(kind)
    evaluation = wrap(lambda: _evaluate(outputs, rows, correction=correction))()
    loss, v = oracle.losses(outputs, rows, HYPERPARAMETERS, correction)
    assert float(evaluation.loss) == pytest.approx(loss, rel=1e-9)
    real = rows.mask > 0
    np.testing.assert_allclose(evaluation.target[real], v[real], rtol=1e-9)
    value = outputs.scale * outputs.value[:-1] + outputs.shift
    np.testing.assert_allclose(evaluation.value, value)
    np.testing.assert_allclose(
        evaluation.log_ratio[real], oracle.log_ratio(outputs, rows)[real], rtol=1e-9
    )


@KINDS
def test_each_loss_is_logged_without_its_cost(kind: type) -> None:
    outputs, rows = played(kind)
    metrics = _evaluate(outputs, rows).metrics
    costs = {"policy_gradient": (1, 0, 0), "baseline": (0, 1, 0), "entropy": (0, 0, 1)}
    alone = {
        name: oracle.losses(outputs, rows, _costs(*cost), "vtrace") for name, cost in costs.items()
    }
    assert float(metrics["policy_gradient_loss"]) == pytest.approx(alone["policy_gradient"][0])
    assert float(metrics["baseline_loss"]) == pytest.approx(alone["baseline"][0])
    regularisation = alone["entropy"][0] / rows.mask.sum()
    if kind is SquashedGaussian:
        assert float(metrics["standard_kl"]) == pytest.approx(regularisation)
    else:
        assert float(metrics["entropy"]) == pytest.approx(-regularisation)
    assert ("entropy" in metrics) == (kind is Categorical)
    value = outputs.scale * outputs.value[:-1] + outputs.shift
    assert float(metrics["mean_value"]) == pytest.approx(value[rows.mask > 0].mean())


@pytest.mark.parametrize("real", [0, 1])
def test_the_entropy_of_few_real_steps_is_theirs(real: int) -> None:
    outputs, rows = played()
    rows = rows._replace(mask=np.zeros_like(rows.mask))
    rows.mask[0, :real] = 1.0
    entropy = -oracle.losses(outputs, rows, _costs(0, 0, 1), "vtrace")[0]
    assert float(_evaluate(outputs, rows).metrics["entropy"]) == pytest.approx(entropy)


def _logits(outputs: Outputs) -> np.ndarray:
    assert isinstance(outputs.policy, Categorical)
    return outputs.policy.logits


def _derivatives(outputs: Outputs, rows: TrainedRows) -> tuple[Evaluation, list[Any]]:
    """The derivatives by logits, values and their statistics, then by each hyperparameter."""
    at = tree.map_structure(tf.convert_to_tensor, (outputs, _as_tensors(HYPERPARAMETERS)))
    with tf.GradientTape() as tape:
        tape.watch(at)
        evaluation = _evaluate(at[0], rows, at[1])
    return evaluation, tree.flatten(tape.gradient(evaluation.loss, at))


def _as_tensors(hyperparameters: Hyperparameters) -> Any:
    return Hyperparameters(*(tf.constant(x, tf.float64) for x in hyperparameters))


def test_targets_advantages_and_weights_are_constants_to_the_network() -> None:
    outputs, rows = played()
    h, real = HYPERPARAMETERS, rows.mask[..., None] > 0
    evaluation, (by_logits, by_value, by_shift, by_scale, *_) = _derivatives(outputs, rows)
    assert by_shift is None
    assert by_scale is None
    target = (evaluation.target - outputs.shift) / outputs.scale
    error = np.where(real[..., 0], outputs.value[:-1] - target, 0.0)
    np.testing.assert_allclose(by_value[:-1], h.baseline_cost * error, atol=1e-12)
    np.testing.assert_array_equal(by_value[-1], np.zeros(B))
    log_pi = oracle.log_softmax(_logits(outputs))
    pi, taken = np.exp(log_pi), np.eye(A)[rows.action]
    _, q, policy = oracle.targets(outputs, rows, h, "vtrace")
    advantage = policy * ((q - outputs.shift) / outputs.scale - outputs.value[:-1])
    expected = -h.policy_gradient_cost * advantage[..., None] * (taken - pi)
    expected += h.entropy_cost * pi * (log_pi - (pi * log_pi).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(by_logits, np.where(real, expected, 0.0), atol=1e-12)


def _difference(f: Callable[[Any], tf.Tensor], name: str) -> float:
    """The derivative of f by a hyperparameter, as a central difference."""
    value, step = getattr(HYPERPARAMETERS, name), 1e-5
    ends = [float(f(HYPERPARAMETERS._replace(**{name: value + x}))) for x in (-step, step)]
    return (ends[1] - ends[0]) / (2 * step)


def _derivative(f: Callable[[Any], tf.Tensor], name: str) -> float:
    x = tf.constant(getattr(HYPERPARAMETERS, name), tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(HYPERPARAMETERS._replace(**{name: x}))
    return float(tape.gradient(y, x))


@pytest.mark.parametrize("name", Hyperparameters._fields)
def test_the_loss_and_its_gradient_can_be_differentiated(name: str) -> None:
    """The gradient is what a metagradient sees of the loss: through the step that it makes."""
    outputs, rows = played()
    direction = tree.map_structure(np.random.default_rng(1).normal, outputs)

    def loss(hyperparameters: Any) -> tf.Tensor:
        return _evaluate(outputs, rows, hyperparameters).loss

    def along_gradient(hyperparameters: Any) -> tf.Tensor:
        at = tree.map_structure(tf.constant, outputs[:2])
        with tf.GradientTape() as tape:
            tape.watch(at)
            y = _evaluate(
                Outputs(at[0], at[1], outputs.shift, outputs.scale), rows, hyperparameters
            ).loss
        products = zip(*map(tree.flatten, (tape.gradient(y, at), direction[:2])), strict=True)
        return tf.add_n([tf.reduce_sum(g * d) for g, d in products])

    for f in (loss, along_gradient):
        derivative = _derivative(f, name)
        assert derivative == pytest.approx(_difference(f, name), rel=1e-6)
        assert abs(derivative) > 1e-2
