"""Memory of the last k inputs only (Kapturowski et al. 2019, Section 5 and Figure 5).

At step t the outputs are a core's that is unrolled over o_{t−k+1}, ..., o_t and began with zero
instead of h_{t−k}. k unrolls are under way at a time, each one input longer than the next, so
that a step of time is one step of each, in one batch, and not k steps of one:

    time           0     1     2     3     4        k = 3; (1 2) is the state after inputs 1 and 2
    longest      (   ) (0  ) (0 1) (1 2) (2 3)      the outputs of this time begin with it
                 (   ) (0  ) (1  ) (2  ) (3  )
    shortest     (   ) (   ) (   ) (   ) (   )      always the initial state

These states are the core's state. So a reset of the core, by an episode's first step or a lost
life, resets all of them, and none reaches further back: until k inputs are there, memory is not
limited.
"""

import sonnet as snt
import tensorflow as tf
import tree

from agents.contract import Network
from agents.networks.core import LSTM, Core, NoMemory
from agents.networks.network import RecurrentNetwork
from replay.structures import Nest


def limit_memory(network: Network, memory_steps: int) -> RecurrentNetwork:
    """The same network, with the same variables, remembering no more than its last k inputs.

    One input is what `NetworkInput` holds: a stack of frames, the previous action and the previous
    reward. With k = 1 the network sees nothing else, as if every step were an episode's first; with
    k of at least an episode's length it plays as without a limit.

    It is for acting: its state is k times as large, and it takes k times as many steps of its core,
    while the torso and the product with an LSTM's inputs are computed once.

    Args:
      network: an agent's, its variables made.
      memory_steps: k, inputs that outputs depend on, the present one included. The paper's axis
        ends at 0, which by its formula would be a policy that sees nothing.

    Raises:
      ValueError: if k is less than 1, or the network has no memory to limit.
    """
    if memory_steps < 1:
        raise ValueError(
            f"memory_steps must be at least 1, which is the present input alone, "
            f"got {memory_steps}."
        )
    if not isinstance(network, RecurrentNetwork) or isinstance(network.core, NoMemory):
        raise ValueError(
            f"memory_steps={memory_steps} limits a recurrent core's memory, and this network is "
            f"feed-forward."
        )
    return network.with_core(LimitedMemory(network.core, memory_steps))


class LimitedMemory(snt.Module):
    """A core that remembers its last k inputs: `agents.networks.core.Core` but for `unroll`.

    Args:
      core: its variables exist.
      memory_steps: k.
    """

    def __init__(self, core: Core, memory_steps: int) -> None:
        super().__init__()
        self._core = core
        self._memory_steps = memory_steps

    def initial_state(self, batch_size: int) -> Nest:
        """Zeros, `[batch_size, k, ...]`: the states of k unrolls, the shortest first."""
        initial = self._core.initial_state(batch_size)
        return tree.map_structure(lambda x: tf.repeat(x[:, None], self._memory_steps, 1), initial)

    def step(self, inputs: tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
        """`[B, D]` and the state before -> the longest unroll's `[B, H]` and the state after."""
        k = self._memory_steps
        folded = tree.map_structure(lambda x: tf.reshape(x, [-1, *x.shape[2:]]), state)
        if isinstance(self._core, LSTM):
            gates = tf.repeat(self._core.project(inputs), k, axis=0)  # [B * k, 4H]
            outputs, after = self._core.advance(gates, folded)  # [B * k, H]
        else:
            outputs, after = self._core.step(tf.repeat(inputs, k, axis=0), folded)
        begun = self._core.initial_state(tf.shape(inputs)[0])

        def advanced(longer: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
            unrolls = tf.reshape(longer, [-1, k, *longer.shape[1:]])
            return tf.concat([new[:, None], unrolls[:, :-1]], axis=1)  # [B, k, ...]

        return outputs[k - 1 :: k], tree.map_structure(advanced, after, begun)
