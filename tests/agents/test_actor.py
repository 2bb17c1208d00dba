"""The batched recurrent actor, against streams worked out by hand."""

from typing import Any

import dm_env
import numpy as np
import pytest
import tensorflow as tf
from acme import specs
from acme.tf import variable_utils

from agents.actor import RecurrentActor, Variables, make_evaluator
from agents.contract import Policy
from agents.environment_loop import VectorEnvironmentLoop
from agents.limited_memory import limit_memory
from agents.single_process import AcmeActor
from environments.copies.from_dm import FromDm
from environments.copies.made_singly import Copies
from replay.structures import FIRST, LAST, MID, NO_ACTION
from tensor_ops.loops import fits
from tensor_ops.xla import within_xla
from tests.agents.recording import (
    BOUNDED,
    DISCRETE,
    Recorder,
    Source,
    bounded_policy,
    policy,
    recorded_actor,
    run_episodes,
)
from tests.batches import environment_spec
from tests.small_agents import make_agent, small_config
from tests.tensor_ops.vectors import lanes


def _play(
    actor: RecurrentActor, step_types: list[list[int]], lives: list[list[int]] | None = None
) -> None:
    """Rows whose observation is their number, 1-based, and whose reward is ten times that."""
    for t, step_type in enumerate(step_types):
        n = len(step_type)
        observation = np.full((n, 1), t + 1, np.uint8)
        actor.act(
            observation, np.array(step_type), np.array(lives[t] if lives else [0] * n, np.uint8)
        )
        actor.observe(np.full(n, 10.0 * (t + 1)), np.array([x != LAST for x in step_type]))


TWO_STREAMS = [[FIRST, FIRST], [MID, MID], [LAST, MID], [FIRST, MID], [MID, LAST], [MID, FIRST]]


@pytest.mark.parametrize(("num_environments", "expected"), [(7, [False]), (8, [True])])
def test_loops_are_compiled_for_many_environments(
    num_environments: int, expected: list[bool]
) -> None:
    seen = []

    def watched(*arguments: Any) -> Any:
        seen.append(fits(16))
        return policy(*arguments)

    actor, _ = recorded_actor(num_environments, watched)
    with lanes(16):
        _play(actor, [[FIRST] * num_environments])
        assert fits(16)
    assert seen == expected


def test_a_gpu_is_given_the_policy_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(*arguments: Any) -> Any:
        seen.append(within_xla())
        return policy(*arguments)

    for devices in ([], ["GPU:0"]):
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda _, found=devices: found)
        actor, recorder = recorded_actor(2, watched)
        _play(actor, TWO_STREAMS)
        expected = [[0, 0], [1, 1], [2, 2], [0, 3], [1, 4], [2, 0]]
        assert recorder.column("action").tolist() == expected
    assert seen == [False, True]


def test_rows_are_written_in_order_with_what_followed_them() -> None:
    actor, recorder = recorded_actor()
    _play(actor, TWO_STREAMS)
    np.testing.assert_array_equal(recorder.column("step_type"), TWO_STREAMS)
    assert recorder.column("observation")[:, :, 0].tolist() == [[t, t] for t in range(1, 7)]
    assert recorder.column("reward").tolist() == [[10.0 * t] * 2 for t in range(1, 7)]
    continuation = (np.array(TWO_STREAMS) != LAST).astype(float)
    np.testing.assert_array_equal(recorder.column("continuation"), continuation)
    for name, dtype in dict(
        step_type=np.uint8,
        lives=np.uint8,
        action=np.int32,
        log_probability=np.float32,
        reward=np.float32,
        continuation=np.float32,
        observation=np.uint8,
    ).items():
        assert recorder.column(name).dtype == dtype, name


def test_the_core_state_of_a_row_is_the_one_before_it_with_resets_applied() -> None:
    actor, recorder = recorded_actor()
    _play(actor, TWO_STREAMS)
    core_states = [row.core_state.tolist() for row in recorder.rows]
    assert core_states == [[0, 0], [1, 1], [2, 2], [0, 3], [1, 4], [2, 0]]
    assert recorder.column("action").tolist() == [[0, 0], [1, 1], [2, 2], [0, 3], [1, 4], [2, 0]]
    np.testing.assert_array_equal(
        recorder.column("log_probability"), -1.0 - recorder.column("action")
    )


