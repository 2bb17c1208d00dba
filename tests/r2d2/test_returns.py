"""λ-returns, Munchausen's bonus and MEME's loss against naive loops, on both sides of all clips."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from r2d2.agent import make
from r2d2.network import make_network
from r2d2.returns import (
    LEAST_SIGMA,
    SIGMA_RATE,
    RowValues,
    deviation,
    item_targets,
    lambda_returns,
    leads_away,
    row_values,
    scaled_log_softmax,
)
from replay.structures import Batch, PriorityInput
from tests.batches import NUM_ACTIONS, environment_spec, random_batch, random_inputs
from tests.eager import eagerly
from tests.r2d2 import oracle
from tests.r2d2.oracle import n_step_return
from tests.small_agents import ITEMS, make_batch, make_update, small_config

EPSILON = 1e-3


def _h(x: Any) -> Any:
    """In float64."""
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + EPSILON * x


def _h_inverse(y: Any) -> Any:
    """The textbook's form in float64, which has digits enough there."""
    size = np.sqrt(1 + 4 * EPSILON * (np.abs(y) + 1 + EPSILON))
    return np.sign(y) * (((size - 1) / (2 * EPSILON)) ** 2 - 1)


class Row(NamedTuple):
    """`RowValues` of one row, and what they were made of."""

    values: RowValues
    expected: float  # E_π Q
    ratio: float  # π(a) / μ(a)
    tau_log_pi: float  # of the action taken


def naive_row(config: Any, q: np.ndarray, greedy: int, action: int, log_mu: float) -> Row:
    """One row, as the equations read, in float64."""
    q = q.astype(np.float64)
    u = _h_inverse(q) if config.rescale else q
    pi = np.zeros(len(q))
    pi[greedy] = 1.0
    tau_log_pi = np.zeros(len(q))
    if config.munchausen_alpha or config.returns == "retrace":
        tau_log_pi = np.array([x - u.max() for x in u])
        tau_log_pi -= config.tau * np.log(sum(np.exp(x / config.tau) for x in tau_log_pi))
        pi = np.exp(tau_log_pi / config.tau)
    entropy = -sum(p * x for p, x in zip(pi, tau_log_pi, strict=True))
    value = sum(pi * u) + (entropy if config.munchausen_alpha else 0.0)
    expected, ratio = sum(pi * q), pi[action] / np.exp(log_mu)
    trace = 0.0
    if config.returns == "watkins" and q[action] >= expected - config.kappa * abs(expected):
        trace = config.lambda_
    if config.returns == "retrace":
        trace = config.lambda_ * min(1.0, ratio)
    bonus = config.munchausen_alpha * min(max(tau_log_pi[action], config.munchausen_l0), 0.0)
    return Row(RowValues(value, u[action], trace, bonus), expected, ratio, tau_log_pi[action])


def naive_lambda_return(
    t: int, rows: RowValues, reward: np.ndarray, discount: np.ndarray, mask: np.ndarray
) -> float:
    """One item, one row: r_t + γ_t V_{t+1}, and every later error by the traces on its way."""
    total, weight = reward[t] + discount[t] * rows.value[t + 1], discount[t]
    for s in range(t + 1, len(mask)):
        if mask[s] == 0:
            break
        weight *= rows.trace[s]
        total += weight * (reward[s] + discount[s] * rows.value[s + 1] - rows.taken[s])
        weight *= discount[s]
    return float(total)


def _config(**changes: Any) -> Any:
    return small_config("r2d2", **changes)


@pytest.mark.parametrize("tau", [0.03, 1.0, 1e-4])
def test_a_log_softmax_of_a_small_temperature_is_finite_and_right(tau: float) -> None:
    q = np.array([[0.0, -0.01, -5.0], [1e4, 1e4 - 0.0625, -1e4], [-300.0, -300.0, -300.0]])
    actual = scaled_log_softmax(tf.constant(q, tf.float32), tau).numpy()
    below = q - q.max(axis=-1, keepdims=True)
    expected = below - tau * np.log(np.exp(below / tau).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)
    assert (actual <= 0).all()


