"""The torsos and cores by name, without TensorFlow, so that settings can ask for them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

TORSO_EXAMPLE = "my_package.torsos:Torso"
CORE_EXAMPLE = "my_package.cores:Core"
FORGET_BIAS = 1.0  # of an LSTM's gate, at the start


class Convolution(NamedTuple):
    """One convolution: square kernels, no padding."""

    channels: int
    kernel: int
    stride: int


# `dqn`: the three convolutions of DQN (Mnih et al. 2015). `shallow`: IMPALA's small torso (Espeholt
# et al. 2018, Figure 4, left); its 1.2 million parameters at 72 x 96 x 3 mean no padding.
CONVOLUTIONS: Mapping[str, Sequence[Convolution]] = {
    "dqn": (Convolution(32, 8, 4), Convolution(64, 4, 2), Convolution(64, 3, 1)),
    "shallow": (Convolution(16, 8, 4), Convolution(32, 4, 2)),
}


# Of H units and D inputs: weights for each of H x H, and for each of H x D.
CORES: Mapping[str, tuple[int, int]] = {
    "lstm": (4, 4),
    "gru": (3, 3),
    "lru": (6, 1),
    "mingru": (0, 2),
}


def least_side(layers: Sequence[Convolution]) -> int:
    """Pixels of the shorter side of the smallest image for these convolutions."""
    side = 1
    for layer in reversed(layers):
        side = (side - 1) * layer.stride + layer.kernel
    return side