def test_previous_action_and_reward_are_shifts_that_an_episodes_start_resets() -> None:
    actor, recorder = recorded_actor()
    _play(actor, TWO_STREAMS)
    none = NO_ACTION
    assert recorder.value("previous_action").tolist() == [
        [none, none], [0, 0], [1, 1], [none, 2], [0, 3], [1, none],
    ]  # fmt: skip
    assert recorder.value("previous_reward").tolist() == [
        [0, 0], [10, 10], [20, 20], [0, 30], [40, 40], [50, 0],
    ]  # fmt: skip


def test_bounded_actions_are_written_and_shown_as_they_are_and_none_is_zero() -> None:
    actor, recorder = recorded_actor(policy=bounded_policy, actions=BOUNDED)
    _play(actor, TWO_STREAMS)
    count = np.array([[0, 0], [1, 1], [2, 2], [0, 3], [1, 4], [2, 0]])
    previous = np.array([[0, 0], [0, 0], [1, 1], [0, 2], [0, 3], [1, 0]])
    for actual, expected in (
        (recorder.column("action"), count),
        (recorder.value("previous_action"), previous),
    ):
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, np.stack([expected, -expected], axis=-1) / 100)


def test_an_evaluator_knows_the_actions_from_its_network() -> None:
    agent, recorder = make_agent(small_config("impala")), Recorder()
    network = agent.make_network(environment_spec((1,), np.uint8)._replace(actions=BOUNDED))
    for limited in (network, limit_memory(network, 2)):
        evaluator = make_evaluator(agent, limited, num_environments=2, seed=0, writer=recorder)
        _play(evaluator, TWO_STREAMS)
    assert recorder.column("action").shape == (2 * len(TWO_STREAMS), 2, 2)


@pytest.mark.parametrize(
    ("resets", "core_states"),
    [
        (False, [0, 1, 2, 3, 4, 0, 1]),
        # Row 2 has one life less, row 3 a life won. Row 4's LAST has lost both; row 5 begins an
        # episode with three again.
        (True, [0, 1, 0, 1, 0, 0, 1]),
    ],
)
def test_a_lost_life_resets_the_core_state_if_it_should(
    resets: bool, core_states: list[float]
) -> None:
    actor, recorder = recorded_actor(1, resets_on_life_loss=resets)
    step_types = [[FIRST], [MID], [MID], [MID], [LAST], [FIRST], [MID]]
    _play(actor, step_types, lives=[[3], [3], [2], [3], [1], [3], [3]])
    assert [row.core_state.item() for row in recorder.rows] == core_states
    # A life is no episode: what was done before is still known.
    assert recorder.value("previous_action")[2].item() == 1
    assert recorder.column("lives")[:, 0].tolist() == [3, 3, 2, 3, 1, 3, 3]


def test_frames_are_stacked_for_the_network_and_stored_single() -> None:
    actor, recorder = recorded_actor(2, frame_stack=3)
    for t, step_type in enumerate(TWO_STREAMS):
        frames = np.full((2, 1, 1), t + 1, np.uint8)  # [N, H, W]
        actor.act(frames, np.array(step_type), np.zeros(2, np.uint8))
        actor.observe(np.zeros(2), np.ones(2))
    assert recorder.column("observation").shape == (6, 2, 1, 1)
    newest, oldest = (recorder.value(name).tolist() for name in ("newest", "oldest"))
    assert newest == [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6]]
    assert oldest == [[0, 0], [0, 0], [1, 1], [0, 2], [0, 3], [4, 0]]