SETTINGS: dict[str, dict[str, Any]] = {
    "watkins": dict(returns="watkins", kappa=0.2),
    "retrace": dict(returns="retrace", tau=0.5),
    "munchausen": dict(munchausen_alpha=0.9, tau=0.5),
    "watkins, munchausen": dict(returns="watkins", munchausen_alpha=0.9, tau=0.5, kappa=0.2),
    "retrace, munchausen": dict(returns="retrace", munchausen_alpha=0.9, tau=0.5),
}
EACH = pytest.mark.parametrize("name", SETTINGS)


@EACH
@pytest.mark.parametrize("rescale", [True, False])
def test_rows_values_are_the_naive_ones(name: str, rescale: bool) -> None:
    config = _config(**SETTINGS[name], rescale=rescale, lambda_=0.8)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(30, 4, 3)).astype(np.float32)
    # Of nobody's argmax, as the other network's choice may be.
    greedy, action = rng.integers(3, size=(2, 30, 4))
    log_mu = np.log(rng.choice([0.05, 0.9], size=(30, 4))).astype(np.float32)
    actual = row_values(config, *(tf.constant(x) for x in (q, greedy, action, log_mu)))
    rows = [naive_row(config, q[i], greedy[i], action[i], log_mu[i]) for i in np.ndindex(30, 4)]
    for field in RowValues._fields:
        expected = np.array([getattr(row.values, field) for row in rows]).reshape(30, 4)
        np.testing.assert_allclose(getattr(actual, field), expected, rtol=1e-3, atol=1e-4)
    if config.returns == "watkins":
        falls = [
            (row.expected - q[i][action[i]]) / abs(row.expected)
            for i, row in zip(np.ndindex(30, 4), rows, strict=True)
        ]
        assert min(falls) < 0  # above the value, a little below it, and further below
        assert any(0.01 < x < 0.19 for x in falls)
        assert any(x > 0.21 for x in falls)
        assert {row.expected > 0 for row in rows} == {True, False}
    if config.returns == "retrace":
        assert {row.ratio > 1.1 for row in rows} == {row.ratio < 0.9 for row in rows}
    if config.munchausen_alpha:
        assert min(row.tau_log_pi for row in rows) < -1.1
        assert any(-0.9 < row.tau_log_pi < -0.1 for row in rows)


L = 7
CASES = {
    "whole": [1] * L,
    "one step": [1] + [0] * (L - 1),
    "truncated tail": [1] * 4 + [0] * (L - 4),
    "nothing": [0] * L,
    "two episodes": [1, 1, 1, 0, 1, 1, 1],  # row 3 holds the first one's last observation
}


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_lambda_returns_equal_the_naive_ones(wrap: Callable) -> None:
    """Every shape of an item's end, a terminal and a cut at every row; padding holds NaN."""
    rng = np.random.default_rng(0)
    columns = []
    for case in CASES.values():
        for cut in [None, *range(L)]:
            discount, trace = rng.uniform(0.5, 1.0, size=(2, L + 1))
            if cut is not None:
                discount[cut], trace[rng.integers(L)] = 0.0, 0.0
            value, taken, reward = rng.normal(size=(3, L + 1))
            mask = np.array(case)
            taken[:L][mask == 0] = trace[:L][mask == 0] = reward[:L][mask == 0] = np.nan
            taken[L] = trace[L] = np.nan
            columns.append((value, taken, trace, np.zeros(L + 1), reward[:L], discount[:L], mask))
    value, taken, trace, bonus, reward, discount, mask = (
        tf.constant(np.stack(x, axis=1), tf.float32) for x in zip(*columns, strict=True)
    )
    rows = RowValues(value, taken, trace, bonus)
    actual = wrap(lambda_returns)(rows, reward, discount, mask, L).numpy()
    assert actual.shape == mask.shape
    compared = 0
    for b, column in enumerate(columns):
        for t in np.flatnonzero(column[-1]):
            expected = naive_lambda_return(t, RowValues(*column[:4]), *column[4:])
            assert actual[t, b] == pytest.approx(expected, abs=1e-5), (b, t)
            compared += 1
    assert compared == 8 * sum(sum(case) for case in CASES.values())


