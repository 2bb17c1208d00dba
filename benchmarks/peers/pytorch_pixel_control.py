"""Pixel control in plain PyTorch: the work of `agents.pixel_control`."""

import torch
from torch import Tensor, nn

_CELL, _CHANNELS, _DISCOUNT = 4, 32, 0.9


class PixelControl(nn.Module):
    """The head, and its loss on one batch.

    Args:
      size: of the core's output.
      frames: `[T, B, H, W, C]` bytes, the newest frame in the last channel.
      num_actions: A.
    """

    def __init__(self, size: int, frames: Tensor, num_actions: int) -> None:
        super().__init__()
        self._grid = [side // (2 * _CELL) * 2 for side in frames.shape[2:4]]
        self._smallest = [side // 2 - 3 for side in self._grid]
        self._linear = nn.Linear(size, _CHANNELS * self._smallest[0] * self._smallest[1])
        self._layers = nn.Sequential(nn.ConvTranspose2d(_CHANNELS, _CHANNELS, 3), nn.ReLU(True))
        self._value = nn.ConvTranspose2d(_CHANNELS, 1, 4, stride=2)
        self._advantage = nn.ConvTranspose2d(_CHANNELS, num_actions, 4, stride=2)
        self.to(device=frames.device, memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        """Core outputs `[T, B, D]` -> Q `[T, B, A, h, w]`."""
        x, rows = self._linear(x.flatten(0, 1)).relu(), x.shape[:2]
        x = x.unflatten(1, (_CHANNELS, *self._smallest))
        x = self._layers(x.contiguous(memory_format=torch.channels_last))
        advantage = self._advantage(x)
        q = self._value(x) + advantage - advantage.mean(1, keepdim=True)
        return q.unflatten(0, rows).float()

    def loss(self, q: Tensor, frames: Tensor, action: Tensor, continuation: Tensor) -> Tensor:
        """½ the sum of all cells' squared errors; `[L, B]` actions of `[L + 1, B, ...]` frames."""
        index = action[:, :, None, None, None].expand(-1, -1, 1, *self._grid)
        taken = q[:-1].gather(2, index).squeeze(2)
        with torch.no_grad():
            target = self._targets(q.amax(2), self._rewards(frames), _DISCOUNT * continuation)
        return 0.5 * (target - taken).square().sum()

    def _rewards(self, frames: Tensor) -> Tensor:
        """How much each cell changed, `[L, B, h, w]`."""
        sides = [_CELL * side for side in self._grid]
        top, left = (
            (whole - side) // 2 for whole, side in zip(frames.shape[2:4], sides, strict=True)
        )
        newest = frames[:, :, top : top + sides[0], left : left + sides[1], -1].float() / 255
        change = (newest[1:] - newest[:-1]).abs()
        return change.unflatten(3, (-1, _CELL)).unflatten(2, (-1, _CELL)).mean((3, 5))

    def _targets(self, value: Tensor, reward: Tensor, discount: Tensor) -> Tensor:
        target, targets = value[-1], []
        for t in reversed(range(len(reward))):
            target = reward[t] + discount[t, :, None, None] * target
            targets.append(target)
        return torch.stack(targets[::-1])
