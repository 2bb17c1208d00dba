"""Torsos: from one observation to one vector. No time axis, no memory.

`uint8` observations are scaled to [0, 1] here, as late as possible; any other is taken as it is.
All torsos compute in the precision that they are given, and their outputs have it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import sonnet as snt
import tensorflow as tf

from agents.networks.layers import Conv2D, Linear
from agents.networks.named import CONVOLUTIONS, TORSO_EXAMPLE, Convolution, least_side
from environments import import_path
from tensor_ops.elementwise import as_float, relu


class ConvolutionalTorso(snt.Module):
    """Convolutions without padding, each followed by a ReLU, then perhaps a fully connected layer.

    Args:
      layers: from the image on.
      output_size: units of the fully connected layer; 0 gives the flattened last convolution.
      w_init: of all weights; None is Sonnet's default.
      dtype: of the arithmetic.
    """

    def __init__(
        self,
        layers: Sequence[Convolution],
        output_size: int = 0,
        w_init: snt.initializers.Initializer | None = None,
        dtype: tf.DType = tf.float32,
    ) -> None:
        super().__init__()
        self._convolutions = [
            Conv2D(*layer, padding="VALID", w_init=w_init, dtype=dtype) for layer in layers
        ]
        self._least_side = least_side(layers)
        self._output = Linear(output_size, w_init=w_init, dtype=dtype) if output_size else None

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """Images `[B, H, W, C]` -> `[B, D]`.

        Raises:
          ValueError: for anything but images large enough for the kernels.
        """
        x = tf.convert_to_tensor(observation)
        _check_images(x, self._least_side)
        for place, convolution in enumerate(self._convolutions):
            x = convolution(x, after_relu=place > 0)
        x = snt.flatten(relu(x))  # [B, D]
        return x if self._output is None else relu(self._output(x))


class ResidualBlock(snt.Module):
    """x + conv(relu(conv(relu(x)))), 3 x 3."""

    def __init__(self, channels: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._convolutions = [Conv2D(channels, 3, dtype=dtype) for _ in range(2)]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H, W, C]` -> the same shape."""
        first, second = self._convolutions
        return second(first(x, after_relu=True), after_relu=True, plus=x)


