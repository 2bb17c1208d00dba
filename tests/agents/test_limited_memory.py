"""Memory of k inputs: against unrolls from zero over each step's last k inputs, one at a time."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.actor import make_evaluator
from agents.contract import Agent, Network
from agents.limited_memory import limit_memory
from replay.structures import FIRST, LAST, MID, Nest, NetworkInput
from tests.batches import NUM_ACTIONS, OBSERVATION_SIZE, environment_spec
from tests.small_agents import make_agent, small_config

# Two streams: episodes of 4, 1 and 5 rows, and one that goes on, which loses a life on row 6.
STEP_TYPES = [
    [FIRST, FIRST], [MID, MID], [MID, MID], [LAST, MID], [FIRST, MID],
    [FIRST, MID], [MID, MID], [MID, MID], [MID, MID], [LAST, MID],
]  # fmt: skip
LIVES = [[3, 3]] * 6 + [[3, 2]] * 4
T, N = len(STEP_TYPES), 2


def _agent(name: str, **changes: Any) -> Agent:
    return make_agent(small_config(name, **changes))


def _network(agent: Agent) -> Network:
    """A network with weights so large that memory matters."""
    tf.random.set_seed(0)
    network = agent.make_network(environment_spec())
    for variable in network.trainable_variables:
        variable.assign(variable + 0.5 * tf.random.normal(variable.shape))
    return network


def _inputs() -> NetworkInput:
    rng = np.random.default_rng(0)
    return NetworkInput(
        tf.constant(rng.normal(size=(T, N, OBSERVATION_SIZE)), tf.float32),
        tf.constant(rng.integers(NUM_ACTIONS, size=(T, N)), tf.int32),
        tf.constant(rng.normal(size=(T, N)), tf.float32),
    )


def _begins(*, lives: bool = False) -> np.ndarray:
    """The row that each row's memory may reach back to, `[T, N]`."""
    begins = np.zeros((T, N), int)
    for n in range(N):
        for t in range(1, T):
            anew = STEP_TYPES[t][n] == FIRST or (lives and LIVES[t][n] < LIVES[t - 1][n])
            begins[t, n] = t if anew else begins[t - 1, n]
    return begins


def _from_zero(network: Network, inputs: NetworkInput, t: int, n: int, since: int) -> Nest:
    """Row t's outputs in environment n, the core being zero before row `since`."""
    state = network.initial_state(1)
    for row in range(since, t + 1):
        one = tree.map_structure(lambda x, row=row: x[row, n : n + 1], inputs)
        outputs, state = network.step(one, state)
    return outputs


def _play(network: Network, inputs: NetworkInput) -> list[Nest]:
    """The outputs `[N, ...]` of T steps, the state reset where an episode begins."""
    step, outputs = tf.function(network.step), []
    initial = state = network.initial_state(N)
    for t in range(T):
        first = tf.constant(STEP_TYPES[t]) == FIRST

        def reset(x: tf.Tensor, zero: tf.Tensor, first: tf.Tensor = first) -> tf.Tensor:
            return tf.where(tf.reshape(first, [N] + [1] * (len(x.shape) - 1)), zero, x)

        state = tree.map_structure(reset, state, initial)
        row, state = step(tree.map_structure(lambda x, t=t: x[t], inputs), state)
        outputs.append(row)
    return outputs


def _assert_close(x: Nest, y: Nest) -> None:
    tree.map_structure(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), x, y)


def _distance(xs: list[Nest], ys: list[Nest]) -> float:
    differences = tree.map_structure(lambda a, b: float(np.abs(a - b).max()), xs, ys)
    return max(tree.flatten(differences))


@pytest.mark.parametrize(
    ("name", "core"),
    [*(("r2d2", core) for core in ("lstm", "gru", "lru", "sonnet:LSTM")), ("impala", "lstm")],
)
def test_outputs_are_those_of_the_last_k_inputs_of_the_episode(name: str, core: str) -> None:
    network = _network(_agent(name, core=core))
    unlimited = _play(network, _inputs())
    for k in (1, 2, 3, T - 1):
        outputs = _play(limit_memory(network, k), _inputs())
        for t, n in np.ndindex(T, N):
            since = max(_begins()[t, n], t - k + 1)
            of_one = tree.map_structure(lambda x, n=n: x[n : n + 1], outputs[t])
            _assert_close(of_one, _from_zero(network, _inputs(), t, n, since))
        assert _distance(outputs, unlimited) > (0.05 if k < 4 else 1e-4)
    for k in (T, T + 3):  # beyond the episode there is none
        _assert_close(_play(limit_memory(network, k), _inputs()), unlimited)


@pytest.mark.parametrize("life_loss", ["none", "reset"])
def test_an_evaluator_plays_with_it(life_loss: Any) -> None:
    """Its own resets, previous actions and rewards; a life may reset the core."""
    agent = _agent("r2d2", life_loss=life_loss)
    network = _network(agent)
    evaluator = make_evaluator(agent, limit_memory(network, 3), num_environments=N, seed=0)
    observations, _, rewards = (np.asarray(x) for x in _inputs())
    actions = []
    for t in range(T):
        step_type, lives = np.array(STEP_TYPES[t]), np.array(LIVES[t], np.uint8)
        actions.append(evaluator.act(observations[t], step_type, lives))
        evaluator.observe(rewards[t], np.ones(N))

    first = np.array(STEP_TYPES) == FIRST
    shifted = [np.concatenate([x[:1], x[:-1]]) for x in (np.array(actions), rewards)]
    seen = NetworkInput(
        _inputs().observation,
        tf.constant(np.where(first, -1, shifted[0]), tf.int32),
        tf.constant(np.where(first, 0, shifted[1]), tf.float32),
    )
    begins = _begins(lives=life_loss == "reset")
    for t, n in np.ndindex(T, N):
        q = _from_zero(network, seen, t, n, max(begins[t, n], t - 2))[0].numpy()
        assert actions[t][n] == q.argmax()
    assert len({int(a) for row in actions for a in row}) > 1
    changed = _begins(lives=True) != _begins()
    assert changed.sum() == T - 6


def test_what_cannot_be_limited_is_refused() -> None:
    with pytest.raises(ValueError, match=r"memory_steps must be at least 1, .* got 0"):
        limit_memory(_network(_agent("r2d2")), 0)
    with pytest.raises(ValueError, match=r"memory_steps=4 limits a recurrent .* is feed-forward"):
        limit_memory(_network(_agent("r2d2", lstm_size=0)), 4)
