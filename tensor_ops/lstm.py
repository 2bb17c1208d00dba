"""The LSTM's recurrence over an unroll, with the order of its gradient written out.

Differentiated automatically, each of T steps adds its own [H, 4H] to the gradient of the weights:
T thin matrix products and T large sums. Here the steps only pass the state's gradient back, and one
product over all T x B rows gives the gradient of the weights:

    ∂L/∂W = Σ_t h_{t−1}ᵀ ∂L/∂z_t = [h_0 … h_{T−1}]ᵀ [∂L/∂z_1 … ∂L/∂z_T]

On a processor with vectors for the units all steps are one loop, forwards and backwards, in which
each core takes some items through all steps (`lstm_code`). Elsewhere, and for second derivatives,
steps are operations of TensorFlow's: those between two matrix products are compiled into one loop
over elements, since single operations would be too short for two cores. The way back computes a
step's activations again, which costs less than storing them.

Where XLA compiles a whole update, as for a GPU, the steps are a loop of its own, forwards and
backwards: unrolled, they would take it minutes to compile.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from tensor_ops import lstm_code, vector_code, xla
from tensor_ops.elementwise import add_bias
from tensor_ops.loops import Output, fits, in_parts, num_threads

_ALIGNMENT = 8  # numbers

Gradients = tuple[tf.Tensor, ...]


class Step(NamedTuple):
    """The inputs of one step."""

    row: tf.Tensor  # [B, 4H], the inputs' part of z_t
    product: tf.Tensor  # [B, 4H], h_{t−1} W
    hidden: tf.Tensor  # [B, H], h_{t−1}
    cell: tf.Tensor  # [B, H], c_{t−1}
    valid: tf.Tensor  # [B, 1]
    reset: tf.Tensor  # [B, 1], before the row that follows


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
        make = _loop if xla.within_xla() else _code if fits(hidden.shape[1]) else _steps
        results, backwards = make(gates, w_hidden, hidden, cell, valids, following)

        def gradient(*of_results: tf.Tensor) -> Gradients:
            # TensorFlow gives the gradient of gathered rows as slices.
            of_gates, *of_others = backwards(*map(tf.convert_to_tensor, of_results))
            return tf.cast(of_gates, gates.dtype), *of_others

        return results, gradient

    hidden, cell = (tf.where(resets[0], tf.zeros_like(x), x) for x in (hidden, cell))
    outputs, hidden, cell = run(gates, w_hidden, hidden, cell)
    return outputs, hidden, cell


def project(inputs: tf.Tensor, w: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The inputs' part of z: `[N, D]`, `[D, 4H]` and `[4H]` -> `[N, 4H]`."""
    if xla.within_xla():
        inputs, w = _aligned(inputs, w)
    return add_bias(tf.matmul(inputs, w), b)


