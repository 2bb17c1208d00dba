"""Torsos: from one observation to one vector. No time axis, no memory.

`uint8` observations are scaled to [0, 1] here, as late as possible; any other is taken as it is.
All torsos compute in the precision that they are given, and their outputs have it.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import sonnet as snt
import tensorflow as tf

from agents.networks.convolution import Blocks, Conv2D
from agents.networks.layers import Linear, as_float, relu

TorsoKind = Literal["dqn", "shallow", "resnet", "mlp"]


class Convolution(NamedTuple):
    """One layer of a `ConvolutionalTorso`: square kernels, no padding."""

    channels: int
    kernel: int
    stride: int


_CONVOLUTIONS: dict[TorsoKind, Sequence[Convolution]] = {
    "dqn": (Convolution(32, 8, 4), Convolution(64, 4, 2), Convolution(64, 3, 1)),
    "shallow": (Convolution(16, 8, 4), Convolution(32, 4, 2)),
}


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
        self._least_side = _least_side(layers)
        self._dtype = dtype
        self._output = Linear(output_size, w_init=w_init, dtype=dtype) if output_size else None

    def prepare(self, observation: tf.Tensor | Blocks) -> tf.Tensor | Blocks:
        """What `__call__` does before there are parameters: several networks can share it.

        Raises:
          ValueError: for anything but images large enough for the kernels.
        """
        if isinstance(observation, Blocks):
            return observation
        image = tf.convert_to_tensor(observation)
        _check_images(image, self._least_side)
        return self._convolutions[0].prepare(image)

    def __call__(self, observation: tf.Tensor | Blocks) -> tf.Tensor:
        """Images `[B, H, W, C]`, prepared or not -> `[B, D]`."""
        x = self.prepare(observation)
        for convolution in self._convolutions:
            x = relu(convolution(x))
        x = snt.flatten(x)  # [B, D]
        return x if self._output is None else relu(self._output(x))


class ResidualBlock(snt.Module):
    """x + conv(relu(conv(relu(x)))), 3 x 3."""

    def __init__(self, channels: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._convolutions = [Conv2D(channels, 3, dtype=dtype) for _ in range(2)]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H, W, C]` -> the same shape."""
        y = x
        for convolution in self._convolutions:
            y = convolution(relu(y))
        return x + y


class ResidualSection(snt.Module):
    """A convolution, max-pooling that halves the image, and two residual blocks."""

    def __init__(self, channels: int, dtype: tf.DType = tf.float32) -> None:
        super().__init__()
        self._convolution = Conv2D(channels, 3, dtype=dtype)
        self._blocks = snt.Sequential([ResidualBlock(channels, dtype) for _ in range(2)])

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """`[B, H, W, C]` -> `[B, ⌈H / 2⌉, ⌈W / 2⌉, channels]`."""
        pooled = tf.nn.max_pool2d(self._convolution(x), ksize=3, strides=2, padding="SAME")
        return self._blocks(pooled)


class ResidualTorso(snt.Module):
    """IMPALA's deep torso, 15 convolutions (Espeholt et al. 2018, Figure 4, right).

    Args:
      channels: of each section.
      output_size: units of the fully connected layer at the end.
      dtype: of the arithmetic.
    """

    def __init__(
        self,
        channels: Sequence[int] = (16, 32, 32),
        output_size: int = 256,
        dtype: tf.DType = tf.float32,
    ) -> None:
        super().__init__()
        self._sections = snt.Sequential([ResidualSection(c, dtype) for c in channels])
        self._output = Linear(output_size, dtype=dtype)
        self._dtype = dtype

    def prepare(self, observation: tf.Tensor) -> tf.Tensor:
        """As `ConvolutionalTorso.prepare`: bytes become fractions."""
        return as_float(observation, self._dtype)

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """Images `[B, H, W, C]` -> `[B, output_size]`."""
        x = self.prepare(observation)
        _check_images(x, least_side=1)
        return relu(self._output(snt.flatten(relu(self._sections(x)))))


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

    def prepare(self, observation: tf.Tensor) -> tf.Tensor:
        """As `ConvolutionalTorso.prepare`: bytes become fractions."""
        return as_float(observation, self._dtype)

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """`[B, ...]` -> `[B, hidden_sizes[-1]]`."""
        x = snt.flatten(self.prepare(observation))
        for layer in self._layers:
            x = relu(layer(x))
        return x


def make_torso(
    kind: TorsoKind,
    hidden_sizes: Sequence[int] = (),
    w_init: snt.initializers.Initializer | None = None,
    dtype: tf.DType = tf.float32,
) -> snt.Module:
    """A torso.

    Args:
      kind: `dqn`, the three convolutions of DQN (Mnih et al. 2015), flattened; `shallow`, IMPALA's
        small one (Espeholt et al. 2018, Figure 4, left), whose 1.2 million parameters at
        72 x 96 x 3 come out without padding, not with it; `resnet`, its deep one; or `mlp`.
      hidden_sizes: the layers of an `mlp`.
      w_init: of the weights of a `dqn` or `shallow` torso; None is Sonnet's default.
      dtype: of the arithmetic.
    """
    if kind in _CONVOLUTIONS:
        output_size = 256 if kind == "shallow" else 0
        return ConvolutionalTorso(_CONVOLUTIONS[kind], output_size, w_init=w_init, dtype=dtype)
    if kind == "resnet":
        return ResidualTorso(dtype=dtype)
    return MLPTorso(hidden_sizes, dtype)


def takes_images(kind: TorsoKind, shape: Sequence[int]) -> bool:
    """Whether a convolutional torso can be given images of a shape, `[H, W]` or `[H, W, C]`."""
    return min(shape[:2]) >= _least_side(_CONVOLUTIONS.get(kind, ()))


def _least_side(layers: Sequence[Convolution]) -> int:
    side = 1
    for layer in reversed(layers):
        side = (side - 1) * layer.stride + layer.kernel
    return side


def _check_images(x: tf.Tensor, least_side: int) -> None:
    if x.shape.rank != 4 or min(x.shape[1:3]) < least_side:
        raise ValueError(
            f"This torso needs images [B, H, W, C] of at least {least_side} x {least_side} pixels, "
            f"got observations of shape {tuple(x.shape)}; the mlp torso takes any shape."
        )