# Of one item of five steps: rlax 0.1.9's transformed_q_lambda, whose λ is 0.9 where the action is
# greedy and 0 elsewhere, and its transformed_retrace, whose π is softmax(h⁻¹(Q) / 0.5); both with
# SIGNED_HYPERBOLIC_PAIR. It gives errors: Q of the actions taken was added.
RLAX_Q = [
    [1.0, 2.0, -0.5],
    [0.5, 0.3, 0.52],
    [3.0, 2.98, 1.0],
    [-1.0, -1.02, -4.0],
    [2.0, 0.0, 1.0],
    [0.2, 0.1, 0.7],
]
RLAX_ACTION = [1, 2, 1, 2, 0]
RLAX_REWARD = [1.0, -2.0, 0.5, 30.0, -0.25]
RLAX_MU = [0.85, 0.05, 0.05, 0.05, 0.85]
RLAX = {
    "watkins": [2.378683, 2.5317273, 0.225245, 4.766548, 0.5651748],
    "retrace": [0.3680358, -0.09007359, 0.225245, 4.75832, 0.52790236],
}


@pytest.mark.parametrize("name", RLAX)
def test_targets_are_those_of_rlax(name: str) -> None:
    config = _config(returns=name, lambda_=0.9, kappa=0.0, tau=0.5, discount=0.9, length=5)
    q = tf.constant(RLAX_Q)[:, tf.newaxis]
    action, log_mu = tf.constant([*RLAX_ACTION, 0])[:, tf.newaxis], np.log([*RLAX_MU, 1.0])
    values = row_values(
        config, q, tf.argmax(q, axis=-1), action, tf.constant(log_mu, tf.float32)[:, tf.newaxis]
    )
    stream = tf.constant(RLAX_REWARD)[:, tf.newaxis], tf.constant([[1.0], [1], [0], [1], [1]])
    lost, mask = tf.zeros([6, 1], tf.bool), tf.ones([5, 1])
    targets = item_targets(config, *values, *stream, lost, mask)
    np.testing.assert_allclose(targets[:, 0], RLAX[name], atol=1e-4)


def naive_targets(
    config: Any, q: np.ndarray, greedy: np.ndarray, batch: Batch, b: int
) -> np.ndarray:
    """The targets of an item's trained rows `[L]`, NaN where it has no real step.

    Args:
      q: `[T + 1, A]`, of the network that gives the values.
      greedy: `[T + 1]`.
    """
    begin, mask = config.burn_in, batch.mask.numpy()[:, b]
    rows = RowValues(*np.full((4, len(q)), np.nan))
    for t in np.flatnonzero(batch.valid[:, b]):
        action, log_mu = (
            (x.numpy()[t, b] if t < len(mask) else 0) for x in (batch.action, batch.log_probability)
        )
        values = naive_row(config, q[t], greedy[t], action, log_mu).values
        for column, value in zip(rows, values, strict=True):
            column[t] = value
    reward = batch.reward.numpy()[:, b] + rows.bonus[:-1]
    if config.reward_transform == "clip":
        reward = np.clip(batch.reward.numpy()[:, b], -1, 1) + rows.bonus[:-1]
    discount = config.discount * batch.continuation.numpy()[:, b]
    if config.life_loss != "none":
        discount = np.where(batch.life_lost.numpy()[1:, b], 0.0, discount)
    found = np.full(len(mask), np.nan)
    for t in np.flatnonzero(mask):
        if t < begin:
            continue
        if config.returns == "n_step":
            found[t] = n_step_return(t, rows.value, reward, discount, mask, config.n_step)
        else:
            found[t] = naive_lambda_return(t, rows, reward, discount, mask)
    return (_h(found) if config.rescale else found)[begin:]


def _of_networks(update: Any, batch: Batch, b: int) -> tuple[np.ndarray, np.ndarray]:
    networks = update.network, update.target_network
    online, target = (np.nan_to_num(oracle.q_values(x, batch, b)) for x in networks)
    return online, target


def _parted(config: Any) -> Any:
    """An update whose networks differ."""
    update = make_update(config)
    for variable in update.target_network.trainable_variables:
        variable.assign_add(0.3 * tf.random.normal(variable.shape))
    return update


