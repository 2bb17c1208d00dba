"""PopArt's statistics in plain PyTorch: the work of `agents.popart.statistics`."""

import torch
from torch import Tensor, nn

from benchmarks.peers.protocol import Settings


class PopArt:
    """Moving averages for each task, and the value layer that is kept in step with them.

    Args:
      value_layer: from `[..., D]` to a number for each of K tasks.
      config: decay and limits.
      task: `[B]`, of the batch's unrolls.
    """

    def __init__(self, value_layer: nn.Linear, config: Settings, task: Tensor) -> None:
        self._layer, self._config, self._task = value_layer, config, task
        count, device = value_layer.out_features, task.device
        self._mu = torch.zeros(count, dtype=torch.float64, device=device)
        self._nu = torch.ones(count, dtype=torch.float64, device=device)

    def shift_and_scale(self) -> tuple[Tensor, Tensor]:
        """μ and σ of each unroll's task, `[B]`."""
        return self._mu[self._task].float(), self._sigma()[self._task].float()

    @torch.no_grad()
    def adapt(self, target: Tensor) -> None:
        """Follows targets `[L, B]`, an unroll after the other; values stay what they were."""
        mu, sigma = self._mu.clone(), self._sigma()
        means = target.double().mean(0)  # [B]
        self._mu = self._moved(self._mu, means)
        self._nu = self._moved(self._nu, means.square())
        ratio = sigma / self._sigma()
        self._layer.weight.mul_(ratio.unsqueeze(1))
        self._layer.bias.mul_(ratio).add_((mu - self._mu) / self._sigma())

    def _sigma(self) -> Tensor:
        variance = (self._nu - self._mu.square()).clamp(min=0)
        return variance.sqrt().clamp(self._config["scale_min"], self._config["scale_max"])

    def _moved(self, average: Tensor, values: Tensor) -> Tensor:
        decay = self._config["statistics_decay"]
        own = nn.functional.one_hot(self._task, len(average)).double()  # [B, K]
        later = own.flip(0).cumsum(0).flip(0) - own
        weights = decay * own * (1 - decay) ** later
        return (1 - decay) ** own.sum(0) * average + values @ weights
