"""Actions of several numbers as one choice among all their combinations."""

import math

import tensorflow as tf
from acme import specs

from agents.networks.network import choices_of

MOST_ACTIONS = 1_024  # each has a value of its own, and is seldom tried if there are many


class JointActions:
    """Numbers the actions of an environment; replay, actor and environment have them as they are.

        i = (... (a_1 A_2 + a_2) A_3 + ...) + a_D

    Args:
      actions: the spec of the environment's: one number from 0, or several `[D]`.

    Attributes:
      count: Π_d A_d.

    Raises:
      ValueError: they are not discrete, or there are more than `MOST_ACTIONS` of several numbers.
    """

    def __init__(self, actions: specs.BoundedArray) -> None:
        self._counts = choices_of(actions)
        self._is_one = not actions.shape
        self.count = math.prod(self._counts)
        if not self._is_one and self.count > MOST_ACTIONS:
            raise ValueError(
                f"The agent gives each of {' x '.join(map(str, self._counts))} = {self.count:,} "
                f"combinations of actions a value, and takes {MOST_ACTIONS:,} at most; impala has "
                "a policy for each number."
            )

    def index(self, action: tf.Tensor) -> tf.Tensor:
        """Actions `[...]` or `[..., D]` -> `[...]` int32 in 0..count-1."""
        if self._is_one:
            return action
        index = action[..., 0]
        for d, count in enumerate(self._counts[1:], start=1):
            index = index * count + action[..., d]
        return index

    def action(self, index: tf.Tensor) -> tf.Tensor:
        """`[...]` int32 -> actions `[...]` or `[..., D]`."""
        if self._is_one:
            return index
        numbers = []
        for count in reversed(self._counts):
            numbers.append(index % count)
            index //= count
        return tf.stack(numbers[::-1], axis=-1)
