"""Reward transforms on both sides of every bound."""

import numpy as np
import pytest
import tensorflow as tf

from agents.masking import RewardTransform, transform_reward


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", [-30.0, -1.0, -0.5, 0.0, 0.5, 1.0, 30.0]),
        ("clip", [-1.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.0]),
        ("asymmetric", [-0.3, -0.228478, -0.138635, 0.0, 2.310586, 3.807971, 5.0]),
    ],
)
def test_reward_transforms(kind: RewardTransform, expected: list[float]) -> None:
    reward = tf.constant([-30.0, -1.0, -0.5, 0.0, 0.5, 1.0, 30.0])
    np.testing.assert_allclose(transform_reward(reward, kind), expected, atol=1e-6)
