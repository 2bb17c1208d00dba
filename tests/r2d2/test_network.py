"""The dueling head, R2D2's network from its config, and several numbers as one action."""

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from r2d2.agent import VARIANTS, make
from r2d2.learner import R2D2Update
from r2d2.network import MOST_ACTIONS, DuelingHead, JointActions, make_network
from r2d2.policy import make_policy
from replay.structures import NO_ACTION, NetworkInput
from tests.batches import (
    NUM_ACTIONS,
    OBSERVATION_SIZE,
    environment_spec,
    random_batch,
)
from tests.small_agents import ITEMS, small_config

COUNTS = (3, 2, 4)
ACTIONS = specs.BoundedArray((3,), np.int32, 0, np.array(COUNTS) - 1)
SPEC = environment_spec()._replace(actions=ACTIONS)


def test_it_is_numpys_numbering_both_ways() -> None:
    joint = JointActions(ACTIONS)
    assert joint.count == 24
    index = tf.reshape(tf.range(24), [2, 12])
    action = joint.action(index)
    assert (action.shape, action.dtype) == ((2, 12, 3), tf.int32)
    np.testing.assert_array_equal(np.stack(np.unravel_index(index, COUNTS), axis=-1), action)
    np.testing.assert_array_equal(joint.index(action), index)


def test_the_largest_product() -> None:
    assert JointActions(specs.BoundedArray((10,), np.int32, 0, 1)).count == MOST_ACTIONS
    with pytest.raises(ValueError, match=r"2 x 2 x .* = 2,048 combinations .* takes 1,024 at most"):
        JointActions(specs.BoundedArray((11,), np.int32, 0, 1))


def test_the_greedy_combination_is_played() -> None:
    network = make(small_config("r2d2")).make_network(SPEC)
    inputs = NetworkInput(
        np.random.default_rng(0).normal(size=(5, OBSERVATION_SIZE)).astype(np.float32),
        np.full((5, 3), NO_ACTION, np.int32),
        np.zeros(5, np.float32),
    )
    state = network.initial_state(5)
    act = make_policy(small_config("r2d2", epsilon_base=0.0), network, np.arange(5), 5, seed=0)
    output = act(inputs, state)
    q, _ = network.step(inputs, state)
    best = np.stack(np.unravel_index(np.argmax(q, axis=-1), COUNTS), axis=-1)
    np.testing.assert_array_equal(output.action, best)
    np.testing.assert_allclose(output.values["q_taken"], np.max(q, axis=-1))


def test_the_loss_is_that_of_the_numbered_actions() -> None:
    """The same batch, its actions told as one number or as two, gives the same evaluation."""
    config = small_config("r2d2", lstm_size=0)
    batch = random_batch(config, 0, **ITEMS)
    losses = []
    for actions in (
        specs.DiscreteArray(NUM_ACTIONS),
        specs.BoundedArray((2,), np.int32, 0, [0, 2]),
    ):
        tf.random.set_seed(0)
        update = make(config).make_update(SPEC._replace(actions=actions))
        assert isinstance(update, R2D2Update)
        told = batch
        if actions.shape:
            several = tf.stack([tf.zeros_like(batch.action), batch.action], axis=-1)
            previous = batch.inputs.previous_action
            told = batch._replace(
                action=several,
                inputs=batch.inputs._replace(
                    previous_action=tf.stack([tf.zeros_like(previous), previous], axis=-1)
                ),
            )
        losses.append(float(update.evaluate(told).loss))
    assert losses[0] > 0
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_dueling_head_is_value_plus_centred_advantage() -> None:
    head = DuelingHead(num_actions=4, hidden_size=5)
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    actual = head(x).numpy()
    (w_hidden,) = [v.numpy() for v in head._hidden.variables if v.shape.rank == 2]
    value_w, advantage_w = head._value.w.numpy(), head._advantage.w.numpy()
    for b in range(3):  # all biases are still 0
        value = np.maximum(x[b] @ w_hidden[:, :5], 0) @ value_w
        advantage = np.maximum(x[b] @ w_hidden[:, 5:], 0) @ advantage_w
        expected = value + advantage - advantage.sum() / 4
        np.testing.assert_allclose(actual[b], expected, atol=1e-5)
    assert np.ptp(actual, axis=-1).min() > 1e-2


def test_the_papers_network_feeds_the_flattened_convolutions_to_the_lstm() -> None:
    network = make_network(VARIANTS["r2d2"], environment_spec(num_actions=18))
    inputs = NetworkInput(
        tf.zeros([1, 84, 84, 4], tf.uint8), tf.zeros([1], tf.int32), tf.zeros([1])
    )
    q, state = network.step(inputs, network.initial_state(1))
    assert q.shape == (1, 18)
    assert state.hidden.shape == state.cell.shape == (1, 512)
    (w_input,) = [v for v in network.variables if v.name == "lstm/w_input:0"]
    assert w_input.shape == (7 * 7 * 64 + 18 + 1, 4 * 512)