def test_outcome_and_action_take_turns() -> None:
    actor, _ = recorded_actor(1)
    arguments = np.zeros((1, 1), np.uint8), np.array([FIRST]), np.zeros(1, np.uint8)
    with pytest.raises(RuntimeError, match="Cannot observe: no action was chosen"):
        actor.observe(np.zeros(1), np.ones(1))
    actor.act(*arguments)
    with pytest.raises(RuntimeError, match="Cannot act: the outcome of the previous action"):
        actor.act(*arguments)


def test_the_learner_step_of_the_parameters_in_use_is_written() -> None:
    learner_step = tf.Variable(0, dtype=tf.int64)
    source = Source([])
    client = variable_utils.VariableClient(source, {"policy": [learner_step]}, update_period=1)
    actor, recorder = recorded_actor(1, variables=Variables(client, learner_step))
    row = np.zeros((1, 1), np.uint8), np.zeros(1, np.uint8)
    for step_type in (FIRST, MID, MID):
        actor.act(row[0], np.array([step_type]), row[1])
        actor.observe(np.zeros(1), np.ones(1))
        actor.update(wait=True)
    assert [row.learner_step for row in recorder.rows] == [0, 1, 2]
    assert actor.learner_step == 3


# Episodes as (rewards, whether the last of them terminates or is cut off).
EPISODES = [([1.0, 2.0, 3.0], True), ([4.0], True), ([5.0, 6.0], False), ([7.0, 8.0], True)]


def _observation(episode: int, step: int) -> np.ndarray:
    return np.array([10 * episode + step], np.float32)


class Scripted(dm_env.Environment):
    """Plays `EPISODES` for ever, and takes only actions of its spec.

    Its discounts are not all 0 or 1: any but 0 goes on, for a learner has a discount of its own.
    """

    def __init__(self, actions: specs.BoundedArray) -> None:
        self._actions = actions
        self._episode = -1

    def reset(self) -> dm_env.TimeStep:
        self._episode, self._step = self._episode + 1, 0
        return dm_env.restart(_observation(self._episode, 0))

    def step(self, action: Any) -> dm_env.TimeStep:
        self._actions.validate(action)
        rewards, terminates = EPISODES[self._episode % len(EPISODES)]
        reward = rewards[self._step]
        self._step += 1
        observation = _observation(self._episode, self._step)
        if self._step < len(rewards):
            return dm_env.transition(reward, observation, discount=0.5)
        end = dm_env.termination if terminates else dm_env.truncation
        return end(reward, observation)

    def observation_spec(self) -> specs.Array:
        return specs.Array((1,), np.float32)

    def action_spec(self) -> specs.BoundedArray:
        return self._actions


@pytest.mark.parametrize(("policy", "actions"), [(policy, DISCRETE), (bounded_policy, BOUNDED)])
def test_acmes_loop_and_the_vector_loop_write_the_same_rows(
    policy: Policy, actions: specs.BoundedArray
) -> None:
    from_acme, from_vector = Recorder(), Recorder()
    num_rows = sum(len(rewards) + 1 for rewards, _ in EPISODES)

    actor, _ = recorded_actor(1, policy, actions=actions, writer=from_acme)
    run_episodes(Scripted(actions), AcmeActor(actor), len(EPISODES))

    environments = Copies(lambda: FromDm(Scripted(actions)), 1)
    actor, _ = recorded_actor(1, policy, actions=actions, writer=from_vector)
    vector_loop = VectorEnvironmentLoop(environments, actor, ["scripted"])
    steps, episodes = 0, []
    for _ in range(num_rows):
        new_steps, ended = vector_loop.step()
        steps += new_steps
        episodes += ended

    assert len(from_acme.rows) == len(from_vector.rows) == num_rows
    for acme_row, vector_row in zip(from_acme.rows, from_vector.rows, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, acme_row, vector_row)
    step_types = from_acme.column("step_type")[:, 0].tolist()
    assert step_types == [0, 1, 1, 2, 0, 2, 0, 1, 2, 0, 1, 2]
    continuation = from_acme.column("continuation")[:, 0].tolist()
    assert continuation == [1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 1]  # cut off: 1
    assert steps == num_rows - len(EPISODES)
    assert [e.episode_return for e in episodes] == [6, 4, 11, 15]