def _aligned(x: tf.Tensor, w: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """x and w, padded by columns and rows of zeros for a GPU's matrix units.

    With an odd number of columns cuBLAS takes twice the time.
    """
    more = -w.shape[0] % _ALIGNMENT
    return tf.pad(x, [[0, 0], [0, more]]), tf.pad(w, [[0, more], [0, 0]])


def advance(z: tf.Tensor, cell: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The cell's equations: z_t `[B, 4H]` and c_{t−1} -> h_t and c_t, `[B, H]` each."""
    write, forget, candidate, read = tf.split(z, 4, axis=1)
    cell = tf.sigmoid(forget) * cell + tf.sigmoid(write) * tf.tanh(candidate)
    return tf.sigmoid(read) * tf.tanh(cell), cell


def _step(step: Step) -> Gradients:
    """The output, and the state before the next step; `[B, H]` each."""
    output, cell = advance(tf.cast(step.row, step.product.dtype) + step.product, step.cell)
    state = (
        tf.where(step.valid, output, step.hidden),
        tf.where(step.valid, cell, step.cell),
    )
    return output, *(tf.where(step.reset, tf.zeros_like(x), x) for x in state)


@xla.compiled
def _advance(step: Step) -> Gradients:
    return _step(step)


def _gradients_of_step(step: Step, of_results: Gradients) -> Gradients:
    """The gradients of z_t, and of the state before the step without the part by h_{t−1} W."""
    arguments = (step.product, step.hidden, step.cell)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(arguments)
        results = _step(step)
    gradients: Gradients = tape.gradient(results, arguments, output_gradients=of_results)
    return gradients


@xla.compiled
def _retreat(step: Step, of_results: Gradients) -> Gradients:
    return _gradients_of_step(step, of_results)


@xla.compiled
def _turned(w: tf.Tensor) -> tf.Tensor:
    """`[H, 4H]` -> `[4H, H]`, once for all steps.

    oneDNN's product of few rows with a transposed matrix takes two to seven times as long, and
    TensorFlow would fuse a transposition that it can see into every product.
    """
    return tf.transpose(w)


def _steps(
    gates: tf.Tensor,
    w_hidden: tf.Tensor,
    hidden: tf.Tensor,
    cell: tf.Tensor,
    valids: Sequence[tf.Tensor],
    resets: Sequence[tf.Tensor],
) -> tuple[Gradients, Callable[..., Gradients]]:
    """Outputs `[T, B, H]`, hidden and cell after T steps, and the function from their gradients to
    those of gates, W, hidden and cell."""
    steps, outputs = [], []
    for t, row in enumerate(tf.unstack(gates)):
        product = tf.matmul(hidden, w_hidden)
        steps.append(Step(row, product, hidden, cell, valids[t], resets[t]))
        output, hidden, cell = _advance(steps[t])
        outputs.append(output)
    results = (tf.stack(outputs), hidden, cell)
    return results, functools.partial(_steps_back, steps, w_hidden)


def _steps_back(
    steps: Sequence[Step],
    w_hidden: tf.Tensor,
    of_outputs: tf.Tensor,
    of_hidden: tf.Tensor,
    of_cell: tf.Tensor,
) -> Gradients:
    of_gates = []
    w_turned = _turned(w_hidden)
    of_output = tf.unstack(of_outputs)
    for t in reversed(range(len(steps))):
        of_row, kept, of_cell = _retreat(steps[t], (of_output[t], of_hidden, of_cell))
        of_gates.append(of_row)
        of_hidden = kept + tf.matmul(of_row, w_turned)
    of_gates.reverse()
    hidden = tf.concat([step.hidden for step in steps], axis=0)  # [T * B, H]
    of_w = tf.matmul(hidden, tf.concat(of_gates, axis=0), transpose_a=True)
    return tf.stack(of_gates), of_w, of_hidden, of_cell


def _packed(w: tf.Tensor, count: int) -> tf.Tensor:
    """`[K, count N]` -> `[N / lanes, K, count, lanes]`: as a loop over K reads it, column by column
    of vectors."""
    lanes = vector_code.lanes()
    units = w.shape[1] // count
    w = tf.reshape(w, [-1, count, units // lanes, lanes])
    return tf.transpose(w, [2, 0, 1, 3])


def _code(
    gates: tf.Tensor,
    w_hidden: tf.Tensor,
    hidden: tf.Tensor,
    cell: tf.Tensor,
    valids: Sequence[tf.Tensor],
    resets: Sequence[tf.Tensor],
) -> tuple[Gradients, Callable[..., Gradients]]:
    """As `_steps`."""
    unrolled = lstm_code.Unroll(len(valids), hidden.shape[1], gates.dtype.name)
    flags = [tf.cast(tf.stack(rows)[..., 0], tf.float32) for rows in (valids, resets)]
    batch, units, num_steps = tf.shape(hidden)[0], unrolled.units, unrolled.steps

    outputs, z, hiddens, cells = in_parts(
        lstm_code.forwards(unrolled),
        [hidden, cell, gates, _packed(w_hidden, 4), *flags],
        [
            Output([num_steps, batch, units]),
            Output([num_steps, batch, 4 * units]),
            Output([num_steps + 1, batch, units]),
            Output([num_steps + 1, batch, units]),
        ],
        num_threads(),  # each reads all weights for each step
    )

    @tf.custom_gradient
    def back(
        gates: tf.Tensor,
        w_hidden: tf.Tensor,
        hidden: tf.Tensor,
        cell: tf.Tensor,
        of_outputs: tf.Tensor,
        of_hidden: tf.Tensor,
        of_cell: tf.Tensor,
    ) -> tuple[Gradients, Callable[..., Gradients]]:
        of_numbers = [num_steps, batch, 4 * units]
        made = [Output(of_numbers), *[Output([batch, units])] * 2]
        apart = gates.dtype != of_hidden.dtype
        of_z, *of_state = in_parts(
            lstm_code.backwards(unrolled),
            [of_hidden, of_cell, of_outputs, z, cells, _packed(tf.transpose(w_hidden), 1), *flags],
            [*made, Output(of_numbers, gates.dtype)] if apart else made,
            num_threads(),
        )
        of_gates = of_state.pop() if apart else of_z
        of_w = tf.matmul(_rows(hiddens[:-1]), _rows(of_z), transpose_a=True)

        def again(of_gates: tf.Tensor, *of_others: tf.Tensor) -> Gradients:
            of_results = (tf.cast(of_gates, of_z.dtype), *of_others)
            arguments = (gates, w_hidden, hidden, cell, of_outputs, of_hidden, of_cell)
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                _, backwards = _steps(*arguments[:4], valids, resets)
                results = backwards(*arguments[4:])
            found: Gradients = tape.gradient(results, arguments, output_gradients=of_results)
            return found

        return (of_gates, of_w, *of_state), again

    results = (outputs, hiddens[-1], cells[-1])
    return results, functools.partial(back, gates, w_hidden, hidden, cell)


def _loop(
    gates: tf.Tensor,
    w_hidden: tf.Tensor,
    hidden: tf.Tensor,
    cell: tf.Tensor,
    valids: Sequence[tf.Tensor],
    resets: Sequence[tf.Tensor],
) -> tuple[Gradients, Callable[..., Gradients]]:
    """As `_steps`; the inputs of all steps are one tensor `[T, ...]` of each kind."""
    valid, reset = tf.stack(valids), tf.stack(resets)

    def advance(t: tf.Tensor, hidden: tf.Tensor, cell: tf.Tensor) -> tuple[Gradients, Gradients]:
        step = Step(gates[t], tf.matmul(hidden, w_hidden), hidden, cell, valid[t], reset[t])
        output, *state = _step(step)
        return (output, hidden, cell), tuple(state)

    like = (hidden, hidden, cell)
    (outputs, hiddens, cells), state = _scan(advance, range(len(valids)), like, (hidden, cell))
    product = tf.reshape(tf.matmul(_rows(hiddens), w_hidden), tf.shape(gates))  # a second time
    steps = Step(gates, product, hiddens, cells, valid, reset)
    return (outputs, *state), functools.partial(_loop_back, steps, w_hidden)


def _loop_back(
    steps: Step,
    w_hidden: tf.Tensor,
    of_outputs: tf.Tensor,
    of_hidden: tf.Tensor,
    of_cell: tf.Tensor,
) -> Gradients:
    def retreat(t: tf.Tensor, hidden: tf.Tensor, cell: tf.Tensor) -> tuple[Gradients, Gradients]:
        step = Step(*(kind[t] for kind in steps))
        of_row, kept, cell = _gradients_of_step(step, (of_outputs[t], hidden, cell))
        return (of_row,), (kept + tf.matmul(of_row, w_hidden, transpose_b=True), cell)

    rows, like = range(steps.product.shape[0]), steps.product[0]
    (of_gates,), state = _scan(retreat, rows[::-1], (like,), (of_hidden, of_cell))
    of_w = tf.matmul(_rows(steps.hidden), _rows(of_gates), transpose_a=True)
    return of_gates, of_w, *state


def _rows(x: tf.Tensor) -> tf.Tensor:
    """`[T, B, N]` -> `[T * B, N]`."""
    return tf.reshape(x, [-1, x.shape[-1]])


def _scan(
    function: Callable[..., tuple[Gradients, Gradients]],
    rows: range,
    like: Gradients,
    state: Gradients,
) -> tuple[Gradients, Gradients]:
    """Calls (t, *state) -> (values of row t, state) for each of T rows, one after the other.

    Only a count ends the loop: so XLA need not ask the GPU for a condition.

    Args:
      function: its values are of the types and shapes of `like`.
      rows: t of each call.
      like: `[...]` each.
      state: before the first.

    Returns:
      The values `[T, ...]`, in the order of t, and the state after the last.
    """
    arrays = [tf.TensorArray(x.dtype, len(rows), element_shape=x.shape) for x in like]

    def call(
        count: tf.Tensor, arrays: Sequence[tf.TensorArray], state: Gradients
    ) -> tuple[tf.Tensor, Sequence[tf.TensorArray], Gradients]:
        t = rows.start + rows.step * count
        values, state = function(t, *state)
        written = [array.write(t, values[i]) for i, array in enumerate(arrays)]
        return count + 1, written, state

    _, arrays, state = tf.while_loop(
        lambda *_: tf.constant(True),
        call,
        (tf.constant(0), arrays, state),
        maximum_iterations=len(rows),
    )
    return tuple(array.stack() for array in arrays), state
