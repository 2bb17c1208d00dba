"""Q-value discrepancy and limited memory, against loops over single steps of single sequences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from agents.actor import RecurrentActor, make_actor
from agents.contract import Network
from agents.limited_memory import limit_memory
from r2d2 import diagnosis
from r2d2.agent import make
from r2d2.diagnosis import Strategy
from replay.layout import Layout
from replay.structures import FIRST, LAST, NO_ACTION, Nest, NetworkInput, Step
from tests.batches import NUM_ACTIONS, environment_spec
from tests.replay.streams import step_types
from tests.small_agents import small_config

SHAPE, FRAMES, LSTM = (2, 3), 3, 6
# Episodes of so many steps, each followed by its LAST row; the streams' ends are no episode's.
EPISODES = [[9, 2, 7, 4], [5, 13, 4], [30]]
T, N = 22, len(EPISODES)
STEP_TYPES = np.array([step_types(lengths, T) for lengths in EPISODES], np.uint8).T  # [T, N]
ROW = np.arange(T)
# The second environment loses a life on rows 11 and 14, the third on row 4.
LIVES = 3 - np.stack([0 * ROW, 1 * (ROW >= 11) + (ROW >= 14), 1 * (ROW >= 4)], axis=1)
LAYOUT = Layout(burn_in=3, length=5, period=2, frame_stack=FRAMES)
STRATEGIES = [Strategy(stored, burn_in) for stored in (False, True) for burn_in in (0, 1, 3)]


def _network(seed: int) -> Network:
    tf.random.set_seed(seed)
    network = make(small_config("r2d2", frame_stack=FRAMES, lstm_size=LSTM)).make_network(
        environment_spec(SHAPE, np.uint8)
    )
    for variable in network.trainable_variables:
        variable.assign(2.0 * tf.random.normal(variable.shape) / variable.shape[0] ** 0.5)
    return network


def _played(*, resets_on_life_loss: bool = False) -> diagnosis.Played:
    """Random rows, with states that no network made but resets."""
    rng = np.random.default_rng(0)
    recorder = diagnosis.Recorder()
    initial = _network(0).initial_state(N)
    lost = np.zeros_like(STEP_TYPES, bool)
    lost[1:] = resets_on_life_loss & (LIVES[1:] < LIVES[:-1])
    for t in range(T):
        step = Step(
            observation=rng.integers(256, size=(N, *SHAPE)).astype(np.uint8),
            step_type=STEP_TYPES[t],
            lives=LIVES[t].astype(np.uint8),
            action=rng.integers(NUM_ACTIONS, size=N).astype(np.int32),
            log_probability=np.zeros(N, np.float32),
            reward=rng.normal(size=N).astype(np.float32),
            continuation=np.ones(N, np.float32),
        )
        goes_on = ((STEP_TYPES[t] != FIRST) & ~lost[t])[:, None]
        state = tree.map_structure(
            lambda x, goes_on=goes_on: (goes_on * rng.normal(size=x.shape)).astype(np.float32),
            initial,
        )
        recorder.append(step, core_state=state, values={}, learner_step=0)
    return recorder.played(resets_on_life_loss=resets_on_life_loss)


def _episode_start(t: int, n: int) -> int:
    return max(row for row in range(t + 1) if STEP_TYPES[row, n] == FIRST)


def _input(played: diagnosis.Played, t: int, n: int) -> NetworkInput:
    """One row's input `[1, ...]`, frame by frame."""
    start = _episode_start(t, n)
    frames = [
        played.step.observation[row, n] if row >= start else np.zeros(SHAPE, np.uint8)
        for row in range(t - FRAMES + 1, t + 1)
    ]
    first = t == start
    return NetworkInput(
        observation=np.stack(frames, axis=-1)[None],
        previous_action=np.array([NO_ACTION if first else played.step.action[t - 1, n]], np.int32),
        previous_reward=np.array([0 if first else played.step.reward[t - 1, n]], np.float32),
    )


def _state(played: diagnosis.Played, t: int, n: int) -> Nest:
    return tree.map_structure(lambda x: x[t, n][None], played.core_state)


