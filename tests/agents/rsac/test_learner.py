"""Recurrent SAC's update: a batch against an oracle, whose parameters each loss moves, Polyak."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents import random_numbers
from agents.rsac.learner import SACUpdate
from agents.rsac.network import head_of, squash_previous
from replay.structures import Batch, PriorityInput
from tests.batches import VECTORS
from tests.eager import eagerly
from tests.r2d2.oracle import n_step_return, weights
from tests.small_agents import make_agent, make_batch, make_update, small_config
from tests.updates import same


class Oracle(NamedTuple):
    """The numbers that an update should compute of a batch; padding is NaN."""

    q_taken: np.ndarray  # [2, L, B]
    targets: np.ndarray  # [L, B]
    log_probability: np.ndarray  # [L, B], of fresh actions
    policy_term: np.ndarray  # [L, B], α log π − min Q


def oracle(update: SACUpdate, batch: Batch, noise: np.ndarray, config: Any) -> Oracle:
    """The oracle's view, an item and a step at a time; noise is `[L + 1, B, D]`."""
    length, size = config.length, config.batch_size
    alpha = float(np.exp(head_of(update.network).log_temperature))
    q_taken = np.full((2, length, size), np.nan)
    targets, log_probability, policy_term = np.full((3, length, size), np.nan)
    for b in range(size):
        rows: dict[str, list[Any]] = {}
        for name, network in (("online", update.network), ("target", update.target_network)):
            state = tree.map_structure(lambda x, b=b: x[b : b + 1], batch.core_state)
            rows[name] = [None] * len(batch.valid)
            for t in np.flatnonzero(batch.valid[:, b]):
                if batch.reset[t, b]:
                    state = network.initial_state(1)
                row = tree.map_structure(lambda x, t=t, b=b: x[t, b : b + 1], batch.inputs)
                rows[name][t], state = network.step(squash_previous(row), state)
        value, fresh = np.full(length + 1, np.nan), np.full((length + 1, 2), np.nan)
        for t in range(length + 1):
            online, target = (rows[name][config.burn_in + t] for name in ("online", "target"))
            if online is None:
                continue
            mean, log_sigma = (np.asarray(x[0], np.float64) for x in online.policy)
            u = mean + np.exp(log_sigma) * noise[t, b]
            density = np.exp(-0.5 * ((u - mean) / np.exp(log_sigma)) ** 2)
            density /= np.sqrt(2 * np.pi) * np.exp(log_sigma) * (1 - np.tanh(u) ** 2)
            log_pi = np.log(density).sum()
            u = tf.constant(u[None], tf.float32)
            q = head_of(update.target_network).action_values(target.features, u)
            value[t] = min(float(q[0, 0]), float(q[1, 0])) - alpha * log_pi
            least = min(head_of(update.network).action_values(online.features, u).numpy().ravel())
            fresh[t] = log_pi, alpha * log_pi - least
        fields = (batch.reward, config.discount * batch.continuation, batch.mask)
        reward, discount, mask = (x[config.burn_in :, b].numpy() for x in fields)
        for t in np.flatnonzero(mask):
            row = rows["online"][config.burn_in + t]
            action = batch.action[config.burn_in + t, b : b + 1]
            q_taken[:, t, b] = head_of(update.network).action_values(row.features, action)[:, 0]
            targets[t, b] = n_step_return(t, value, reward, discount, mask, config.n_step)
            log_probability[t, b], policy_term[t, b] = fresh[t]
    return Oracle(q_taken, targets, log_probability, policy_term)


def _noise_of(update: SACUpdate, config: Any) -> np.ndarray:
    """The numbers that the update draws next."""
    generator = tf.random.Generator.from_state(update.noise.numpy(), alg="philox")
    shape = [config.length + 1, config.batch_size, *VECTORS.shape]
    noise: np.ndarray = random_numbers.normal(generator, shape).numpy()
    return noise


def _apart(update: SACUpdate) -> None:
    """Gives the target network parameters of its own."""
    for variable in update.target_network.trainable_variables:
        variable.assign_add(0.3 * tf.random.normal(variable.shape))


