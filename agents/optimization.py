"""RMSProp as a function of its slots, Adam, annealing, and the clipping of gradients."""

from collections.abc import Sequence
from typing import NamedTuple

import sonnet as snt
import tensorflow as tf


class Slots(NamedTuple):
    """The memory of RMSProp for each parameter, in the parameter's shape."""

    mean_square: Sequence[tf.Tensor]  # s
    momentum: Sequence[tf.Tensor]  # m


def rmsprop_step(
    parameters: Sequence[tf.Tensor],
    gradients: Sequence[tf.Tensor],
    slots: Slots,
    *,
    learning_rate: float | tf.Tensor,
    decay: float | tf.Tensor,
    momentum: float | tf.Tensor,
    epsilon: float | tf.Tensor,
) -> tuple[list[tf.Tensor], Slots]:
    """One step of RMSProp with momentum, to be differentiated by any of its arguments.

        s ← β s + (1 − β) g²
        m ← μ m + α g / √(s + ε)
        θ ← θ − m

    `learning_rate` is α, `decay` β and `momentum` μ. Returns the new parameters and slots.
    """
    new_parameters, squares, moves = [], [], []
    for parameter, gradient, square, move in zip(parameters, gradients, *slots, strict=True):
        gradient = tf.convert_to_tensor(gradient)  # a lookup's is slices
        kept = tf.convert_to_tensor(decay, gradient.dtype)
        square = tf.square(gradient) * (1.0 - kept) + square * kept
        move = momentum * move + learning_rate * gradient * tf.math.rsqrt(square + epsilon)
        new_parameters.append(parameter - move)
        squares.append(square)
        moves.append(move)
    return new_parameters, Slots(squares, moves)


class RMSProp(tf.Module):
    """Makes `rmsprop_step` on variables. A checkpoint holds the slots."""

    def __init__(
        self, parameters: Sequence[tf.Variable], *, decay: float, momentum: float, epsilon: float
    ) -> None:
        super().__init__(name="rmsprop")

        def slot(value: tf.Tensor, name: str) -> tf.Variable:
            return tf.Variable(value, trainable=False, name=name)

        # By these names checkpoints know the slots.
        self.mom = [slot(tf.zeros_like(p), "momentum") for p in parameters]
        # From 0 the first steps would be tenfold, which can switch units off for good.
        self.ms = [slot(tf.ones_like(p), "mean_square") for p in parameters]
        self._constants = {"decay": decay, "momentum": momentum, "epsilon": epsilon}

    def apply(
        self,
        gradients: Sequence[tf.Tensor],
        parameters: Sequence[tf.Variable],
        learning_rate: float | tf.Tensor,
    ) -> None:
        """Makes one step; the parameters are those it was made with, in the same order.

        By one operation of TensorFlow's for each, which reads a parameter once.
        """
        for gradient, parameter, square, move in zip(
            gradients, parameters, self.ms, self.mom, strict=True
        ):
            gradient = tf.convert_to_tensor(gradient)  # a lookup's is slices
            tf.raw_ops.ResourceApplyRMSProp(
                var=parameter.handle,
                ms=square.handle,
                mom=move.handle,
                grad=gradient,
                lr=tf.cast(learning_rate, gradient.dtype),
                rho=self._constants["decay"],
                momentum=self._constants["momentum"],
                epsilon=self._constants["epsilon"],
            )

    # TensorFlow orders the factors of single numbers by their names: a scope of its own keeps the
    # last bit as Sonnet's RMSProp had it.
    @tf.Module.with_name_scope
    def step(
        self,
        gradients: Sequence[tf.Tensor],
        parameters: Sequence[tf.Variable],
        learning_rate: float | tf.Tensor,
    ) -> tuple[list[tf.Tensor], Slots]:
        """The parameters and slots that `apply` would make; nothing changes."""
        slots = Slots(self.ms, self.mom)
        return rmsprop_step(
            parameters, gradients, slots, learning_rate=learning_rate, **self._constants
        )

    def assign(
        self, parameters: Sequence[tf.Variable], values: Sequence[tf.Tensor], slots: Slots
    ) -> None:
        """Makes the step that `step` gave."""
        variables = [*parameters, *self.ms, *self.mom]
        for variable, value in zip(
            variables, [*values, *slots.mean_square, *slots.momentum], strict=True
        ):
            variable.assign(value)