MEME: dict[str, Any] = dict(returns="watkins", trust_region=0.3, normalise_td=True)
UPDATES = SETTINGS | {
    "meme": MEME,
    "trust region": dict(trust_region=0.3),
    "normalised": dict(normalise_td=True),
    "clip": dict(returns="watkins", munchausen_alpha=0.9, reward_transform="clip", rescale=False),
    "roll": dict(returns="watkins", life_loss="roll"),
}


@pytest.mark.parametrize("name", UPDATES)
@eagerly()
def test_an_update_equals_the_naive_one(name: str) -> None:
    config = _config(**UPDATES[name])
    batch, update = random_batch(config, **ITEMS), _parted(config)
    lost = np.random.default_rng(0).random(batch.life_lost.shape) < 0.2
    batch = batch._replace(life_lost=tf.constant(lost & batch.valid.numpy()))
    size = config.batch_size
    targets, q_taken, q_target = np.full((3, config.length, size), np.nan)
    for b in range(size):
        online, target = _of_networks(update, batch, b)
        q = online if config.trust_region else target
        targets[:, b] = naive_targets(config, q, online.argmax(axis=-1), batch, b)
        at = np.arange(config.burn_in, len(batch.mask)), batch.action.numpy()[config.burn_in :, b]
        q_taken[:, b], q_target[:, b] = online[at], target[at]
    real = batch.mask[config.burn_in :].numpy() > 0
    evaluation = update.evaluate(batch)
    np.testing.assert_allclose(evaluation.targets[real], targets[real], rtol=1e-3, atol=1e-3)

    errors = targets - q_taken
    sigma = max(np.std(errors[real]), LEAST_SIGMA)
    learned = real.copy()
    if config.trust_region:
        for at in zip(*np.nonzero(real), strict=True):
            distance = q_taken[at] - q_target[at]
            if abs(distance) > config.trust_region * sigma:
                learned[at] = np.sign(distance) == np.sign(q_taken[at] - targets[at])
        assert 0 < learned.sum() < real.sum()
    scale = sigma if config.normalise_td else 1.0
    squares = np.where(learned, (errors / scale) ** 2, 0.0).sum(axis=0)
    loss = (oracle.weights(batch, config) * 0.5 * squares).mean()
    assert float(evaluation.loss) == pytest.approx(loss, rel=1e-3)

    priorities, metrics = update(batch)
    sizes = np.where(real, np.abs(errors), 0.0)
    mean = sizes.sum(axis=0) / real.sum(axis=0)
    expected = config.eta * sizes.max(axis=0) + (1 - config.eta) * mean
    np.testing.assert_allclose(priorities, expected, rtol=1e-3)
    if config.trust_region:
        share = learned.sum() / real.sum()
        assert float(metrics["learned_share"]) == pytest.approx(share, rel=1e-5)
    if config.trust_region or config.normalise_td:
        assert float(metrics["sigma"]) == pytest.approx(sigma, rel=1e-3)


@pytest.mark.parametrize("name", [*SETTINGS, "meme"])
@eagerly()
def test_an_actors_first_priority_equals_the_learners(name: str) -> None:
    """Target and online network have the actor's parameters."""
    config = _config(**UPDATES[name])
    update, batch = make_update(config), make_batch(config)
    columns = []
    for b in range(config.batch_size):
        q = _of_networks(update, batch, b)[0]
        action, log_mu = (
            np.append(x.numpy()[:, b], 0) for x in (batch.action, batch.log_probability)
        )
        rows = [
            (q[t, action[t]], *naive_row(config, q[t], q[t].argmax(), action[t], log_mu[t]).values)
            for t in range(config.burn_in, len(q))
        ]
        columns.append(np.array(rows, np.float32))
    stacked = np.stack(columns, axis=1)  # [L + 1, B, 5]
    names = ("q_taken", *RowValues._fields)
    values = {name: stacked[..., i] for i, name in enumerate(names)}
    initial_priority = make(config).initial_priority
    assert initial_priority is not None
    fields = (batch.reward, batch.continuation, batch.life_lost, batch.mask)
    first = initial_priority(PriorityInput(values, *(x.numpy()[config.burn_in :] for x in fields)))
    np.testing.assert_allclose(first, update(batch)[0], rtol=1e-3)


