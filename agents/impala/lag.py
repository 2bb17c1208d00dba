"""A network that stays k updates behind another (Espeholt et al. 2018, Figure D.1)."""

import tensorflow as tf

from agents.contract import Network


class LaggedCopy(tf.Module):
    """Keeps the parameters of `copy` those that `network` had `lag` updates ago.

    Before there were that many, they are those it began with.

        updates of network   0   1   2   3   4        lag = 2
        copy's parameters    0   0   0   1   2
        rows of history     0 0 0 0 0 1 2 1 2 3       row n mod lag is overwritten by update n + 1

    Args:
      network: is updated; its variables exist.
      copy: another of the same make.
      lag: at least 1.
    """

    def __init__(self, network: Network, copy: Network, lag: int) -> None:
        super().__init__(name="lagged_copy")
        self._network = network
        self._copy = copy
        self._lag = lag
        self._history = [
            tf.Variable(tf.stack([v] * lag), trainable=False, name="history")  # [lag, ...]
            for v in network.variables
        ]
        for mine, theirs in zip(copy.variables, network.variables, strict=True):
            mine.assign(theirs)

    def before_update(self, learner_steps: tf.Tensor) -> None:
        """Remembers the network's parameters, and sets the copy's to what they are due to be.

        Args:
          learner_steps: the network's so far, the one that follows excluded.
        """
        write, read = learner_steps % self._lag, (learner_steps + 1) % self._lag
        variables = zip(self._copy.variables, self._network.variables, self._history, strict=True)
        for mine, theirs, history in variables:
            history.scatter_update(tf.IndexedSlices(theirs[tf.newaxis], write[tf.newaxis]))
            mine.assign(history[read])
