"""STAC's whole update: it equals IMPALA's where nothing is self-tuned, and it moves η."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.learner import ImpalaUpdate
from agents.stac.config import ALL, OUTER_COSTS
from agents.stac.learner import StacUpdate
from tests.agents.stac.batches import outputs_of
from tests.batches import random_batch
from tests.eager import eagerly
from tests.small_agents import make_batch, make_update, small_config
from tests.updates import parameters_of, same


def _eta(update: StacUpdate) -> np.ndarray:
    return np.array(update.metaparameters.eta)


def _pair(**changes: Any) -> tuple[ImpalaUpdate, StacUpdate]:
    """IMPALA's update, and STAC's with nothing self-tuned, of the same parameters."""
    mine = small_config("stac", self_tuned=(), head_hidden_sizes=(), **changes)
    same_fields = {name: getattr(mine, name) for name in vars(small_config("impala"))}
    theirs = make_update(small_config("impala", **same_fields))
    update = make_update(mine, seed=1)
    networks = ("learned_network", "network")  # another with a lag
    for of_theirs, of_mine in [(getattr(theirs, n), getattr(update, n)) for n in networks]:
        _copy(of_theirs.trainable_variables, of_mine.trainable_variables)
    return theirs, update


def _copy(values: Any, variables: Any) -> None:
    for value, variable in zip(values, variables, strict=True):
        variable.assign(value)


@pytest.mark.parametrize("changes", [{}, dict(max_gradient_norm=1.0, policy_lag=2, burn_in=2)])
def test_with_nothing_self_tuned_it_is_impala(changes: dict[str, Any]) -> None:
    theirs, update = _pair(rho_bar=1.2, c_bar=0.9, lambda_=0.9, **changes)
    before = parameters_of(update)
    for step in range(20):
        batch = make_batch(update._config, seed=step)
        lost = tf.random.stateless_uniform(batch.reset.shape, [step, 0]) < 0.1
        batch = batch._replace(life_lost=lost)
        expected, actual = theirs(batch)[1], update(batch)[1]
        assert actual.keys() == expected.keys()
        for name in expected:
            assert float(actual[name]) == pytest.approx(float(expected[name]), rel=1e-4, abs=1e-6)
    for x, y in zip(parameters_of(update), parameters_of(theirs), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
    assert not same(before, parameters_of(update))


def test_what_is_not_self_tuned_stands_at_its_outer_value() -> None:
    values = dict(
        discount=0.9,
        lambda_=0.8,
        policy_gradient_cost=0.7,
        baseline_cost=0.4,
        entropy_cost=0.2,
        alpha=0.6,
    )
    for name in ALL:
        rest = tuple(other for other in ALL if other != name)
        config = small_config("stac", self_tuned=rest, meta_initial=0.0, num_heads=2, **values)
        fields = {"gamma": "discount", "lambda": "lambda_", "alpha": "alpha_rho", **OUTER_COSTS}
        outer = dict(values, alpha_rho=0.6)
        for head in make_update(config).metaparameters.hyperparameters():
            for each, field in fields.items():
                scale = outer[field] if each in OUTER_COSTS else 1.0
                expected = outer[field] if each == name else 0.5 * scale
                assert float(getattr(head, field)) == pytest.approx(expected), (name, each)
            assert float(head.alpha_c) == float(head.alpha_rho)


@eagerly()
def test_the_loss_and_its_gradient_are_the_mean_over_the_heads() -> None:
    """Three heads that are equal teach the torso as one does, and are taught a third each."""
    config = small_config("stac", num_heads=3, rmsprop_decay=1.0)
    update, single = make_update(config), make_update(dataclasses.replace(config, num_heads=1))
    (alone,) = single._heads
    for head in update._heads:
        _copy(alone.variables, head.variables)
    body = _body(update)
    _copy(_body(single), body)
    before = [v.numpy() for v in alone.variables]
    batch = make_batch(config)
    of_three, of_one = update(batch)[1], single(batch)[1]
    assert float(of_three["loss"]) == pytest.approx(float(of_one["loss"]), rel=1e-5)
    for x, y in zip(body, _body(single), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)
    for head in update._heads:
        for x, y, z in zip(head.variables, alone.variables, before, strict=True):
            np.testing.assert_allclose(x - z, (y - z) / 3, atol=1e-6)
            assert np.abs(y - z).max() > 1e-4


def _body(update: StacUpdate) -> list[tf.Variable]:
    """The parameters of torso and core."""
    of_heads = {v.ref() for head in update._heads for v in head.variables}
    return [v for v in update.network.trainable_variables if v.ref() not in of_heads]


def test_only_the_acting_head_enters_the_outer_loss() -> None:
    update = make_update(small_config("stac", num_heads=3))
    batch = make_batch(update._config)
    old = outputs_of(update, batch)[0].policy

    def outer() -> list[float]:
        evaluation, kl = update.evaluate_outer(batch, old)
        return [float(evaluation.loss), float(kl)]

    before, (first, *others) = outer(), update._heads
    for variable in [v for head in others for v in head.variables]:
        variable.assign_add(tf.ones_like(variable))
    assert outer() == before
    for variable in first.variables:
        variable.assign_add(tf.random.normal(variable.shape))
    assert all(x != y for x, y in zip(outer(), before, strict=True))


@eagerly()
def test_two_steps_of_adam_on_eta_by_hand() -> None:
    """The metagradient is read from plain descent; ε stands outside the root."""
    config = small_config("stac", meta_learning_rate=1e-2, meta_epsilon=1e-3, meta_initial=0.0)
    update, plain = make_update(config), make_update(config)
    plain._meta_optimizer = _Descent()
    mean = square = np.zeros_like(_eta(update))
    for step in range(2):
        plain.metaparameters.eta.assign(update.metaparameters.eta)
        before, batch = _eta(update), make_batch(config, seed=step)
        plain(batch)
        gradient = before - _eta(plain)
        update(batch)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        root = np.sqrt(square / (1 - 0.999 ** (step + 1)))
        move = 1e-2 * mean / (1 - 0.9 ** (step + 1)) / (root + 1e-3)
        np.testing.assert_allclose(before - _eta(update), move, rtol=2e-2, atol=2e-7)
        assert np.abs(move).max() > 1e-4


class _Descent(tf.Module):
    def apply(self, gradients: list[tf.Tensor], variables: list[tf.Variable]) -> None:
        for gradient, variable in zip(gradients, variables, strict=True):
            variable.assign_sub(gradient)


@eagerly()
def test_metrics_of_a_batch() -> None:
    config = small_config("stac", num_heads=2, meta_initial=0.0, kl_cost=3.0)
    update, batch = make_update(config), make_batch(config)
    evaluations, policy = update.evaluate(batch)
    _, metrics = update(batch)
    losses = [float(each.loss) for each in evaluations]
    assert losses[0] != losses[1]
    assert float(metrics["loss"]) == pytest.approx(np.mean(losses), rel=1e-5)
    for name in ("policy_gradient_loss", "entropy", "mean_value", "mean_rho"):
        assert float(metrics[name]) == pytest.approx(float(evaluations[0].metrics[name]), rel=1e-4)
    outer, kl = update.evaluate_outer(batch, policy)
    assert float(metrics["kl"]) == pytest.approx(float(kl), rel=1e-3)
    assert float(kl) > 0
    assert float(metrics["outer_loss"]) == pytest.approx(float(outer.loss) + 3 * float(kl), 1e-4)
    for name in ALL:
        for head in (1, 2):
            assert float(metrics[f"{name}/{head}"]) == 0.5  # those of this update
    norms = np.array([float(metrics[f"{name}_metagradient"]) for name in ALL])
    assert (norms > 0).all()
    assert float(metrics["metagradient_norm"]) == pytest.approx(np.sqrt((norms**2).sum()), 1e-4)


@eagerly()
def test_what_reaches_no_loss_is_not_tuned() -> None:
    """λ of unrolls of one step."""
    config = small_config("stac", self_tuned=("lambda",), burn_in=8, length=1, period=1)
    update = make_update(config)
    _, metrics = update(make_batch(config))
    assert float(metrics["metagradient_norm"]) == 0.0


@eagerly()
def test_a_stale_item_leaves_everything_finite() -> None:
    """A policy of 21 numbers whose σ fell from e² to e⁻⁵ has the ratio e¹⁴⁷, on every row here."""
    update = make_update(small_config("stac", meta_initial=0.0, length=20))
    batch = random_batch(update._config)
    log_probability = batch.log_probability.numpy()
    log_probability[:, 1] -= 147
    _, metrics = update(batch._replace(log_probability=tf.constant(log_probability)))
    found = {**metrics, **{v.name: v for v in update.variables}}
    assert [name for name, value in found.items() if not np.isfinite(value).all()] == []