@EACH
def test_a_policys_values_are_the_rows_it_acted_on(name: str) -> None:
    config = _config(**SETTINGS[name], epsilon_base=0.9, epsilon_alpha=0.0)
    network = make_network(config, environment_spec())
    policy = make(config).make_policy(network, np.arange(50), 50, 0)
    output = policy(random_inputs(0, 50), network.initial_state(50))
    q = network.step(random_inputs(0, 50), network.initial_state(50))[0].numpy()
    action, log_mu = output.action.numpy(), output.log_probability.numpy()
    assert (action != q.argmax(axis=-1)).any()
    for i in range(50):
        row = naive_row(config, q[i], q[i].argmax(), action[i], log_mu[i])
        for field, expected in row.values._asdict().items():
            assert float(output.values[field][i]) == pytest.approx(expected, rel=1e-3, abs=1e-4)
    np.testing.assert_allclose(output.values["q_max"], q.max(axis=-1), atol=1e-6)


@pytest.mark.parametrize(
    ("q", "target_q", "target", "away"),
    [
        (3.0, 1.0, 4.0, True),  # above the region, and led up
        (3.0, 1.0, 2.0, False),  # above it, and led back
        (3.0, 1.0, 0.0, False),
        (-3.0, -1.0, -4.0, True),  # below it, and led down
        (-3.0, -1.0, 0.0, False),
        (1.5, 1.0, 9.0, False),  # inside
        (0.5, 1.0, -9.0, False),
        (2.0, 1.0, 9.0, False),  # on its edge
    ],
)
def test_what_leads_away_from_the_trust_region(
    q: float, target_q: float, target: float, away: bool
) -> None:
    arguments = [tf.constant([[x]]) for x in (q, target_q, target)]
    found = leads_away(arguments[0], arguments[1], arguments[2], tf.constant(1.0))
    assert bool(found[0, 0]) == away


def test_a_deviation_is_of_real_steps() -> None:
    error = np.array([[1.0, np.nan], [4.0, -2.0], [np.inf, 7.0]])
    mask = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    actual = float(deviation(tf.constant(error, tf.float32), tf.constant(mask, tf.float32)))
    assert actual == pytest.approx(np.std([1.0, 4.0, -2.0, 7.0]))
    assert float(deviation(tf.ones([2, 1]), tf.zeros([2, 1]))) == 0.0


@pytest.mark.parametrize(
    ("running", "spread", "largest"),
    [(9.0, 1.0, "running"), (0.0, 1.0, "batch"), (0.0, 0.0, "least")],
)
@eagerly()
def test_sigma_is_the_largest_of_three_and_follows_batches(
    running: float, spread: float, largest: str
) -> None:
    config = _config(**MEME)
    update, batch = make_update(config), make_batch(config)
    if not spread:  # no reward, and no value: no error
        for variable in (*update.network.variables, *update.target_network.variables):
            variable.assign(tf.zeros_like(variable))
        batch = batch._replace(reward=tf.zeros_like(batch.reward))
    (variance,) = (v for v in update.variables if "td_variance" in v.name)
    variance.assign(running)
    _, metrics = update(batch)
    of_batch = float(metrics["batch_sigma"])
    assert (of_batch > 0.1) == bool(spread)
    expected = {"running": running**0.5, "batch": of_batch, "least": LEAST_SIGMA}[largest]
    assert float(metrics["sigma"]) == pytest.approx(expected)
    followed = running + SIGMA_RATE * (of_batch**2 - running)
    assert float(variance) == pytest.approx(followed, rel=1e-5)


def test_xla_compiles_targets_and_losses() -> None:
    """Where a GPU is there, the whole update is compiled."""
    rng = np.random.default_rng(0)
    for changes in (SETTINGS["retrace, munchausen"], MEME):
        config = _config(**changes)
        update, batch = make_update(config), make_batch(config)
        shape = (2, config.length + 1, config.batch_size, NUM_ACTIONS)
        both = tf.unstack(tf.constant(rng.normal(size=shape), tf.float32))
        compiled = tf.function(update._compare, autograph=False, jit_compile=True)
        with tf.device("CPU"):
            loss = update._compare(*both, batch).loss
            np.testing.assert_allclose(compiled(*both, batch).loss, loss, rtol=1e-4)