class ResidualSection(snt.Module):
    """A convolution, max-pooling that halves the image, and two residual blocks."""

    def __init__(self, channels: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._convolution = Conv2D(channels, 3, pool=True, dtype=dtype)
        self._blocks = snt.Sequential([ResidualBlock(channels, dtype) for _ in range(2)])

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H, W, C]` -> `[B, ⌈H / 2⌉, ⌈W / 2⌉, channels]`."""
        return self._blocks(self._convolution(x))


class StridedSection(snt.Module):
    """A convolution that halves the image, and a residual block."""

    def __init__(self, channels: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._convolution = Conv2D(channels, 3, 2, dtype=dtype)
        self._block = ResidualBlock(channels, dtype)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H, W, C]` -> `[B, ⌈H / 2⌉, ⌈W / 2⌉, channels]`."""
        return self._block(self._convolution(x))


class ResidualTorso(snt.Module):
    """Residual sections, then perhaps a fully connected layer.

    With `ResidualSection` it is IMPALA's deep torso of 15 convolutions (Espeholt et al. 2018,
    Figure 4, right); with `StridedSection` and no such layer, that for control from pixels (Zahavy
    et al. 2020, Table 2, where Section 9.3 gives the sections' layers).

    Args:
      section: makes a section of so many channels.
      channels: of each section.
      output_size: units of the fully connected layer; 0 gives the flattened last section.
      dtype: of the arithmetic.
    """

    def __init__(
        self,
        section: Callable[[int, tf.DType], snt.Module],
        channels: Sequence[int],
        output_size: int,
        dtype: tf.DType = tf.float32,
    ) -> None:
        super().__init__()
        self._sections = snt.Sequential([section(c, dtype) for c in channels])
        self._output = Linear(output_size, dtype=dtype) if output_size else None
        self._dtype = dtype

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """Images `[B, H, W, C]` -> `[B, D]`; each section halves height and width, rounded up."""
        x = as_float(observation, self._dtype)
        _check_images(x, least_side=1)
        x = snt.flatten(relu(self._sections(x)))
        return x if self._output is None else relu(self._output(x))


class MLPTorso(snt.Module):
    """Fully connected layers with ReLUs, for small observations of any shape.

    Args:
      hidden_sizes: units of each layer.
      dtype: of the arithmetic.
    """

    def __init__(self, hidden_sizes: Sequence[int], dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._layers = [Linear(size, dtype=dtype) for size in hidden_sizes]
        self._dtype = dtype

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """`[B, ...]` -> `[B, hidden_sizes[-1]]`."""
        x = snt.flatten(as_float(observation, self._dtype))
        for layer in self._layers:
            x = relu(layer(x))
        return x


class OwnTorso(snt.Module):
    """A torso that is not of this project.

    Args:
      torso: observations `[B, ...]`, float32 or bytes as fractions -> `[B, D]`. Its own arithmetic
        and variables are float32.
      name: its import path, for errors.
      dtype: of what this one gives.
    """

    def __init__(
        self, torso: Callable[[tf.Tensor], tf.Tensor], name: str, dtype: tf.DType = tf.float32
    ) -> None:
        super().__init__()
        self._torso = torso
        self._named = name
        self._dtype = dtype

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """`[B, ...]` -> `[B, D]`.

        Raises:
          ValueError: the torso raises, or gives anything else.
        """
        inputs = as_float(observation)
        try:
            x = self._torso(inputs)
        except Exception as error:  # whatever somebody's torso raises
            raise ValueError(
                f"{self._named} raised {type(error).__name__} for observations of shape "
                f"{tuple(inputs.shape)}: {error}"
            ) from error
        if not (tf.is_tensor(x) and x.shape.rank == 2 and x.dtype.is_floating):
            raise ValueError(
                f"{self._named} must turn observations of shape {tuple(inputs.shape)} into a "
                f"floating tensor [B, D], got {_described(x)}."
            )
        return tf.cast(x, self._dtype)


def make_torso(
    kind: str,
    hidden_sizes: Sequence[int] = (),
    w_init: snt.initializers.Initializer | None = None,
    dtype: tf.DType = tf.float32,
) -> snt.Module:
    """A torso.

    Args:
      kind: `dqn` or `shallow`, which are `named.CONVOLUTIONS`; `resnet`, IMPALA's deep one;
        `strided`, STAC's for control; `mlp`; or `package.module:Torso`, what makes a `tf.Module`
        when it is called: Sonnet's and Keras's are such.
      hidden_sizes: the layers of an `mlp`.
      w_init: of the weights of a `dqn` or `shallow` torso; None is Sonnet's default.
      dtype: of the arithmetic.

    Raises:
      ValueError: a torso that is not of this project cannot be had.
    """
    if kind in CONVOLUTIONS:
        output_size = 256 if kind == "shallow" else 0
        return ConvolutionalTorso(CONVOLUTIONS[kind], output_size, w_init=w_init, dtype=dtype)
    if kind == "resnet":
        return ResidualTorso(ResidualSection, (16, 32, 32), 256, dtype)
    if kind == "strided":
        return ResidualTorso(StridedSection, (32, 32, 32), 0, dtype)
    return OwnTorso(_own(kind), kind, dtype) if ":" in kind else MLPTorso(hidden_sizes, dtype)


def _own(name: str) -> tf.Module:
    """The torso that an import path makes."""
    make = import_path.load(name, what="a torso", example=TORSO_EXAMPLE)
    try:
        torso = make()
    except Exception as error:  # whatever somebody's constructor raises
        raise ValueError(f"{name}() raised {type(error).__name__}: {error}") from error
    if not (isinstance(torso, tf.Module) and callable(torso)):
        raise ValueError(
            f"{name} must be the class of a Sonnet module or of a Keras model, or a function that "
            f"makes one, such as {TORSO_EXAMPLE}; it made {_described(torso)}."
        )
    return torso


def _described(x: Any) -> str:
    is_tensor = tf.is_tensor(x)
    return f"{x.dtype.name} of shape {tuple(x.shape)}" if is_tensor else f"a {type(x).__name__}"


def _check_images(x: tf.Tensor, least_side: int) -> None:
    if x.shape.rank != 4 or min(x.shape[1:3]) < least_side:
        raise ValueError(
            f"This torso needs images [B, H, W, C] of at least {least_side} x {least_side} pixels, "
            f"got observations of shape {tuple(x.shape)}; the mlp torso takes any shape."
        )
