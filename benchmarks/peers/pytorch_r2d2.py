"""R2D2's update in plain PyTorch, on a synthetic batch: the work of `r2d2.learner`, eagerly."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.peers import protocol, pytorch_process
from benchmarks.peers.pytorch_networks import Body, DuelingHead, State


class Network(nn.Module):
    """Action values of a sequence."""

    def __init__(self, settings: protocol.Settings) -> None:
        super().__init__()
        config, num_actions = settings["config"], settings["num_actions"]
        self.body = Body(config, settings["image"], num_actions, compiled=settings["compiled"])
        self.head = DuelingHead(self.body.output_size, config["head_size"], num_actions)

    def unroll_trained(self, inputs: tuple[Tensor, ...], state: State, burn_in: int) -> Tensor:
        """Q on the trained rows and the last, `[L + 1, B, A]`, after a burn-in without gradient."""
        if burn_in:
            with torch.no_grad():
                state = self.body(*(x[:burn_in] for x in inputs), state)[1]
        return self.head(self.body(*(x[burn_in:] for x in inputs), state)[0]).float()


class Update:
    """One update, always of the same batch."""

    def __init__(self, settings: protocol.Settings) -> None:
        torch.manual_seed(0)
        self._config, self._bfloat16 = settings["config"], settings["bfloat16"]
        self._device = pytorch_process.prepare(settings["keeps_memory"])
        self._network = Network(settings).to(self._device)
        self._target_network = copy.deepcopy(self._network)
        self._target_network.body.flatten_parameters()
        self._optimizer = torch.optim.Adam(
            self._network.parameters(),
            lr=self._config["learning_rate"],
            eps=self._config["adam_epsilon"],
        )
        self._step = 0
        self._make_batch(settings)

    def _make_batch(self, settings: protocol.Settings) -> None:
        size, burn_in, length = (self._config[k] for k in ("batch_size", "burn_in", "length"))
        rows, device = burn_in + length + 1, self._device
        num_actions, hidden = settings["num_actions"], self._config["lstm_size"]
        image = (rows, size, *settings["image"])
        self._inputs = (
            torch.randint(256, image, dtype=torch.uint8, device=device),
            torch.randint(num_actions, (rows, size), device=device),
            torch.randn(rows, size, device=device),
        )
        self._state = (
            tuple(0.1 * torch.randn(1, size, hidden, device=device) for _ in range(2))
            if hidden
            else None
        )
        self._action = torch.randint(num_actions, (length, size), device=device)
        self._reward = torch.randn(length, size, device=device)
        self._continuation = torch.ones(length, size, device=device)
        self._mask = torch.ones(length, size, device=device)
        self._probability = torch.full((size,), 1e-5, dtype=torch.float64, device=device)

    def __call__(self) -> Tensor:
        """Improves the parameters; returns the new priorities."""
        config, burn_in = self._config, self._config["burn_in"]
        with torch.autocast(self._device, torch.bfloat16, enabled=self._bfloat16):
            online = self._network.unroll_trained(self._inputs, self._state, burn_in)
            with torch.no_grad():
                target = self._target_network.unroll_trained(self._inputs, self._state, burn_in)
        taken = online[:-1].gather(-1, self._action.unsqueeze(-1)).squeeze(-1)  # [L, B]
        with torch.no_grad():
            greedy = online.argmax(-1, keepdim=True)
            value = from_rescaled(target.gather(-1, greedy).squeeze(-1))  # [L + 1, B]
            targets = rescale(self._n_step_returns(value))
            weights = (config["replay_size"] * self._probability) ** -config["importance_exponent"]
            weights = (weights / weights.max()).float()
        error = (targets - taken) * self._mask
        loss = (weights * 0.5 * error.square().sum(0)).mean()
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._network.parameters(), config["max_gradient_norm"])
        self._optimizer.step()
        self._step += 1
        if self._step % config["target_update_period"] == 0:
            self._target_network.load_state_dict(self._network.state_dict())
        absolute = error.detach().abs()
        mean = absolute.sum(0) / self._mask.sum(0)
        priority = config["eta"] * absolute.amax(0) + (1 - config["eta"]) * mean
        return priority.cpu()

    def _n_step_returns(self, value: Tensor) -> Tensor:
        """n rewards each, fewer near the end, then the bootstrap: `[L + 1, B]` -> `[L, B]`."""
        length = len(self._reward)
        discount = self._config["discount"] * self._continuation
        steps = min(self._config["n_step"], length)
        returns = torch.cat([value[steps:], value[-1:].expand(steps - 1, -1)])
        zero, one = torch.zeros_like(value[:1]), torch.ones_like(value[:1])
        for i in reversed(range(steps)):
            reward = torch.cat([self._reward[i:], zero.expand(i, -1)])
            follows = torch.cat([discount[i:], one.expand(i, -1)])
            returns = reward + follows * returns
        return returns


def rescale(x: Tensor, epsilon: float = 1e-3) -> Tensor:
    """h(x) = sign(x) (√(|x| + 1) − 1) + ε x."""
    return x.sign() * ((x.abs() + 1).sqrt() - 1) + epsilon * x


def from_rescaled(x: Tensor, epsilon: float = 1e-3) -> Tensor:
    """h^-1, in the form that keeps its digits near zero."""
    size = x.abs() + 1 + epsilon
    root = 2 * size / (1 + (1 + 4 * epsilon * size).sqrt())
    return x.sign() * (root.square() - 1)


def make_step(settings: protocol.Settings) -> Callable[[], object]:
    """The update."""
    return Update(settings)


if __name__ == "__main__":
    protocol.serve(make_step, pytorch_process.versions)
