"""IMPALA's update in plain PyTorch, on a synthetic batch: the work of `agents.impala.learner`.

What a config has of several tasks, PopArt and pixel control is done too.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.peers import protocol, pytorch_process
from benchmarks.peers.pytorch_networks import Body, State
from benchmarks.peers.pytorch_pixel_control import PixelControl
from benchmarks.peers.pytorch_popart import PopArt


class Network(nn.Module):
    """Logits and values of a sequence."""

    def __init__(self, settings: protocol.Settings) -> None:
        super().__init__()
        num_actions = settings["num_actions"]
        self.body = Body(
            settings["config"], settings["image"], num_actions, compiled=settings["compiled"]
        )
        self._logits = nn.Linear(self.body.output_size, num_actions)
        self.value = nn.Linear(self.body.output_size, settings["config"].get("num_tasks", 1))

    def forward(self, inputs: tuple[Tensor, ...], state: State) -> tuple[Tensor, Tensor, Tensor]:
        """`[T, B, A]`, a value for each task `[T, B, K]`, and the core's output `[T, B, D]`."""
        x, _ = self.body(*inputs, state)
        return self._logits(x).float(), self.value(x).float(), x


class Update:
    """One update, always of the same batch."""

    def __init__(self, settings: protocol.Settings) -> None:
        torch.manual_seed(0)
        self._config, self._bfloat16 = settings["config"], settings["bfloat16"]
        self._device = pytorch_process.prepare(settings["keeps_memory"])
        self._network = Network(settings).to(self._device)
        self._make_batch(settings)
        self._popart = (
            PopArt(self._network.value, self._config, self._task)
            if self._config.get("normalise")
            else None
        )
        self._pixel_control = (
            PixelControl(self._network.body.output_size, self._inputs[0], settings["num_actions"])
            if self._config["pixel_control_cost"]
            else None
        )
        self._parameters = [
            *self._network.parameters(),
            *(self._pixel_control.parameters() if self._pixel_control else ()),
        ]
        self._optimizer = torch.optim.RMSprop(
            self._parameters,
            lr=self._config["learning_rate"],
            alpha=self._config["rmsprop_decay"],
            momentum=self._config["rmsprop_momentum"],
            eps=self._config["rmsprop_epsilon"],
        )

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
        self._task = torch.randint(self._config.get("num_tasks", 1), (size,), device=device)

    def __call__(self) -> float:
        """Improves the parameters; returns the loss."""
        config = self._config
        with torch.autocast(self._device, torch.bfloat16, enabled=self._bfloat16):
            logits, values, features = self._network(self._inputs, self._state)
            q = None if self._pixel_control is None else self._pixel_control(features)
        task = self._task.expand(len(values), -1).unsqueeze(-1)
        output = values.gather(-1, task).squeeze(-1)  # [L + 1, B]
        shift, scale = self._popart.shift_and_scale() if self._popart else (0.0, 1.0)
        log_policy = logits[:-1].log_softmax(-1)  # [L, B, A]
        log_pi = log_policy.gather(-1, self._action.unsqueeze(-1)).squeeze(-1)  # [L, B]
        with torch.no_grad():
            value = scale * output + shift
            targets, advantage = self._vtrace(value, log_pi - self._log_mu)
        policy_gradient = -(log_pi * advantage / scale).sum()
        baseline = 0.5 * ((targets - shift) / scale - output[:-1]).square().sum()
        negative_entropy = (log_policy.exp() * log_policy).sum()
        loss = (
            policy_gradient
            + config["baseline_cost"] * baseline
            + config["entropy_cost"] * negative_entropy
        )
        if self._pixel_control is not None:
            loss = loss + config["pixel_control_cost"] * self._pixel_control.loss(
                q, self._inputs[0], self._action, self._continuation
            )
        self._optimizer.zero_grad()
        loss.backward()
        if config["max_gradient_norm"] is not None:
            nn.utils.clip_grad_norm_(self._parameters, config["max_gradient_norm"])
        self._optimizer.step()
        if self._popart is not None:
            self._popart.adapt(targets)
        return loss.item()

    def _vtrace(self, value: Tensor, log_ratio: Tensor) -> tuple[Tensor, Tensor]:
        """Targets and weighted advantages, `[L, B]` each."""
        config, ratio = self._config, log_ratio.exp()
        rho = ratio.clamp(max=config["rho_bar"])
        trace = config["lambda_"] * ratio.clamp(max=config["c_bar"])
        discount = config["discount"] * self._continuation
        clips = config["reward_transform"] == "clip"
        reward = self._reward.clamp(-1, 1) if clips else self._reward
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