@pytest.mark.parametrize(("burn_in", "lstm_size"), [(0, 6), (3, 6), (3, 0)])
@eagerly()
def test_update_equals_the_oracle(burn_in: int, lstm_size: int) -> None:
    config = small_config(
        "rsac", burn_in=burn_in, lstm_size=lstm_size, target_entropy=-0.7, initial_temperature=0.4
    )
    num_real = [burn_in + 3, 6, burn_in + 1, burn_in + 6]
    batch = make_batch(config, padding=[0, burn_in, 0, 0], num_real=num_real)
    update = make_update(config)
    _apart(update)
    expected = oracle(update, batch, _noise_of(update, config), config)
    real = batch.mask[burn_in:].numpy() > 0
    assert real.sum(axis=0).tolist() == [3, 6, 1, 6]
    smaller = np.nanargmin(np.where(real, expected.q_taken, 0), axis=0)
    assert 0 < smaller[real].sum() < real.sum()

    state = update.noise.numpy()
    found = update.evaluate(batch)
    update.noise.assign(state)
    np.testing.assert_allclose(found.q_taken.numpy()[:, real], expected.q_taken[:, real], atol=1e-5)
    np.testing.assert_allclose(found.targets[real], expected.targets[real], atol=1e-3)

    of_items = weights(batch, config)

    def mean(x: np.ndarray) -> float:
        return float((of_items * np.nansum(x, axis=0)).sum() / real.size)

    errors = expected.targets - expected.q_taken
    assert float(found.critic_loss) == pytest.approx(mean(0.5 * (errors**2).sum(axis=0)), rel=1e-4)
    assert float(found.policy_loss) == pytest.approx(mean(expected.policy_term), rel=1e-3)
    of_temperature = mean(-0.4 * (expected.log_probability - 0.7))
    assert float(found.temperature_loss) == pytest.approx(of_temperature, rel=1e-3)

    priorities, metrics = update(batch)
    least = np.abs(expected.targets - expected.q_taken.min(axis=0))
    eta = config.eta
    np.testing.assert_allclose(
        priorities,
        eta * np.nanmax(least, axis=0) + (1 - eta) * np.nanmean(least, axis=0),
        rtol=1e-3,
    )
    said = {
        "loss": mean(0.5 * (errors**2).sum(axis=0)),
        "policy_loss": mean(expected.policy_term),
        "temperature": 0.4,
        "entropy": -np.nanmean(expected.log_probability),
        "mean_q": np.nanmean(expected.q_taken.min(axis=0)),
        "mean_target": np.nanmean(expected.targets),
        "mean_abs_td": np.nanmean(least),
        "mean_priority": np.mean(priorities),
    }
    for name, value in said.items():
        assert float(metrics[name]) == pytest.approx(value, rel=1e-3, abs=1e-4), name
    assert (update.noise.numpy() != state).any()


@eagerly()
def test_the_target_entropy_is_minus_the_numbers_of_an_action() -> None:
    by_default, by_hand = (
        make_update(small_config("rsac", target_entropy=entropy)) for entropy in (None, -2.0)
    )
    batch = make_batch(small_config("rsac"))
    losses = [float(update.evaluate(batch).temperature_loss) for update in (by_default, by_hand)]
    assert losses[0] == losses[1] != 0


@pytest.mark.parametrize(("scale", "clips"), [(1.0, False), (1e4, True)])
@eagerly()
def test_the_first_step_by_hand(scale: float, clips: bool) -> None:
    """Adam's first step is −lr g / (|g| + ε). Each loss moves parameters of its own alone."""
    config = small_config("rsac", adam_epsilon=1e-3, max_gradient_norm=40.0)
    update, batch = make_update(config), make_batch(config, reward_scale=scale)
    head = head_of(update.network)
    policy = set(map(id, head.policy_variables))
    state = update.noise.numpy()
    with tf.GradientTape(persistent=True) as tape:
        found = update.evaluate(batch)
    update.noise.assign(state)
    variables = update.network.trainable_variables
    gradients, kinds = [], []
    for variable in variables:
        kind = "policy" if id(variable) in policy else "critic"
        kind = "temperature" if variable is head.log_temperature else kind
        gradients.append(tape.gradient(getattr(found, f"{kind}_loss"), variable).numpy())
        kinds.append(kind)
    assert kinds.count("policy") == 4
    assert kinds.count("critic") > 8
    norms = {
        kind: np.sqrt(sum((g**2).sum() for g, k in zip(gradients, kinds, strict=True) if k == kind))
        for kind in kinds
    }
    assert (norms["critic"] > 40.0) == clips
    before = [v.numpy() for v in variables]
    target = [v.numpy() for v in update.target_network.variables]
    _, metrics = update(batch)
    assert float(metrics["gradient_norm"]) == pytest.approx(norms["critic"], rel=1e-3)
    assert float(metrics["policy_gradient_norm"]) == pytest.approx(norms["policy"], rel=1e-3)
    for x, g, kind, y in zip(before, gradients, kinds, variables, strict=True):
        given = g * 40.0 / norms[kind] if kind != "temperature" and norms[kind] > 40.0 else g
        expected = x - config.learning_rate * given / (np.abs(given) + 1e-3)
        np.testing.assert_allclose(y, expected, atol=2e-5)
    pairs = zip(target, update.network.variables, update.target_network.variables, strict=True)
    for old, online, new in pairs:
        np.testing.assert_allclose(new, old + config.tau * (online.numpy() - old), atol=1e-6)
        assert (new.numpy() != old).any()
    assert int(update.step) == 1


