"""Frame stacks: the actor's, the learner's, and Atari's own."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from replay.frames import FrameStack, stacked
from replay.structures import Batch, NetworkInput
from tests.batches import bare


def test_stacks_are_oldest_first_and_empty_before_the_episode() -> None:
    stack = FrameStack(3)
    seen = []
    for value, first in [(1, True), (2, False), (3, False), (4, True), (5, False)]:
        frames = np.full((1, 1, 1), value, np.uint8)
        seen.append(stack.push(frames, np.asarray([first]))[0, 0, 0].tolist())
    assert seen == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [0, 0, 4], [0, 4, 5]]


@pytest.mark.parametrize(
    ("shape", "stacked"),
    [
        ((4, 3), (4, 3, 2)),
        ((4, 3, 3), (4, 3, 6)),
        ((5,), (5,)),
        ((), ()),
        ((2, 2, 2, 2), (2, 2, 2, 2)),
    ],
)
def test_only_images_are_stacked(shape: tuple[int, ...], stacked: tuple[int, ...]) -> None:
    observation = np.ones((6, *shape), np.uint8)
    assert FrameStack(2).push(observation, np.ones(6, bool)).shape == (6, *stacked)


def test_what_was_returned_does_not_change_later() -> None:
    stack = FrameStack(2)
    observation = np.ones((1, 1, 1), np.uint8)
    before = stack.push(observation, np.asarray([True]))
    copy = before.copy()
    observation[:] = 7
    after = stack.push(observation, np.asarray([False]))
    np.testing.assert_array_equal(before, copy)
    assert after[0, 0, 0].tolist() == [1, 7]


def _batch(frames: np.ndarray, valid: np.ndarray, reset: np.ndarray) -> Batch:
    """A batch of which stacks know nothing else."""
    inputs = NetworkInput(tf.constant(frames), (), ())
    return bare(inputs=inputs, valid=tf.constant(valid), reset=tf.constant(reset))


@pytest.mark.parametrize("num_frames", [1, 2, 4])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_the_learner_s_stack_is_the_actor_s(num_frames: int, channels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(1, 256, size=(20, 2, 3, 2, *channels), dtype=np.uint8)
    first = rng.random((20, 2)) < 0.3
    first[0] = True
    stack = FrameStack(num_frames)
    acted = np.stack([stack.push(f, now) for f, now in zip(frames, first, strict=True)])

    # A batch begins amid an episode, whose older frames come before its first row.
    begin = 6
    older = frames[begin - num_frames + 1 : begin].copy()
    for age in range(1, num_frames):  # those of another episode are zero
        older[num_frames - 1 - age][first[begin - age + 1 : begin + 1].any(axis=0)] = 0
    newer, valid = frames[begin:].copy(), np.ones((20 - begin, 2), bool)
    newer[-4:, 1], valid[-4:, 1], acted[-4:, 1] = 0, False, 0  # one item ends before the other
    batch = _batch(np.concatenate([older, newer]), valid, first[begin:])
    learned = stacked(batch).inputs.observation
    np.testing.assert_array_equal(learned, acted[begin:])
    np.testing.assert_array_equal(stacked(stacked(batch)).inputs.observation, learned)


def test_equals_atari_s_own_stack_across_resets() -> None:
    from ale_py.vector_env import AtariVectorEnv

    options: dict[str, Any] = {"num_envs": 2, "max_num_frames_per_episode": 60, "noop_max": 5}
    single = AtariVectorEnv("pong", stack_num=1, **options)
    stacked = AtariVectorEnv("pong", stack_num=4, **options)
    frames, _ = single.reset(seed=3)
    expected, _ = stacked.reset(seed=3)
    stack, first, ended = FrameStack(4), np.ones(2, bool), np.zeros(2, bool)
    num_resets = 0
    for t in range(40):
        actual = stack.push(frames.reshape(2, 84, 84), first)
        np.testing.assert_array_equal(np.moveaxis(actual, -1, 1), expected, err_msg=str(t))
        action = np.full(2, t % 6)
        frames, _, terminated, truncated, _ = single.step(action)
        expected = stacked.step(action)[0]
        first, ended = ended, terminated | truncated  # the reset comes one step after the end
        num_resets += int(first.sum())
    assert num_resets >= 2
