"""The useful work of one update, counted: what it is as the equations are written.

Only convolutions and matrix products count, two operations for each multiplication with its
addition; that Winograd's convolutions need fewer makes the same work faster. Of a layer with W
weights that is applied at P positions of one row:

    forward                              2 W P
    gradient of the weights              2 W P
    gradient of the inputs               2 W P, for the first layer none: frames need no gradient

An item of R2D2 has M = burn_in rows that only warm up, L = length trained rows, and the row to
bootstrap from:

    online network   M + L + 1 rows forward, of which L + 1 through the head, and L backward
    target network   M + L + 1 rows forward, of which L + 1 through the head

A V-trace unroll is the first line alone. Element-wise operations, the optimizer and auxiliary
losses do not count.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import sonnet as snt

from agents.networks.named import CONVOLUTIONS


class Layer(NamedTuple):
    """One layer of a network, applied to one row."""

    name: str
    multiply_adds: int
    inputs_need_gradient: bool = True

    @property
    def forward(self) -> int:
        """Operations of its outputs."""
        return 2 * self.multiply_adds

    @property
    def backward(self) -> int:
        """Operations of its gradients."""
        return (2 if self.inputs_need_gradient else 1) * self.forward


class Network(NamedTuple):
    """The layers that every row passes, and those that only trained rows do."""

    body: Sequence[Layer]
    head: Sequence[Layer]


def per_update(
    config: Any, image: Sequence[int], num_actions: int, head: snt.Module, num_networks: int
) -> int:
    """Useful operations of one update.

    Args:
      config: an agent's.
      image: height, width and channels of one network input.
      num_actions: A.
      head: of the network, which has been called.
      num_networks: that are evaluated; 2 with a target network.
    """
    network = network_layers(config, image, num_actions, head)
    forward = [sum(layer.forward for layer in part) for part in network]
    backward = [sum(layer.backward for layer in part) for part in network]
    evaluated = (config.burn_in + config.length + 1) * forward[0] + (config.length + 1) * forward[1]
    return config.batch_size * (num_networks * evaluated + config.length * sum(backward))


def network_layers(
    config: Any, image: Sequence[int], num_actions: int, head: snt.Module
) -> Network:
    """The layers of an agent's network; its head is fully connected ones."""
    torso, size = _torso(config.torso, image)
    core = []
    if config.lstm_size:
        inputs = size + num_actions + 1  # previous action and reward
        size = config.lstm_size
        core = [
            Layer("lstm inputs", inputs * 4 * size),
            Layer("lstm recurrence", size * 4 * size),
        ]
    weights = [variable.shape for variable in head.trainable_variables if variable.shape.rank == 2]
    return Network([*torso, *core], [Layer("head", math.prod(shape)) for shape in weights])


def _torso(kind: str, image: Sequence[int]) -> tuple[list[Layer], int]:
    """The layers of a torso, and the size of its output."""
    if kind == "resnet":
        return _residual(image)
    if kind == "strided":
        return _strided(image)
    height, width, channels = image
    layers = []
    for i, (outputs, kernel, stride) in enumerate(CONVOLUTIONS[kind]):
        height, width = ((side - kernel) // stride + 1 for side in (height, width))
        weights = kernel**2 * channels * outputs
        layers.append(Layer(f"convolution {i + 1}", weights * height * width, i > 0))
        channels = outputs
    size = height * width * channels
    if kind == "dqn":
        return layers, size
    return [*layers, Layer("torso output", size * 256)], 256


def _residual(image: Sequence[int]) -> tuple[list[Layer], int]:
    height, width, channels = image
    layers = []
    for i, outputs in enumerate((16, 32, 32)):
        first = 9 * channels * outputs * height * width
        layers.append(Layer(f"section {i + 1}, convolution", first, i > 0))
        height, width = math.ceil(height / 2), math.ceil(width / 2)
        blocks = 4 * 9 * outputs**2 * height * width
        layers.append(Layer(f"section {i + 1}, residual blocks", blocks))
        channels = outputs
    return [*layers, Layer("torso output", height * width * channels * 256)], 256


def _strided(image: Sequence[int]) -> tuple[list[Layer], int]:
    height, width, channels = image
    layers = []
    for i in range(3):
        height, width = math.ceil(height / 2), math.ceil(width / 2)
        first = 9 * channels * 32 * height * width
        layers.append(Layer(f"section {i + 1}, convolution", first, i > 0))
        block = 2 * 9 * 32**2 * height * width
        layers.append(Layer(f"section {i + 1}, residual block", block))
        channels = 32
    return layers, height * width * channels
