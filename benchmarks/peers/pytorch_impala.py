"""IMPALA's update in plain PyTorch, on a synthetic batch: the work of `agents.impala.learner`."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.peers import protocol, pytorch_process
from benchmarks.peers.pytorch_networks import Body, State


class Network(nn.Module):
    """Logits and value of a sequence."""

    def __init__(self, settings: protocol.Settings) -> None:
        super().__init__()
        num_actions = settings["num_actions"]
        self._body = Body(settings["config"], settings["image"], num_actions)
        self._logits = nn.Linear(self._body.output_size, num_actions)
        self._value = nn.Linear(self._body.output_size, 1)

    def forward(self, inputs: tuple[Tensor, ...], state: State) -> tuple[Tensor, Tensor]:
        """`[T, B, A]` and `[T, B]`."""
        x, _ = self._body(*inputs, state)
        return self._logits(x).float(), self._value(x).float().squeeze(-1)


class Update:
    """One update, always of the same batch."""

    def __init__(self, settings: protocol.Settings) -> None:
        torch.manual_seed(0)
        self._config, self._bfloat16 = settings["config"], settings["bfloat16"]
        self._device = pytorch_process.prepare(settings["keeps_memory"])
        self._network = Network(settings).to(self._device)
        self._optimizer = torch.optim.RMSprop(
            self._network.parameters(),
            lr=self._config["learning_rate"],
            alpha=self._config["rmsprop_decay"],
            momentum=self._config["rmsprop_momentum"],
            eps=self._config["rmsprop_epsilon"],
        )
        self._make_batch(settings)

    def _make_batch(self, settings: protocol.Settings) -> None:
        size, length = self._config["batch_size"], self._config["length"]
        num_actions, hidden = settings["num_actions"], self._config["lstm_size"]
        image, device = (length + 1, size, *settings["image"]), self._device
        self._inputs = (
            torch.randint(256, image, dtype=torch.uint8, device=device),
            torch.randint(num_actions, (length + 1, size), device=device),
            torch.randn(length + 1, size, device=device),
        )
        self._state = (
            tuple(0.1 * torch.randn(1, size, hidden, device=device) for _ in range(2))
            if hidden
            else None
        )
        self._action = torch.randint(num_actions, (length, size), device=device)
        self._log_mu = torch.full((length, size), 1 / num_actions, device=device).log()
        self._reward = torch.randn(length, size, device=device)
        self._continuation = torch.ones(length, size, device=device)

    def __call__(self) -> float:
        """Improves the parameters; returns the loss."""
        config = self._config
        with torch.autocast(self._device, torch.bfloat16, enabled=self._bfloat16):
            logits, value = self._network(self._inputs, self._state)
        log_policy = logits[:-1].log_softmax(-1)  # [L, B, A]
        log_pi = log_policy.gather(-1, self._action.unsqueeze(-1)).squeeze(-1)  # [L, B]
        with torch.no_grad():
            targets, advantage = self._vtrace(value, log_pi - self._log_mu)
        policy_gradient = -(log_pi * advantage).sum()
        baseline = 0.5 * (targets - value[:-1]).square().sum()
        negative_entropy = (log_policy.exp() * log_policy).sum()
        loss = (
            policy_gradient
            + config["baseline_cost"] * baseline
            + config["entropy_cost"] * negative_entropy
        )
        self._optimizer.zero_grad()
        loss.backward()
        if config["max_gradient_norm"] is not None:
            nn.utils.clip_grad_norm_(self._network.parameters(), config["max_gradient_norm"])
        self._optimizer.step()
        return loss.item()

    def _vtrace(self, value: Tensor, log_ratio: Tensor) -> tuple[Tensor, Tensor]:
        """Targets and weighted advantages, `[L, B]` each."""
        config, ratio = self._config, log_ratio.exp()
        rho = ratio.clamp(max=config["rho_bar"])
        trace = config["lambda_"] * ratio.clamp(max=config["c_bar"])
        discount = config["discount"] * self._continuation
        reward = self._reward.clamp(-1, 1)
        delta = rho * (reward + discount * value[1:] - value[:-1])
        correction, corrections = torch.zeros_like(delta[0]), []
        for t in reversed(range(len(delta))):
            correction = delta[t] + discount[t] * trace[t] * correction
            corrections.append(correction)
        targets = value[:-1] + torch.stack(corrections[::-1])
        following = torch.cat([targets[1:], value[-1:]])
        return targets, rho * (reward + discount * following - value[:-1])


def make_step(settings: protocol.Settings) -> Callable[[], object]:
    """The update."""
    return Update(settings)


if __name__ == "__main__":
    protocol.serve(make_step, pytorch_process.versions)
