"""Cores: what carries a state from one step to the next.

All cores share one interface: `initial_state`, `step` and `unroll`, the last with resets and with
rows that are to be passed over. `snt.LSTM` is not used because it multiplies the inputs at every
step, whereas their product does not depend on the state and can be taken for all steps at once.
`agents.networks.cores` has others.
"""

import importlib
from typing import Protocol

import sonnet as snt
import tensorflow as tf

from agents.networks.layers import initial_weights
from agents.networks.named import FORGET_BIAS
from replay.structures import Nest
from tensor_ops import lstm

_OTHERS = "agents.networks.cores"  # which most runs do without


class Core(Protocol):
    """A recurrent core. Also a `snt.Module`."""

    def initial_state(self, batch_size: int) -> Nest:
        """The state before an episode's first step, `[batch_size, ...]`."""

    def step(self, inputs: tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
        """`[B, D]` and the state before -> `[B, H]` and the state after."""

    def unroll(
        self, inputs: tf.Tensor, state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[tf.Tensor, Nest]:
        """`[T, B, D]` and the state before row 0 -> `[T, B, H]` and the state after row T - 1."""


class LSTM(snt.Module):
    """Long short-term memory (Hochreiter & Schmidhuber 1997).

    It can be differentiated twice.

    Args:
      size: H, units of the hidden state and of the cell.
      dtype: of the product of inputs and weights; all else is float32.
      forget_bias: at which the forget gate's bias begins.
    """

    def __init__(
        self, size: int, dtype: tf.DType = tf.float32, forget_bias: float = FORGET_BIAS
    ) -> None:
        super().__init__()
        self._size = size
        self._dtype = dtype
        self._forget_bias = forget_bias

    def initial_state(self, batch_size: int) -> snt.LSTMState:
        """Zeros, `[batch_size, H]` each."""
        zeros = tf.zeros([batch_size, self._size])
        return snt.LSTMState(hidden=zeros, cell=zeros)

    def step(self, inputs: tf.Tensor, state: snt.LSTMState) -> tuple[tf.Tensor, snt.LSTMState]:
        """`[B, D]` and the state before -> `[B, H]` and the state after."""
        return self.advance(self.project(inputs), state)

    def advance(self, gates: tf.Tensor, state: snt.LSTMState) -> tuple[tf.Tensor, snt.LSTMState]:
        """As `step`, with the inputs' part of the gates `[B, 4H]` known."""
        gates = tf.cast(gates, state.hidden.dtype) + tf.matmul(state.hidden, self._w_hidden)
        hidden, cell = lstm.advance(gates, state.cell)
        return hidden, snt.LSTMState(hidden, cell)

    def unroll(
        self, inputs: tf.Tensor, state: snt.LSTMState, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[tf.Tensor, snt.LSTMState]:
        """T steps; the number of rows must be known when it is traced.

        Args:
          inputs: `[T, B, D]`.
          state: `[B, H]` each, before row 0.
          reset: `[T, B]` bool; the state becomes zero before such a row.
          valid: `[T, B]` bool; a row that is not leaves the state as it is.

        Returns:
          Outputs `[T, B, H]`, which mean nothing on invalid rows, and the state after the last row.
        """
        gates = self._project_rows(inputs)  # makes the variables
        outputs, hidden, cell = lstm.unroll(
            gates, self._w_hidden, state.hidden, state.cell, reset, valid
        )
        return outputs, snt.LSTMState(hidden, cell)

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The inputs' part of the gates: `[N, D]` -> `[N, 4H]`, still in their precision."""
        self._create_variables(inputs)
        inputs, w, bias = (tf.cast(x, self._dtype) for x in (inputs, self._w_input, self._bias))
        return lstm.project(inputs, w, bias)

    def _project_rows(self, inputs: tf.Tensor) -> tf.Tensor:
        """All rows in one matrix product: `[T, B, D]` -> `[T, B, 4H]`."""
        folded = tf.reshape(inputs, [-1, inputs.shape[-1]])  # [T * B, D]
        return tf.reshape(self.project(folded), [*inputs.shape[:1], -1, 4 * self._size])

    @snt.once
    def _create_variables(self, inputs: tf.Tensor) -> None:
        input_size, size = inputs.shape[-1], self._size
        self._w_input = tf.Variable(initial_weights([input_size, 4 * size]), name="w_input")
        self._w_hidden = tf.Variable(initial_weights([size, 4 * size]), name="w_hidden")
        zeros = tf.zeros([size])
        bias = tf.concat([zeros, zeros + self._forget_bias, zeros, zeros], axis=0)
        self._bias = tf.Variable(bias, name="bias")


class NoMemory(snt.Module):
    """The core of a feed-forward network: passes its inputs on, as float32; its state is ()."""

    def initial_state(self, batch_size: int) -> Nest:
        """()."""
        del batch_size
        return ()

    def step(self, inputs: tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
        """`[B, D]` -> the same."""
        return tf.cast(inputs, tf.float32), state

    def unroll(
        self, inputs: tf.Tensor, state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[tf.Tensor, Nest]:
        """`[T, B, D]` -> the same."""
        del reset, valid
        return tf.cast(inputs, tf.float32), state


def make_core(
    size: int,
    dtype: tf.DType = tf.float32,
    kind: str = "lstm",
    forget_bias: float = FORGET_BIAS,
) -> Core:
    """A core of that size; 0 gives a network without memory.

    Args:
      size: units.
      dtype: of its products with its inputs.
      kind: `lstm`, or as `agents.networks.cores.make` takes it.
      forget_bias: of `lstm` and `mingru`, at the start.

    Raises:
      ValueError: as there.
    """
    if not size:
        return NoMemory()
    if kind == "lstm":
        return LSTM(size, dtype, forget_bias)
    made: Core = importlib.import_module(_OTHERS).make(kind, size, dtype, forget_bias)
    return made
