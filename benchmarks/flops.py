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


class _Convolution(NamedTuple):
    outputs: int
    kernel: int
    stride: int = 1
    padded: bool = True
    pooled: bool = False  # to half the height and width


_TORSOS: dict[str, list[_Convolution]] = {
    **{
        kind: [_Convolution(*layer, padded=False) for layer in layers]
        for kind, layers in CONVOLUTIONS.items()
    },
    "resnet": [
        _Convolution(outputs, 3, pooled=i == 0) for outputs in (16, 32, 32) for i in range(5)
    ],
    "strided": [_Convolution(32, 3, stride) for stride in (2, 1, 1)] * 3,
}
_OUTPUTS = {"shallow": 256, "resnet": 256}  # of a last layer that is fully connected


def per_update(
    config: Any, image: Sequence[int], num_actions: int, head: snt.Module, num_networks: int
) -> int:
    """Useful operations of one update, by so many networks, of which a target network is one.

    The image has height, width and channels of one network input; the head has been called.
    """
    body, top = network_weights(config, image, num_actions, head)
    evaluated = (config.burn_in + config.length + 1) * sum(body) + (config.length + 1) * sum(top)
    gradients = 2 * (sum(body) + sum(top)) - body[0]
    return 2 * config.batch_size * (num_networks * evaluated + config.length * gradients)


def network_weights(
    config: Any, image: Sequence[int], num_actions: int, head: snt.Module
) -> tuple[list[int], list[int]]:
    """W P of each layer that every row passes, and of those that only trained rows do.

    The head's are fully connected.
    """
    body, size = _torso(config.torso, image)
    if hidden := config.lstm_size:
        inputs = size + num_actions + 1  # previous action and reward
        body += [inputs * 4 * hidden, hidden * 4 * hidden]
    weights = [variable.shape for variable in head.trainable_variables if variable.shape.rank == 2]
    return body, [math.prod(shape) for shape in weights]


def _torso(kind: str, image: Sequence[int]) -> tuple[list[int], int]:
    """W P of each layer of a torso, and the size of its output."""
    height, width, channels = image
    layers: list[int] = []
    for outputs, kernel, stride, padded, pooled in _TORSOS[kind]:
        unpadded = 0 if padded else kernel - 1
        height, width = (math.ceil((side - unpadded) / stride) for side in (height, width))
        layers.append(kernel**2 * channels * outputs * height * width)
        if pooled:
            height, width = math.ceil(height / 2), math.ceil(width / 2)
        channels = outputs
    size = height * width * channels
    if kind in _OUTPUTS:
        return [*layers, size * _OUTPUTS[kind]], _OUTPUTS[kind]
    return layers, size
