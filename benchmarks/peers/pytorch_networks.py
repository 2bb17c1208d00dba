"""The networks of R2D2 and IMPALA in plain PyTorch."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from benchmarks.peers.protocol import Settings

State = tuple[Tensor, Tensor] | None  # of the LSTM, [1, B, H] each


class Body(nn.Module):
    """Torso and core. Frames `[T, B, H, W, C]` uint8 -> `[T, B, D]`.

    The convolutions take frames as they lie in memory, channels last, and activations overwrite
    their inputs.

    Args:
      config: `torso` and `lstm_size` decide.
      image: height, width, channels.
      num_actions: A.
      compiled: whether `torch.compile` compiles the torso, which fuses what is no convolution.
    """

    def __init__(
        self, config: Settings, image: Sequence[int], num_actions: int, *, compiled: bool
    ) -> None:
        super().__init__()
        self._num_actions = num_actions
        self._torso = _torso(config["torso"], image[-1])
        with torch.no_grad():  # and the lazy layers find their sizes
            size = self._torso(torch.zeros(1, image[-1], *image[:2])).shape[1]
        self._torso.to(memory_format=torch.channels_last)
        self._see = torch.compile(self._look) if compiled else self._look
        hidden = config["lstm_size"]
        self._core = nn.LSTM(size + num_actions + 1, hidden) if hidden else None
        self.output_size = hidden or size

    def forward(
        self, frames: Tensor, action: Tensor, reward: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """All rows at once; previous action `[T, B]` and reward `[T, B]` enter the core."""
        x = self._see(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
        if self._core is None:
            return x, None
        code = nn.functional.one_hot(action, self._num_actions).float()
        x = torch.cat([x.float(), code, reward.clamp(-1, 1).unsqueeze(-1)], dim=-1)
        return self._core(x, state)

    def flatten_parameters(self) -> None:
        """Joins the LSTM's weights again, which a copy's are not: cuDNN wants them in one piece."""
        if self._core is not None:
            self._core.flatten_parameters()

    def _look(self, frames: Tensor) -> Tensor:
        images = frames.permute(0, 3, 1, 2)  # [T B, C, H, W], still channels last
        vector: Tensor = self._torso(images.to(self._image_type()).div_(255.0))
        return vector

    def _image_type(self) -> torch.dtype:
        """What the convolutions compute in, so that frames are cast but once."""
        device = next(self.parameters()).device.type
        return (
            torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else torch.float32
        )


class DuelingHead(nn.Module):
    """`[..., H]` -> Q `[..., A]`."""

    def __init__(self, size: int, hidden: int, num_actions: int) -> None:
        super().__init__()
        self._value = nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self._advantage = nn.Sequential(
            nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, num_actions)
        )

    def forward(self, x: Tensor) -> Tensor:
        advantage = self._advantage(x)
        return self._value(x) + advantage - advantage.mean(-1, keepdim=True)


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions beside the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self._layers = nn.Sequential(
            nn.ReLU(),  # not in place: the identity needs its input
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self._layers(x)


def _torso(kind: str, channels: int) -> nn.Sequential:
    if kind == "resnet":
        layers: list[nn.Module] = []
        for outputs in (16, 32, 32):
            layers += [
                nn.Conv2d(channels, outputs, 3, padding=1),
                nn.MaxPool2d(3, stride=2, padding=1),
                ResidualBlock(outputs),
                ResidualBlock(outputs),
            ]
            channels = outputs
        layers += [nn.ReLU(inplace=True), nn.Flatten(), nn.LazyLinear(256), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)
    if kind == "shallow":
        return nn.Sequential(
            *_convolution(channels, 16, 8, 4),
            *_convolution(16, 32, 4, 2),
            nn.Flatten(),
            nn.LazyLinear(256),
            nn.ReLU(inplace=True),
        )
    return nn.Sequential(
        *_convolution(channels, 32, 8, 4),
        *_convolution(32, 64, 4, 2),
        *_convolution(64, 64, 3, 1),
        nn.Flatten(),
    )


def _convolution(inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel, stride), nn.ReLU(inplace=True)]