def _naive(
    step: Callable,
    initial: Nest,
    played: diagnosis.Played,
    strategy: Strategy,
    trained: int,
    end: int,
    n: int,
) -> tuple[float, float]:
    """ΔQ of one sequence at its first and its last step."""
    begin = max(trained - strategy.burn_in, _episode_start(trained, n))
    state = _state(played, begin, n) if strategy.stored_state else initial
    q = {}
    for t in range(begin, end):
        state = initial if played.reset[t, n] else state
        q[t], state = step(_input(played, t, n), state)
    largest = max(float(q[t].numpy().max()) for t in range(trained, end))

    def at(t: int) -> float:
        true_q, _ = step(_input(played, t, n), _state(played, t, n))
        return float(np.sqrt(np.sum((q[t] - true_q).numpy() ** 2))) / abs(largest)

    return at(trained), at(end - 1)


def test_inputs_are_rebuilt_as_the_actor_saw_them() -> None:
    played = _played()
    rows, environments = (x.ravel() for x in np.indices((T, N)))
    inputs = diagnosis.network_inputs(played.step, rows, environments, FRAMES)
    for i, (t, n) in enumerate(zip(rows, environments, strict=True)):
        one = tree.map_structure(lambda x, i=i: x[i : i + 1], inputs)
        tree.map_structure(np.testing.assert_array_equal, one, _input(played, t, n))


def test_sequences_are_cut_as_items_are_and_none_begins_an_episode() -> None:
    cuts = diagnosis.cut_sequences(_played(), LAYOUT, count=100, seed=0)
    found = sorted(zip(cuts.environment, cuts.start, cuts.trained, cuts.end, strict=True))
    assert found == [
        # Of nine steps: those from 2 and from 4 on, which is the first to reach the end. Of two
        # steps and of five there is nothing beyond the first. The last seven: from 14 + 2 on.
        (0, 0, 2, 7), (0, 1, 4, 9), (0, 13, 15, 20),
        (1, 6, 8, 13), (1, 7, 10, 15), (1, 9, 12, 17), (1, 11, 14, 19),
        # The unfinished one: all for which the row after is known.
        *[(2, max(0, s - 3), s, s + 5) for s in range(2, T - 5, 2)],
    ]  # fmt: skip
    few = diagnosis.cut_sequences(_played(), LAYOUT, count=4, seed=0)
    assert len(few.trained) == 4
    chosen = set(zip(few.environment, few.trained, strict=True))
    assert len(chosen) == 4
    assert chosen < set(zip(cuts.environment, cuts.trained, strict=True))


def test_without_sequences_inside_an_episode_nothing_can_be_measured() -> None:
    long = Layout(burn_in=0, length=40, period=40)
    with pytest.raises(ValueError, match=r"All 5 sequences begin with an episode.* than 40 steps"):
        diagnosis.cut_sequences(_played(), long, count=10, seed=0)


@pytest.mark.parametrize("resets_on_life_loss", [False, True])
def test_discrepancies_equal_a_naive_loop(resets_on_life_loss: bool) -> None:
    played, network = _played(resets_on_life_loss=resets_on_life_loss), _network(1)
    cuts = diagnosis.cut_sequences(played, LAYOUT, count=100, seed=0)
    inside = played.reset & (STEP_TYPES != FIRST)
    assert inside.sum() == (3 if resets_on_life_loss else 0)
    step = tf.function(network.step)
    measured = diagnosis.q_discrepancies(network, played, cuts, STRATEGIES, FRAMES)
    assert list(measured) == STRATEGIES
    for strategy, found in measured.items():
        expected = [
            _naive(step, network.initial_state(1), played, strategy, trained, end, n)
            for n, trained, end in zip(cuts.environment, cuts.trained, cuts.end, strict=True)
        ]
        np.testing.assert_allclose(np.stack(found, axis=1), expected, rtol=1e-3, atol=1e-5)
        if strategy == (True, 0):
            np.testing.assert_array_equal(found.first, 0)
        else:
            assert (found.first > 0.01).sum() > len(found.first) // 2