class Adam(snt.optimizers.Adam):
    """Sonnet's, by one operation of TensorFlow's for each parameter: in a quarter of the time.

        m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²
        θ ← θ − α (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)

    Its variables, and so its checkpoints, are Sonnet's.
    """

    def apply(self, updates: Sequence[tf.Tensor | None], parameters: Sequence[tf.Variable]) -> None:
        """Makes one step with gradients of the parameters; None is of one that stays."""
        self._initialize(parameters)
        self.step.assign_add(1)
        for update, parameter, mean, square in zip(
            updates, parameters, self.m, self.v, strict=True
        ):
            if update is None:
                continue
            gradient = tf.convert_to_tensor(update)  # a lookup's is slices
            step, beta1, beta2 = (
                tf.cast(x, gradient.dtype) for x in (self.step, self.beta1, self.beta2)
            )
            powers = tf.pow(beta1, step), tf.pow(beta2, step)
            tf.raw_ops.ResourceApplyAdam(
                var=parameter.handle,
                m=mean.handle,
                v=square.handle,
                grad=gradient,
                beta1_power=powers[0],
                beta2_power=powers[1],
                lr=tf.cast(self.learning_rate, gradient.dtype),
                beta1=beta1,
                beta2=beta2,
                # TensorFlow adds it to √v, and divides that by √(1 − β₂ᵗ) only then.
                epsilon=tf.cast(self.epsilon, gradient.dtype) * tf.sqrt(1.0 - powers[1]),
            )


def create_slots(optimizer: snt.Optimizer, parameters: Sequence[tf.Variable]) -> None:
    """Makes Sonnet's variables now, for a checkpoint to find them: by a step of zeros.

    Adam does not count it.
    """
    optimizer.apply([tf.zeros_like(p) for p in parameters], parameters)
    if isinstance(optimizer, snt.optimizers.Adam):
        optimizer.step.assign(0)


def annealed(initial: float, final: float, step: tf.Tensor, num_steps: float | None) -> tf.Tensor:
    """A line from `initial` at step 0 to `final` at step `num_steps` and ever after, float32.

        α_n = α_N + (α_0 − α_N) max(0, 1 − n / N)

    N, `num_steps`, need not be whole; None stays at α_0.
    """
    if num_steps is None:
        return tf.constant(initial, tf.float32)
    # In float64: float32 cannot tell steps apart beyond 2^24.
    left = 1.0 - tf.cast(step, tf.float64) / num_steps
    return tf.cast(final + (initial - final) * tf.maximum(left, 0.0), tf.float32)


def clip_by_global_norm(
    gradients: Sequence[tf.Tensor], limit: float | None
) -> tuple[Sequence[tf.Tensor], tf.Tensor]:
    """Scales all gradients alike, so that their common norm is `limit` at most; None leaves them.

    The result can be differentiated, also where all gradients are 0.

    Returns:
      The gradients, and the norm that they had.
    """
    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
    square = 2.0 * tf.add_n([tf.nn.l2_loss(gradient) for gradient in gradients])
    norm = tf.sqrt(square)
    if limit is None:
        return gradients, norm
    # The root of 0 has no derivative: so it is taken of at least the limit's square.
    clipped = limit * tf.math.rsqrt(tf.maximum(square, limit**2))
    scale = tf.where(square > limit**2, clipped, tf.ones_like(square))
    return [gradient * scale for gradient in gradients], norm
