"""Legal actions in heads, policies and targets, against loops over actions."""

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from agents.impala.distributions import Categorical
from agents.legal_actions import ILLEGAL, Legal, legal, shown
from agents.pixel_control import Grid, PixelControlHead
from r2d2.network import DuelingHead
from r2d2.policy import epsilon_greedy
from r2d2.targets import double_q_values
from replay.structures import Batch
from tests.batches import NUM_ACTIONS, environment_spec
from tests.eager import eagerly
from tests.small_agents import make_agent, make_batch, make_update, small_config
from tests.updates import parameters_of

MASKS = np.array([[1, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]], np.uint8)
NUMBERS = [[0, 1, 3], [2], [0, 1, 2, 3], [0, 1, 2, 3], [1, 2]]  # of the legal ones
Q = np.array(
    [[1, 2, 9, 2], [5, 5, -7, 5], [3, 1, 3, 2], [-1, -1, -2, -3], [8, -4, -3, 8]], np.float32
)


def _legal(masks: np.ndarray = MASKS) -> Legal:
    return legal({"action_mask": tf.constant(masks)})


def _best(row: int, numbers: list[int]) -> int:
    """The legal action of the greatest value, the first of equals."""
    return numbers[int(np.argmax([Q[row, a] for a in numbers]))]


def with_masks(batch: Batch, seed: int = 0) -> Batch:
    """The batch with random masks, in which what was done is legal; padding's are zero."""
    rng = np.random.default_rng(seed)
    rows = batch.valid.shape
    masks = rng.random((*rows, NUM_ACTIONS)) < 0.4
    taken = np.pad(batch.action, [[0, 1], [0, 0]])  # any action, where none was taken
    masks |= np.arange(NUM_ACTIONS) == taken[..., None]
    ends = np.pad(batch.mask, [[0, 1], [0, 0]]) == 0
    masks &= ~(ends & (rng.random(rows) < 0.5))[..., None] & np.array(batch.valid)[..., None]
    assert 0.2 < masks[~ends].mean() < 0.9
    assert not masks[ends].any(axis=-1).all()
    observation = {
        "observation": batch.inputs.observation,
        "action_mask": tf.constant(masks, tf.uint8),
    }
    return batch._replace(inputs=batch.inputs._replace(observation=observation))


def masked_spec() -> specs.EnvironmentSpec:
    """The spec of `tests.batches` with a mask beside the observation."""
    spec = environment_spec()
    mask = specs.BoundedArray((NUM_ACTIONS,), np.uint8, 0, 1, "action_mask")
    both = {"action_mask": mask, "observation": spec.observations}
    return spec._replace(observations=both)


def test_a_row_without_a_legal_action_has_all() -> None:
    actions = _legal().actions.numpy()
    assert [np.flatnonzero(row).tolist() for row in actions] == NUMBERS
    np.testing.assert_array_equal(_legal().number(), [len(row) for row in NUMBERS])


def test_epsilon_greedy_equals_a_loop_over_legal_actions() -> None:
    epsilon, draws = 0.6, 20_000
    chances = np.zeros(Q.shape)
    for row, numbers in enumerate(NUMBERS):
        best = _best(row, numbers)  # the first of equals
        for a in numbers:
            chances[row, a] = epsilon / len(numbers) + (1 - epsilon) * (a == best)
    q = _legal().only(tf.constant(Q))
    generator = tf.random.Generator.from_seed(0)
    tiled = Legal(tf.repeat(_legal().actions, draws, axis=0))
    repeated = tf.repeat(q, draws, axis=0)
    action, log_probability = epsilon_greedy(repeated, tf.constant([epsilon]), generator, tiled)
    taken = np.reshape(action, [len(Q), draws])
    frequency = np.array([np.bincount(row, minlength=4) / draws for row in taken])
    np.testing.assert_allclose(frequency, chances, atol=0.015)
    assert (frequency[chances == 0] == 0).all()
    expected = np.take_along_axis(chances, taken, axis=1)
    np.testing.assert_allclose(np.exp(log_probability).reshape(expected.shape), expected, rtol=1e-5)


def test_every_actor_explores_by_its_own_epsilon() -> None:
    q, epsilon = _legal().only(tf.constant(Q)), tf.constant([0.0, 0.9, 0.2, 0.5, 1.0])
    generator = tf.random.Generator.from_seed(0)
    for _ in range(20):
        action, log_probability = epsilon_greedy(q, epsilon, generator, _legal())
        for row, (a, numbers) in enumerate(zip(action.numpy(), NUMBERS, strict=True)):
            best = _best(row, numbers)
            rate = float(epsilon[row])
            chance = rate / len(numbers) + (1 - rate) * (a == best)
            assert a in numbers
            assert np.exp(log_probability[row]) == pytest.approx(chance)