def _actor(network: Network, writer: diagnosis.Recorder | diagnosis.Means) -> RecurrentActor:
    agent = make(small_config("r2d2", frame_stack=FRAMES, lstm_size=LSTM))
    policy = agent.make_policy(network, np.arange(N), N, 0)
    return make_actor(agent, network, policy, num_environments=N, writer=writer)


def _play(actor: RecurrentActor) -> None:
    rng = np.random.default_rng(0)
    for step_type, lives in zip(STEP_TYPES, LIVES, strict=True):
        actor.act(rng.integers(256, size=(N, *SHAPE)).astype(np.uint8), step_type, lives)
        actor.observe(rng.normal(size=N).astype(np.float32), step_type != LAST)


def test_with_the_actors_own_parameters_the_stored_state_is_exact_and_zero_is_not() -> None:
    network, recorder = _network(0), diagnosis.Recorder()
    _play(_actor(network, recorder))
    played = recorder.played(resets_on_life_loss=False)
    cuts = diagnosis.cut_sequences(played, LAYOUT, count=100, seed=0)

    measured = diagnosis.q_discrepancies(network, played, cuts, STRATEGIES, FRAMES)
    for strategy, found in measured.items():
        if strategy.stored_state:
            np.testing.assert_allclose(found, 0, atol=1e-4)
        else:
            assert found.first.max() > 0.1
    other = diagnosis.q_discrepancies(_network(1), played, cuts, [Strategy(True, 3)], FRAMES)
    assert other[Strategy(True, 3)].last.max() > 0.1


def test_a_limited_policy_tells_how_far_from_the_unlimited_one_it_is() -> None:
    network = _network(2)
    limited = limit_memory(network, 2)
    policy = tf.function(diagnosis.make_limited_policy(limited, network))
    played = _played()
    state = both = (limited.initial_state(1), network.initial_state(1))
    matches = []
    for t in range(T):
        inputs = _input(played, t, 2)
        output = policy(inputs, both)
        q, limited_state = limited.step(inputs, state[0])
        true_q, unlimited_state = network.step(inputs, state[1])
        state, both = (limited_state, unlimited_state), output.core_state
        assert int(output.action) == int(np.argmax(q))
        matches.append(int(np.argmax(q)) == int(np.argmax(true_q)))
        assert float(output.values["greedy_match"]) == matches[-1]
        difference = abs(float(np.max(q)) - float(np.max(true_q)))
        assert float(output.values["q_difference"]) == pytest.approx(difference, abs=1e-5)
        if t < 2:
            assert difference == pytest.approx(0, abs=1e-5)
    assert 0 < sum(matches) < T


def test_a_limited_policy_gives_actions_of_several_numbers_as_the_environment_takes_them() -> None:
    class Fixed:
        """A network that wants the last of all 2 x 3 actions."""

        actions = specs.BoundedArray((2,), np.int32, [0, 0], [1, 2])

        def step(self, inputs: Any, state: Any) -> tuple[tf.Tensor, Any]:
            return tf.one_hot(tf.fill([4], 5), 6), state

    network: Any = Fixed()
    output = diagnosis.make_limited_policy(network, network)(_input(_played(), 0, 1), ((), ()))
    np.testing.assert_array_equal(output.action, [[1, 2]] * 4)
    np.testing.assert_array_equal(output.values["greedy_match"], np.ones(4))


def test_means_are_over_each_environments_first_episode() -> None:
    means = diagnosis.Means()
    x = np.random.default_rng(0).random((T, N))
    steps = _played().step
    for t in range(T):
        step = tree.map_structure(lambda leaf, t=t: leaf[t], steps)
        values = {"x": x[t], "one": np.ones(N)}
        means.append(step, core_state=(), values=values, learner_step=0)
    counted = [*x[:9, 0], *x[:5, 1], *x[:, 2]]
    assert means.means() == {"x": pytest.approx(np.mean(counted)), "one": 1.0}
