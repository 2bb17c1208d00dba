"""Cores other than the LSTM: by name, or of a user's own. Runs with an LSTM do not import this.

    gru      gated recurrent unit                                     step by step
    lru      a block around a diagonal recurrence of complex numbers  all steps at once
    mingru   a GRU whose gate does not see the state                  all steps at once
    package.module:Core   anybody's, of Sonnet's interface            step by step

Where the next state is linear in the state, x_t = a_t x_{t−1} + b_t, steps can be combined before
any state is known, and a learner computes T of them in log₂ T rounds (`tensor_ops.recursion.scan`).
Actors step.

A core's state is zero at an episode's start: that is what resets and padded rows rely on.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from agents.networks.core import Core
from agents.networks.layers import Linear, initial_weights
from agents.networks.named import CORE_EXAMPLE, FORGET_BIAS
from environments import import_path
from replay.structures import Nest
from tensor_ops.elementwise import where_rows
from tensor_ops.recursion import scan

# Of LRU's ring (Orvieto et al. 2023, Section 3.4 and Table 8): its units remember 10 to 1,000 steps
# and turn by an eighteenth of a circle a step at most. The paper chooses them by the task.
R_MIN, R_MAX, MAX_PHASE = 0.9, 0.999, math.pi / 10


class Stepped(snt.Module, abc.ABC):
    """A core that is unrolled step by step. It can be differentiated twice.

    A subclass says what of the inputs does not depend on the state (`_project`), and how the rest
    advances by a step (`_advance`).
    """

    @abc.abstractmethod
    def initial_state(self, batch_size: int) -> Nest:
        """Zeros, `[batch_size, ...]`."""

    @abc.abstractmethod
    def _project(self, inputs: tf.Tensor) -> tf.Tensor:
        """`[N, D]` -> `[N, P]`."""

    @abc.abstractmethod
    def _advance(self, projected: tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
        """`[B, P]` and the state before -> `[B, O]` and the state after."""

    def step(self, inputs: tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
        """`[B, D]` and the state before -> `[B, O]` and the state after."""
        return self._advance(self._project(inputs), state)

    def unroll(
        self, inputs: tf.Tensor, state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[tf.Tensor, Nest]:
        """T steps; arguments and results as for `agents.networks.core.LSTM.unroll`."""
        num_rows = inputs.shape[0]
        rows = _unfolded(self._project(_folded(inputs)), inputs)
        reset = reset & valid

        def advance(t: int | tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
            state = where_rows(reset[t], tree.map_structure(tf.zeros_like, state), state)
            output, after = self._advance(rows[t], state)
            return output, where_rows(valid[t], after, state)

        first, state = advance(0, state)  # it makes the variables, and tells the outputs' shape
        outputs = tf.TensorArray(first.dtype, num_rows, element_shape=first.shape).write(0, first)

        def body(
            t: tf.Tensor, state: Nest, outputs: tf.TensorArray
        ) -> tuple[tf.Tensor, Nest, tf.TensorArray]:
            output, state = advance(t, state)
            return t + 1, state, outputs.write(t, output)

        _, state, outputs = tf.while_loop(
            lambda t, *_: t < num_rows,
            body,
            (tf.constant(1), state, outputs),
            maximum_iterations=num_rows - 1,  # which XLA needs for the way back
        )
        return outputs.stack(), state


class GRU(Stepped):
    """Gated recurrent unit (Cho et al. 2014), as Sonnet's; its state is its output.

        z_t, r_t = σ(W_z x_t + U_z h_{t−1} + b_z), σ(W_r x_t + U_r h_{t−1} + b_r)
        h̃_t = tanh(W_h x_t + U_h (r_t ⊙ h_{t−1}) + b_h)
        h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ h̃_t

    Args:
      size: H.
      dtype: of the product of inputs and weights; all else is float32.
    """

    def __init__(self, size: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._size = size
        self._inputs = Linear(3 * size, dtype=dtype)
        self._w_gates = tf.Variable(initial_weights([size, 2 * size]), name="w_gates")
        self._w_candidate = tf.Variable(initial_weights([size, size]), name="w_candidate")

    def initial_state(self, batch_size: int) -> tf.Tensor:
        """Zeros, `[batch_size, H]`."""
        return tf.zeros([batch_size, self._size])

    def _project(self, inputs: tf.Tensor) -> tf.Tensor:
        return tf.cast(self._inputs(inputs), tf.float32)  # [N, 3H]

    def _advance(self, projected: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        of_gates, of_candidate = tf.split(projected, [2 * self._size, self._size], axis=-1)
        gates = tf.sigmoid(of_gates + tf.matmul(state, self._w_gates))
        update, read = tf.split(gates, 2, axis=-1)
        candidate = tf.tanh(of_candidate + tf.matmul(read * state, self._w_candidate))
        state = (1 - update) * state + update * candidate
        return state, state


class OwnCore(Stepped):
    """A core that is not of this project. Its own arithmetic and variables are float32.

    Args:
      core: `initial_state(batch_size)` gives zeros, `core(inputs [B, D], state)` outputs `[B, O]`
        and the state after, as Sonnet's recurrent modules do.
      name: its import path, for errors.

    Raises:
      ValueError: it is no such module, or its initial state is none that can be stored or reset.
    """

    def __init__(self, core: Any, name: str) -> None:
        super().__init__()
        self._core = core
        self._named = name
        if not (isinstance(core, tf.Module) and callable(core) and hasattr(core, "initial_state")):
            raise ValueError(
                f"{name} must be the class of a Sonnet module with initial_state(batch_size) and "
                f"__call__(inputs, state), such as {CORE_EXAMPLE}; it made a {type(core).__name__}."
            )
        state = self._tried(lambda: core.initial_state(2), "for initial_state(2)")
        leaves = tree.flatten(state)
        if not leaves or not all(map(_is_zero_state, leaves)):
            got = ", ".join(map(_described, leaves)) or "nothing"
            raise ValueError(
                f"{name}: initial_state(2) must give zeros of float32 [2, ...], to which the state "
                f"is reset between episodes, got {got}."
            )

    def initial_state(self, batch_size: int) -> Nest:
        """Zeros, `[batch_size, ...]`."""
        return self._core.initial_state(batch_size)

    def _project(self, inputs: tf.Tensor) -> tf.Tensor:
        return tf.cast(inputs, tf.float32)

    def _advance(self, projected: tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
        """As `Stepped._advance`.

        Raises:
          ValueError: the core raises, or gives anything else.
        """
        given = f"for inputs of shape {tuple(projected.shape)}"
        made = self._tried(lambda: self._core(projected, state), given)
        if not (isinstance(made, tuple | list) and len(made) == 2 and _is_output(made[0])):
            got = ", ".join(map(_described, tree.flatten(made)))
            raise ValueError(
                f"{self._named} must give a pair {given}, float32 outputs [B, O] and a state; got "
                f"{got}."
            )
        before, after = tree.flatten(state), tree.flatten(made[1])
        if list(map(_form, before)) != list(map(_form, after)):
            raise ValueError(
                f"{self._named} must give a state such as it was given, "
                f"{', '.join(map(_described, before))}, got "
                f"{', '.join(map(_described, after)) or 'nothing'}."
            )
        return made[0], tree.unflatten_as(state, after)

    def _tried(self, call: Callable[[], Any], given: str) -> Any:
        try:
            return call()
        except Exception as error:  # whatever somebody's core raises
            raise ValueError(
                f"{self._named} raised {type(error).__name__} {given}: {error}"
            ) from error


class Terms(NamedTuple):
    """N steps x_t = a_t x_{t−1} + b_t, whatever x_{t−1} is; complex64 or float32."""

    decay: tf.Tensor  # [N, H] or [H], a_t
    drive: tf.Tensor  # [N, H], b_t
    kept: tuple[tf.Tensor, ...]  # [N, ...] each: what the outputs need beside x_t


class Scanned(snt.Module, abc.ABC):
    """A core whose next state is linear in the state. It can be differentiated twice.

    A subclass says how the inputs make the steps (`_terms`), what is read from the states
    (`_outputs`), and how x is kept in float32, as replay takes it (`_joined`, `_parted`).
    """

    @abc.abstractmethod
    def initial_state(self, batch_size: int) -> Nest:
        """Zeros, `[batch_size, H]`."""

    @abc.abstractmethod
    def _terms(self, inputs: tf.Tensor) -> Terms:
        """`[N, D]` -> N steps."""

    @abc.abstractmethod
    def _outputs(self, x: tf.Tensor, kept: tuple[tf.Tensor, ...]) -> tf.Tensor:
        """States after N steps `[N, H]` -> `[N, H]` float32."""

    def _joined(self, state: Nest) -> tf.Tensor:
        """The state -> x `[B, H]`."""
        return state

    def _parted(self, x: tf.Tensor) -> Nest:
        """The inverse of `_joined`."""
        return x

    def step(self, inputs: tf.Tensor, state: Nest) -> tuple[tf.Tensor, Nest]:
        """`[B, D]` and the state before -> `[B, H]` and the state after."""
        terms = self._terms(inputs)
        x = terms.decay * self._joined(state) + terms.drive
        return self._outputs(x, terms.kept), self._parted(x)

    def unroll(
        self, inputs: tf.Tensor, state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[tf.Tensor, Nest]:
        """T steps; arguments and results as for `agents.networks.core.LSTM.unroll`.

        A reset multiplies the state before its row by 0; a row that is not valid multiplies it by 1
        and adds 0.
        """
        terms = self._terms(_folded(inputs))
        drive = _unfolded(terms.drive, inputs)  # [T, B, H]
        decay = terms.decay if terms.decay.shape.rank == 1 else _unfolded(terms.decay, inputs)
        is_reset, is_valid = (reset & valid)[..., tf.newaxis], valid[..., tf.newaxis]
        one = tf.ones_like(drive)
        decay = tf.where(is_reset, 0 * one, tf.where(is_valid, decay, one))
        drive = tf.where(is_valid, drive, tf.zeros_like(drive))
        before = decay[:1] * self._joined(state)
        x = scan(decay, tf.concat([drive[:1] + before, drive[1:]], axis=0), drive.shape[0])
        outputs = self._outputs(_folded(x), terms.kept)
        return _unfolded(outputs, inputs), self._parted(x[-1])


class MinGRU(Scanned):
    """minGRU (Feng et al. 2024, Section 3.1); its state is its output.

        z_t = σ(W_z x_t + b_z),   h̃_t = W_h x_t + b_h,   h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ h̃_t

    Of b_z's start the paper says nothing: it is −forget_bias here, as the LSTM's is forget_bias.

    Args:
      size: H.
      dtype: of the product of inputs and weights; all else is float32.
      forget_bias: −b_z at the start.
    """

    def __init__(
        self, size: int, dtype: tf.DType = tf.float32, forget_bias: float = FORGET_BIAS
    ) -> None:
        super().__init__()
        self._size = size
        self._forget_bias = forget_bias
        self._inputs = Linear(2 * size, dtype=dtype)

    def initial_state(self, batch_size: int) -> tf.Tensor:
        """Zeros, `[batch_size, H]`."""
        return tf.zeros([batch_size, self._size])

    def _terms(self, inputs: tf.Tensor) -> Terms:
        gate, candidate = tf.split(tf.cast(self._inputs(inputs), tf.float32), 2, axis=-1)
        gate = tf.sigmoid(gate - self._forget_bias)
        return Terms(1 - gate, gate * candidate, ())

    def _outputs(self, x: tf.Tensor, kept: tuple[tf.Tensor, ...]) -> tf.Tensor:
        return x


class LRUState(NamedTuple):
    """x of a linear recurrent unit."""

    real: tf.Tensor  # [B, H] float32
    imaginary: tf.Tensor  # [B, H] float32


class LRU(Scanned):
    """A block around a linear recurrent unit (Orvieto et al. 2023, Figure 1 and Appendix A).

        v_t = W_e u_t + b_e,   n_t = LayerNorm(v_t)
        x_t = λ ⊙ x_{t−1} + γ ⊙ B n_t,   λ = exp(−exp ν + i exp θ),   |λ| < 1
        y_t = Re(C x_t) + D ⊙ n_t
        output_t = v_t + (W_1 g_t + b_1) ⊙ σ(W_2 g_t + b_2),   g_t = gelu(y_t)

    The paper normalises over the batch, which actors do not have. λ begins uniformly on the ring
    from `R_MIN` to `R_MAX`, with phases up to `MAX_PHASE`; γ, which is learned, at √(1 − |λ|²).

    Args:
      size: H, of x, complex, and of all else.
      dtype: of the products with W_e and B; all else is float32 and complex64.
    """

    def __init__(self, size: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._size = size
        self._encoder = Linear(size, dtype=dtype)
        self._norm = snt.LayerNorm(-1, create_scale=True, create_offset=True)
        self._gated = Linear(2 * size)
        self._dtype = dtype
        square = tf.random.uniform([size], R_MIN**2, R_MAX**2)  # of |λ|
        phase = tf.random.uniform([size], 1e-3 * MAX_PHASE, MAX_PHASE)
        self._nu = tf.Variable(tf.math.log(-0.5 * tf.math.log(square)), name="nu")
        self._theta = tf.Variable(tf.math.log(phase), name="theta")
        self._gamma = tf.Variable(0.5 * tf.math.log(1 - square), name="gamma")  # its logarithm
        parts = [size, 2 * size]  # real, imaginary
        self._b = tf.Variable(tf.random.normal(parts, stddev=(2 * size) ** -0.5), name="b")
        # C's imaginary part has the other sign here.
        self._c = tf.Variable(tf.random.normal(parts[::-1], stddev=size**-0.5), name="c")
        self._d = tf.Variable(tf.random.normal([size]), name="d")

    def initial_state(self, batch_size: int) -> LRUState:
        """Zeros, `[batch_size, H]` each."""
        zeros = tf.zeros([batch_size, self._size])
        return LRUState(zeros, zeros)

    def _joined(self, state: LRUState) -> tf.Tensor:
        return tf.complex(*state)

    def _parted(self, x: tf.Tensor) -> LRUState:
        return LRUState(tf.math.real(x), tf.math.imag(x))

    def _terms(self, inputs: tf.Tensor) -> Terms:
        encoded = tf.cast(self._encoder(inputs), tf.float32)
        normal = self._norm(encoded)
        product = tf.matmul(*(tf.cast(x, self._dtype) for x in (normal, self._b)))
        real, imaginary = tf.split(tf.cast(product, tf.float32), 2, axis=-1)
        radius, phase, gamma = tf.exp(-tf.exp(self._nu)), tf.exp(self._theta), tf.exp(self._gamma)
        decay = tf.complex(radius * tf.cos(phase), radius * tf.sin(phase))  # [H]
        return Terms(decay, tf.complex(gamma * real, gamma * imaginary), (encoded, normal))

    def _outputs(self, x: tf.Tensor, kept: tuple[tf.Tensor, ...]) -> tf.Tensor:
        encoded, normal = kept
        y = tf.matmul(tf.concat(self._parted(x), axis=-1), self._c) + self._d * normal
        linear, gate = tf.split(self._gated(tf.nn.gelu(y)), 2, axis=-1)
        return encoded + linear * tf.sigmoid(gate)


_NAMED: dict[str, Callable[[int, tf.DType, float], Any]] = {
    "gru": lambda size, dtype, _: GRU(size, dtype),
    "lru": lambda size, dtype, _: LRU(size, dtype),
    "mingru": MinGRU,
}


def make(kind: str, size: int, dtype: tf.DType, forget_bias: float = FORGET_BIAS) -> Core:
    """A core of a size.

    Args:
      kind: `gru`, `lru`, `mingru`, or `package.module:Core`, what makes a core of Sonnet's
        interface when it is called with the size.
      size: H.
      dtype: of the products with the core's inputs, where it is of this project.
      forget_bias: of `mingru`.

    Raises:
      ValueError: a core that is not of this project cannot be had.
    """
    if kind in _NAMED:
        made: Core = _NAMED[kind](size, dtype, forget_bias)
        return made
    make_own = import_path.load(kind, what="a core", example=CORE_EXAMPLE)
    try:
        core = make_own(size)
    except Exception as error:  # whatever somebody's constructor raises
        raise ValueError(f"{kind}({size}) raised {type(error).__name__}: {error}") from error
    return OwnCore(core, kind)


def _folded(x: tf.Tensor) -> tf.Tensor:
    """`[T, B, N]` -> `[T * B, N]`."""
    return tf.reshape(x, [-1, x.shape[-1]])


def _unfolded(x: tf.Tensor, inputs: tf.Tensor) -> tf.Tensor:
    """`[T * B, N]` -> `[T, B, N]`, T as of `inputs`."""
    return tf.reshape(x, [inputs.shape[0], -1, x.shape[-1]])


def _is_zero_state(x: Any) -> bool:
    is_stored = tf.is_tensor(x) and x.dtype == tf.float32 and x.shape.rank and x.shape[0] == 2
    return bool(is_stored) and not np.any(x)


def _is_output(x: Any) -> bool:
    return tf.is_tensor(x) and x.dtype == tf.float32 and x.shape.rank == 2


def _form(x: Any) -> Any:
    return (x.dtype, x.shape[1:].as_list()) if tf.is_tensor(x) else type(x)


def _described(x: Any) -> str:
    if not tf.is_tensor(x):
        return f"a {type(x).__name__}"
    nonzero = " that is not zero" if tf.executing_eagerly() and np.any(x) else ""
    return f"{x.dtype.name} of shape {tuple(x.shape)}{nonzero}"
