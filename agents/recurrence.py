"""The LSTM's recurrence over an unroll, with its gradient written out.

Differentiated automatically, each of T steps adds its own [H, 4H] to the gradient of the weights:
T thin matrix products and T large sums. Written out, the steps only pass the state's gradient
back, and one product over all T x B rows gives that of the weights:

    ∂L/∂W = Σ_t h_{t−1}ᵀ ∂L/∂z_t = [h_0 … h_{T−1}]ᵀ [∂L/∂z_1 … ∂L/∂z_T]

What a step does between two matrix products is compiled into one loop over its elements: as single
operations they would be too short for two cores. All of it can be differentiated a second time.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

Gradients = tuple[tf.Tensor, ...]


class Step(NamedTuple):
    """What one step leaves behind for its gradient; `[B, H]` each, the last two `[B, 1]`."""

    hidden_tm1: tf.Tensor
    cell_tm1: tf.Tensor
    write: tf.Tensor  # these four after their sigmoid or tanh
    forget: tf.Tensor
    candidate: tf.Tensor
    read: tf.Tensor
    cell_tanh: tf.Tensor
    valid: tf.Tensor
    reset: tf.Tensor  # before the row that follows


def unroll(
    gates: tf.Tensor,
    w_hidden: tf.Tensor,
    hidden: tf.Tensor,
    cell: tf.Tensor,
    reset: tf.Tensor,
    valid: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """T steps of the cell; the number of rows must be known when it is traced.

        i, f, g, o = σ(z_i), σ(z_f), tanh(z_g), σ(z_o),   z_t = gates_t + h_{t−1} W
        c_t = f c_{t−1} + i g,   h_t = o tanh(c_t)

    Args:
      gates: `[T, B, 4H]`, the inputs' part of z, of any floating type; all else is float32.
      w_hidden: `[H, 4H]`, W.
      hidden: `[B, H]`, before row 0.
      cell: `[B, H]`, before row 0.
      reset: `[T, B]` bool; the state becomes zero before such a row, if it is valid.
      valid: `[T, B]` bool; a row that is not leaves the state as it is.

    Returns:
      Outputs `[T, B, H]`, which mean nothing on invalid rows, and hidden and cell after the last.
    """
    resets = tf.unstack((reset & valid)[..., tf.newaxis])  # T of [B, 1]
    valids = tf.unstack(valid[..., tf.newaxis])
    following = [*resets[1:], tf.zeros_like(resets[0])]

    @tf.custom_gradient
    def run(
        gates: tf.Tensor, w_hidden: tf.Tensor, hidden: tf.Tensor, cell: tf.Tensor
    ) -> tuple[Gradients, Callable[..., Gradients]]:
        steps, outputs = [], []
        for t, row in enumerate(tf.unstack(gates)):
            product = tf.matmul(hidden, w_hidden)
            step, output, hidden, cell = _advance(
                row, product, hidden, cell, valids[t], following[t]
            )
            steps.append(step)
            outputs.append(output)

        def gradient(*of_results: tf.Tensor) -> Gradients:
            of_gates, *of_others = _gradient(steps, w_hidden, *of_results)
            return tf.cast(of_gates, gates.dtype), *of_others

        return (tf.stack(outputs), hidden, cell), gradient

    hidden, cell = (tf.where(resets[0], tf.zeros_like(x), x) for x in (hidden, cell))
    outputs, hidden, cell = run(gates, w_hidden, hidden, cell)
    return outputs, hidden, cell


@tf.function(jit_compile=True, autograph=False)
def _advance(
    row: tf.Tensor,
    product: tf.Tensor,
    hidden: tf.Tensor,
    cell: tf.Tensor,
    valid: tf.Tensor,
    reset: tf.Tensor,
) -> tuple[Step, tf.Tensor, tf.Tensor, tf.Tensor]:
    """One step of the cell: what it leaves behind, its output, and the state before the next."""
    write, forget, candidate, read = tf.split(tf.cast(row, tf.float32) + product, 4, axis=1)
    write, forget, read = tf.sigmoid(write), tf.sigmoid(forget), tf.sigmoid(read)
    candidate = tf.tanh(candidate)
    after = forget * cell + write * candidate
    cell_tanh = tf.tanh(after)
    output = read * cell_tanh
    step = Step(hidden, cell, write, forget, candidate, read, cell_tanh, valid, reset)
    zeros = tf.zeros_like(cell)
    hidden = tf.where(reset, zeros, tf.where(valid, output, hidden))
    cell = tf.where(reset, zeros, tf.where(valid, after, cell))
    return step, output, hidden, cell


def _gradient(
    steps: Sequence[Step],
    w_hidden: tf.Tensor,
    of_outputs: tf.Tensor,
    of_hidden: tf.Tensor,
    of_cell: tf.Tensor,
) -> Gradients:
    """From the gradients of `run`'s results to those of its arguments."""
    of_gates = []
    product = tf.zeros_like(of_hidden)
    rows = tf.unstack(of_outputs)
    for t in reversed(range(len(steps))):
        of_row, of_hidden, of_cell = _retreat(steps[t], rows[t], of_hidden + product, of_cell)
        of_gates.append(of_row)
        product = tf.matmul(of_row, w_hidden, transpose_b=True)
    of_gates.reverse()
    hidden_tm1 = tf.concat([step.hidden_tm1 for step in steps], axis=0)  # [T * B, H]
    of_w = tf.matmul(hidden_tm1, tf.concat(of_gates, axis=0), transpose_a=True)
    return tf.stack(of_gates), of_w, of_hidden + product, of_cell


@tf.function(jit_compile=True, autograph=False)
def _retreat(
    step: Step, of_output: tf.Tensor, of_hidden: tf.Tensor, of_cell: tf.Tensor
) -> Gradients:
    """One step back: the gradients of z_t `[B, 4H]`, and of the state but for h_{t−1} W."""
    zeros = tf.zeros_like(of_hidden)
    of_hidden, of_cell = (tf.where(step.reset, zeros, x) for x in (of_hidden, of_cell))
    kept_hidden, kept_cell = (tf.where(step.valid, zeros, x) for x in (of_hidden, of_cell))
    of_hidden, of_cell = (tf.where(step.valid, x, zeros) for x in (of_hidden, of_cell))
    of_hidden += of_output
    of_cell += of_hidden * step.read * (1.0 - tf.square(step.cell_tanh))
    of_row = [
        of_cell * step.candidate * step.write * (1.0 - step.write),
        of_cell * step.cell_tm1 * step.forget * (1.0 - step.forget),
        of_cell * step.write * (1.0 - tf.square(step.candidate)),
        of_hidden * step.cell_tanh * step.read * (1.0 - step.read),
    ]
    return tf.concat(of_row, axis=1), kept_hidden, kept_cell + of_cell * step.forget