def test_double_q_chooses_and_values_legal_actions_alone() -> None:
    target = np.random.default_rng(0).normal(size=Q.shape).astype(np.float32)
    both = [_legal().only(tf.constant(x)) for x in (Q, target)]
    expected = []
    for row, numbers in enumerate(NUMBERS):
        best = _best(row, numbers)
        expected.append(target[row, best])
    np.testing.assert_array_equal(double_q_values(*both), expected)
    assert (double_q_values(tf.constant(Q), tf.constant(target)) != expected).numpy().any()


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_a_policy_has_the_chances_of_legal_actions_and_their_entropy(dtype: tf.DType) -> None:
    logits = tf.cast(_legal().only(tf.cast(Q, dtype)), tf.float32)
    policy, other = Categorical(logits), Categorical(_legal().only(tf.constant(Q[:, ::-1].copy())))
    generator = tf.random.Generator.from_seed(0)
    draws = np.array([policy.sample(generator) for _ in range(200)])
    for row, numbers in enumerate(NUMBERS):
        weights = np.exp(Q[row, numbers] - Q[row, numbers].max())
        pi = weights / weights.sum()
        rival = np.exp(Q[row, ::-1][numbers])
        rival /= rival.sum()
        entropy = -sum(p * np.log(p) for p in pi)
        divergence = sum(p * np.log(p / q) for p, q in zip(pi, rival, strict=True))
        assert set(draws[:, row]) <= set(numbers)
        assert float(policy.regularisation()[row]) == pytest.approx(-entropy, abs=1e-5)
        assert float(policy.divergence(other)[row]) == pytest.approx(divergence, abs=1e-5)
        for a, p in zip(numbers, pi, strict=True):
            actions = tf.fill([len(Q)], a)
            assert float(policy.log_probability(actions)[row]) == pytest.approx(np.log(p), abs=1e-5)


def test_a_dueling_head_takes_the_mean_of_legal_advantages() -> None:
    head, x = DuelingHead(4, 8), tf.random.normal([len(MASKS), 5])
    plain = head(x).numpy()  # V + A − mean A
    masked = head((x, _legal())).numpy()
    for row, numbers in enumerate(NUMBERS):
        value = plain[row].mean()
        advantage = plain[row] - value  # and so without its mean
        for a in range(4):
            expected = value + advantage[a] - np.mean([advantage[b] for b in numbers])
            assert masked[row, a] == pytest.approx(expected if a in numbers else ILLEGAL, abs=1e-5)


def test_pixel_control_s_head_does_so_in_every_cell() -> None:
    head, x = PixelControlHead(Grid(8, 8), 4), tf.random.normal([len(MASKS), 5])
    plain, masked = head(x).numpy(), head((x, _legal())).numpy()
    for row, numbers in enumerate(NUMBERS):
        value = plain[row].mean(axis=-1, keepdims=True)
        expected = plain[row] - (plain[row] - value)[..., numbers].mean(axis=-1, keepdims=True)
        np.testing.assert_allclose(masked[row][..., numbers], expected[..., numbers], atol=1e-5)
        others = [a for a in range(4) if a not in numbers]
        assert (masked[row][..., others] == ILLEGAL).all()


def test_the_torso_sees_what_is_beside_the_mask() -> None:
    assert shown({"action_mask": 1, "observation": 2}) == 2
    assert shown({"action_mask": 1, "b": 2, "c": 3}) == {"b": 2, "c": 3}
    config = small_config("r2d2")
    tf.random.set_seed(0)
    network = make_agent(config).make_network(masked_spec())
    tf.random.set_seed(0)
    plain = make_agent(config).make_network(environment_spec())
    for ours, theirs in zip(network.variables, plain.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    batch = with_masks(make_batch(config))
    arguments = (batch.core_state, batch.reset, batch.valid)
    q, state = network.unroll(batch.inputs, *arguments)
    bare = batch.inputs._replace(observation=batch.inputs.observation["observation"])
    expected, expected_state = plain.unroll(bare, *arguments)
    tree.map_structure(np.testing.assert_array_equal, state, expected_state)
    allowed = legal(batch.inputs.observation).actions.numpy()
    assert (q.numpy()[~allowed] == ILLEGAL).all()
    # Within a row the legal values differ as they do without a mask.
    difference = np.where(allowed, q.numpy() - expected.numpy(), np.nan)
    spread = np.nanmax(difference, axis=-1) - np.nanmin(difference, axis=-1)
    np.testing.assert_allclose(spread, 0, atol=1e-5)


@pytest.mark.parametrize("name", ["r2d2", "impala", "popart", "stac"])  # RSAC acts by vectors
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@eagerly()
def test_an_update_is_finite_and_leaves_what_was_illegal_alone(name: str, precision: str) -> None:
    config = small_config(name, precision=precision)
    update = make_update(config, spec=masked_spec())
    batch = with_masks(make_batch(config))
    forbidden = NUM_ACTIONS - 1  # nowhere legal, but where nothing is
    masks = np.array(batch.inputs.observation["action_mask"])
    none = ~masks.any(axis=-1)
    masks[..., forbidden] = 0
    masks[..., 0] |= ~none
    batch.inputs.observation["action_mask"] = tf.constant(masks)
    batch = batch._replace(action=tf.where(batch.action == forbidden, 0, batch.action))
    before = parameters_of(update)
    priorities, metrics = update(batch)
    for metric, value in metrics.items():
        assert np.isfinite(value).all(), metric
        assert np.abs(value).max() < 1e6, metric
    assert priorities is None or (np.abs(priorities) < 1e6).all()
    after = parameters_of(update)
    assert all(np.isfinite(x).all() for x in after)
    (layer,) = [i for i, x in enumerate(after) if x.shape == (_inputs_of(name), NUM_ACTIONS)][:1]
    changed = (before[layer] != after[layer]).any(axis=0)
    assert changed[:forbidden].any()
    assert not changed[forbidden]


def _inputs_of(name: str) -> int:
    """Units below the layer of policy or advantages."""
    return {"r2d2": 7, "stac": 8}.get(name, 6)