@eagerly()
def test_no_gradient_reaches_the_burn_in_the_state_the_targets_or_the_last_row() -> None:
    """The policy's loss reaches no row at all: its features are the critics'."""
    config = small_config("rsac", burn_in=3)
    update, batch = make_update(config), make_batch(config, num_real=[9] * 4, padding=[0] * 4)
    watched = [batch.inputs.observation, *batch.core_state]
    others = [*update.target_network.trainable_variables]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(watched)
        found = update.evaluate(batch)
    by_row, *by_state = tape.gradient(found.critic_loss, watched)
    by_row = np.abs(by_row.numpy()).sum(axis=(1, 2))
    assert (by_row[:3] == 0).all()
    assert (by_row[3:-1] > 0).all()
    assert by_row[-1] == 0  # which is only bootstrapped from
    assert all(x is None or not x.numpy().any() for x in by_state)
    for loss in (found.critic_loss, found.policy_loss, found.temperature_loss):
        gradients = [tape.gradient(loss, x) for x in others]
        assert all(x is None or not x.numpy().any() for x in gradients)


@eagerly()
def test_the_learner_sees_what_the_actor_logged() -> None:
    """Q of the actions taken, with the state from before the first step."""
    config = small_config("rsac", batch_size=1, burn_in=2)
    update = make_update(config)
    batch = make_batch(config, num_real=[8], padding=[0], terminated=[False])
    agent = make_agent(config)
    policy = agent.make_policy(update.network, np.array([0]), 1, 0)
    state, inputs = batch.core_state, batch.inputs
    actions, values = [], []
    for t in range(len(batch.reset)):
        output = policy(tree.map_structure(lambda x, t=t: x[t], inputs), state)
        state = output.core_state
        actions.append(output.action.numpy())
        values.append(output.values)
    batch = batch._replace(action=tf.constant(np.stack(actions[:-1])))
    seen = update.evaluate(batch)
    logged = {name: np.stack([v[name] for v in values[2:]]) for name in ("q_taken", "value")}
    np.testing.assert_allclose(np.min(seen.q_taken, axis=0), logged["q_taken"][:-1], atol=1e-5)
    later = batch._replace(core_state=tree.map_structure(lambda x: x + 1.0, batch.core_state))
    assert np.abs(update.evaluate(later).q_taken - seen.q_taken).max() > 1e-4
    assert agent.initial_priority is not None
    rows = batch.trained(2)
    fields = (x.numpy() for x in (rows.reward, rows.continuation, rows.life_lost, rows.mask))
    assert agent.initial_priority(PriorityInput(logged, *fields))[0] > 0
    assert agent.estimates(update, values[0], 0) == {"Q": values[0]["q_taken"]}


@eagerly()
def test_the_noise_follows_from_the_global_seed_as_parameters_do() -> None:
    updates = [make_update(small_config("rsac"), seed) for seed in (0, 0, 1)]
    states = [update.noise.numpy() for update in updates]
    assert (states[0] == states[1]).all()
    assert (states[0] != states[2]).any()
    assert same(*[[v.numpy() for v in update.network.variables] for update in updates[:2]])
    assert any(v is updates[0].noise for v in updates[0].variables)
