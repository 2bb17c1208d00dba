"""R2D2's and IMPALA's updates in plain PyTorch, eagerly, on a synthetic batch.

They do the work of `r2d2.learner` and of `agents.impala.learner`, with what a config has of several
tasks, PopArt (`agents.popart.statistics`) and pixel control (`agents.pixel_control`).
"""

import copy
import ctypes
import ctypes.util

import torch
from torch import Tensor, nn

from benchmarks.rivals import protocol
from benchmarks.rivals.protocol import Settings

State = tuple[Tensor, Tensor] | None  # of the LSTM, [1, B, H] each
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h
_CELL, _CHANNELS, _PIXEL_DISCOUNT = 4, 32, 0.9  # of pixel control


def _keep_freed_memory() -> None:
    """Freed memory stays with the process, for the next result; of glibc alone.

    PyTorch takes every intermediate result from malloc. Beyond 32 MB glibc asks the kernel for
    fresh pages each time, and clearing those was a third of an update. Few users know to ask.
    """
    library = ctypes.util.find_library("c")
    mallopt = getattr(ctypes.CDLL(library), "mallopt", None) if library else None
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def _device() -> str:
    """The device. On a GPU float32 products may take TensorFloat-32, as TensorFlow's do."""
    if not torch.cuda.is_available():
        return "cpu"
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True  # the quickest kernel of each, found in the first step
    return "cuda"


class Body(nn.Module):
    """Torso and core. Frames `[T, B, H, W, C]` uint8 -> `[T, B, D]`.

    The convolutions take frames as they lie in memory, channels last, and activations overwrite
    their inputs. `compiled` has `torch.compile` compile the torso, which fuses what is no
    convolution.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        config, image = settings["config"], settings["image"]
        self._num_actions = settings["num_actions"]
        self._torso = _torso(config["torso"], image[-1])
        with torch.no_grad():  # and the lazy layers find their sizes
            size = self._torso(torch.zeros(1, image[-1], *image[:2])).shape[1]
        self._torso.to(memory_format=torch.channels_last)
        self._see = torch.compile(self._look) if settings["compiled"] else self._look
        hidden = config["lstm_size"]
        self.core = nn.LSTM(size + self._num_actions + 1, hidden) if hidden else None
        self.output_size = hidden or size

    def forward(
        self, frames: Tensor, action: Tensor, reward: Tensor, state: State
    ) -> tuple[Tensor, State]:
        """All rows at once; previous action `[T, B]` and reward `[T, B]` enter the core."""
        x = self._see(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
        if self.core is None:
            return x, None
        code = nn.functional.one_hot(action, self._num_actions).float()
        x = torch.cat([x.float(), code, reward.clamp(-1, 1).unsqueeze(-1)], dim=-1)
        return self.core(x, state)

    def _look(self, frames: Tensor) -> Tensor:
        images = frames.permute(0, 3, 1, 2)  # [T B, C, H, W], still channels last
        device = next(self.parameters()).device.type
        autocast = torch.is_autocast_enabled(device)  # frames are cast but once
        kind = torch.get_autocast_dtype(device) if autocast else torch.float32
        vector: Tensor = self._torso(images.to(kind).div_(255.0))
        return vector


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
    layers: list[nn.Module] = []
    output = [nn.Flatten(), nn.LazyLinear(256), nn.ReLU(inplace=True)]
    if kind == "resnet":
        for outputs in (16, 32, 32):
            layers += [
                nn.Conv2d(channels, outputs, 3, padding=1),
                nn.MaxPool2d(3, stride=2, padding=1),
                ResidualBlock(outputs),
                ResidualBlock(outputs),
            ]
            channels = outputs
        return nn.Sequential(*layers, nn.ReLU(inplace=True), *output)
    shapes = {"shallow": [(16, 8, 4), (32, 4, 2)], "dqn": [(32, 8, 4), (64, 4, 2), (64, 3, 1)]}
    for outputs, kernel, stride in shapes[kind]:
        layers += [nn.Conv2d(channels, outputs, kernel, stride), nn.ReLU(inplace=True)]
        channels = outputs
    return nn.Sequential(*layers, *(output if kind == "shallow" else output[:1]))


class _Batch:
    """Noise of an agent's shapes: R rows, L of them trained, and the one to bootstrap from."""

    def __init__(self, settings: Settings, device: str) -> None:
        config, num_actions = settings["config"], settings["num_actions"]
        size, length, hidden = config["batch_size"], config["length"], config["lstm_size"]
        rows = config.get("burn_in", 0) + length + 1
        image = (rows, size, *settings["image"])
        self.inputs = (
            torch.randint(256, image, dtype=torch.uint8, device=device),
            torch.randint(num_actions, (rows, size), device=device),
            torch.randn(rows, size, device=device),
        )
        self.state: State = None
        if hidden:
            cell, output = (0.1 * torch.randn(1, size, hidden, device=device) for _ in range(2))
            self.state = (cell, output)
        self.action = torch.randint(num_actions, (length, size), device=device)
        self.reward = torch.randn(length, size, device=device)
        self.continuation = torch.ones(length, size, device=device)
        self.mask = torch.ones(length, size, device=device)
        self.probability = torch.full((size,), 1e-5, dtype=torch.float64, device=device)
        self.log_mu = torch.full((length, size), 1 / num_actions, device=device).log()
        self.task = torch.randint(config.get("num_tasks", 1), (size,), device=device)


class Update:
    """One update, always of the same batch."""

    def __init__(self, settings: Settings) -> None:
        torch.manual_seed(0)
        if settings["keeps_memory"]:
            _keep_freed_memory()
        self._settings, self._config = settings, settings["config"]
        self._device = _device()
        self._batch = _Batch(settings, self._device)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self._device, torch.bfloat16, enabled=self._settings["bfloat16"])

    def _improve(self, loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        loss.backward()
        if self._config["max_gradient_norm"] is not None:
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(parameters, self._config["max_gradient_norm"])
        optimizer.step()


class QNetwork(nn.Module):
    """Action values of a sequence, by a dueling head."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.body = Body(settings)
        size, hidden = self.body.output_size, settings["config"]["head_size"]
        self._value, self._advantage = (
            nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
            for outputs in (1, settings["num_actions"])
        )

    def unroll_trained(self, inputs: tuple[Tensor, ...], state: State, burn_in: int) -> Tensor:
        """Q on the trained rows and the last, `[L + 1, B, A]`, after a burn-in without gradient."""
        if burn_in:
            with torch.no_grad():
                state = self.body(*(x[:burn_in] for x in inputs), state)[1]
        x, _ = self.body(*(x[burn_in:] for x in inputs), state)
        advantage = self._advantage(x)
        return (self._value(x) + advantage - advantage.mean(-1, keepdim=True)).float()


class R2D2(Update):
    """R2D2's."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._network = QNetwork(settings).to(self._device)
        self._target_network = copy.deepcopy(self._network)
        if self._target_network.body.core is not None:  # a copy's weights are in pieces
            self._target_network.body.core.flatten_parameters()
        self._optimizer = torch.optim.Adam(
            self._network.parameters(),
            lr=self._config["learning_rate"],
            eps=self._config["adam_epsilon"],
        )
        self._step = 0

    def __call__(self) -> Tensor:
        """Improves the parameters; returns the new priorities."""
        config, batch = self._config, self._batch
        inputs = (batch.inputs, batch.state, config["burn_in"])
        with self._autocast():
            online = self._network.unroll_trained(*inputs)
            with torch.no_grad():
                target = self._target_network.unroll_trained(*inputs)
        taken = online[:-1].gather(-1, batch.action.unsqueeze(-1)).squeeze(-1)  # [L, B]
        with torch.no_grad():
            greedy = online.argmax(-1, keepdim=True)
            value = from_rescaled(target.gather(-1, greedy).squeeze(-1))  # [L + 1, B]
            targets = rescale(self._n_step_returns(value))
            weights = (config["replay_size"] * batch.probability) ** -config["importance_exponent"]
            weights = (weights / weights.max()).float()
        error = (targets - taken) * batch.mask
        self._improve((weights * 0.5 * error.square().sum(0)).mean(), self._optimizer)
        self._step += 1
        if self._step % config["target_update_period"] == 0:
            self._target_network.load_state_dict(self._network.state_dict())
        absolute = error.detach().abs()
        mean = absolute.sum(0) / batch.mask.sum(0)
        priority = config["eta"] * absolute.amax(0) + (1 - config["eta"]) * mean
        return priority.cpu()

    def _n_step_returns(self, value: Tensor) -> Tensor:
        """n rewards each, fewer near the end, then the bootstrap: `[L + 1, B]` -> `[L, B]`."""
        reward, discount = self._batch.reward, self._config["discount"] * self._batch.continuation
        steps = min(self._config["n_step"], len(reward))
        returns = torch.cat([value[steps:], value[-1:].expand(steps - 1, -1)])
        zero, one = torch.zeros_like(value[:1]), torch.ones_like(value[:1])
        for i in reversed(range(steps)):
            rewards = torch.cat([reward[i:], zero.expand(i, -1)])
            follows = torch.cat([discount[i:], one.expand(i, -1)])
            returns = rewards + follows * returns
        return returns


def rescale(x: Tensor, epsilon: float = 1e-3) -> Tensor:
    """h(x) = sign(x) (√(|x| + 1) − 1) + ε x."""
    return x.sign() * ((x.abs() + 1).sqrt() - 1) + epsilon * x


def from_rescaled(x: Tensor, epsilon: float = 1e-3) -> Tensor:
    """h^-1, in the form that keeps its digits near zero."""
    size = x.abs() + 1 + epsilon
    root = 2 * size / (1 + (1 + 4 * epsilon * size).sqrt())
    return x.sign() * (root.square() - 1)


class ActorCritic(nn.Module):
    """Logits `[T, B, A]` and a value for each task `[T, B, K]`; with the core's output."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.body = Body(settings)
        self._logits = nn.Linear(self.body.output_size, settings["num_actions"])
        self.value = nn.Linear(self.body.output_size, settings["config"].get("num_tasks", 1))

    def forward(self, inputs: tuple[Tensor, ...], state: State) -> tuple[Tensor, Tensor, Tensor]:
        x, _ = self.body(*inputs, state)
        return self._logits(x).float(), self.value(x).float(), x


class Impala(Update):
    """IMPALA's, PopArt's and MultiHead's."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        config = self._config
        self._network = ActorCritic(settings).to(self._device)
        parameters = [*self._network.parameters()]
        self._popart = None
        if config.get("normalise"):
            self._popart = PopArt(self._network.value, config, self._batch.task)
        self._pixel_control = None
        if config["pixel_control_cost"]:
            self._pixel_control = PixelControl(
                self._network.body.output_size, self._batch.inputs[0], settings["num_actions"]
            )
            parameters += self._pixel_control.parameters()
        self._optimizer = torch.optim.RMSprop(
            parameters,
            lr=config["learning_rate"],
            alpha=config["rmsprop_decay"],
            momentum=config["rmsprop_momentum"],
            eps=config["rmsprop_epsilon"],
        )

    def __call__(self) -> float:
        """Improves the parameters; returns the loss."""
        config, batch = self._config, self._batch
        with self._autocast():
            logits, values, features = self._network(batch.inputs, batch.state)
            q = None if self._pixel_control is None else self._pixel_control(features)
        task = batch.task.expand(len(values), -1).unsqueeze(-1)
        output = values.gather(-1, task).squeeze(-1)  # [L + 1, B]
        shift, scale = self._popart.shift_and_scale() if self._popart else (0.0, 1.0)
        log_policy = logits[:-1].log_softmax(-1)  # [L, B, A]
        log_pi = log_policy.gather(-1, batch.action.unsqueeze(-1)).squeeze(-1)  # [L, B]
        with torch.no_grad():
            targets, advantage = self._vtrace(scale * output + shift, log_pi - batch.log_mu)
        policy_gradient = -(log_pi * advantage / scale).sum()
        baseline = 0.5 * ((targets - shift) / scale - output[:-1]).square().sum()
        negative_entropy = (log_policy.exp() * log_policy).sum()
        loss = policy_gradient + config["baseline_cost"] * baseline
        loss = loss + config["entropy_cost"] * negative_entropy
        if self._pixel_control is not None:
            loss = loss + config["pixel_control_cost"] * self._pixel_control.loss(
                q, batch.inputs[0], batch.action, batch.continuation
            )
        self._improve(loss, self._optimizer)
        if self._popart is not None:
            self._popart.adapt(targets)
        return loss.item()

    def _vtrace(self, value: Tensor, log_ratio: Tensor) -> tuple[Tensor, Tensor]:
        """Targets and weighted advantages, `[L, B]` each."""
        config, ratio, reward = self._config, log_ratio.exp(), self._batch.reward
        rho = ratio.clamp(max=config["rho_bar"])
        trace = config["lambda_"] * ratio.clamp(max=config["c_bar"])
        discount = config["discount"] * self._batch.continuation
        if config["reward_transform"] == "clip":
            reward = reward.clamp(-1, 1)
        delta = rho * (reward + discount * value[1:] - value[:-1])
        correction, corrections = torch.zeros_like(delta[0]), []
        for t in reversed(range(len(delta))):
            correction = delta[t] + discount[t] * trace[t] * correction
            corrections.append(correction)
        targets = value[:-1] + torch.stack(corrections[::-1])
        following = torch.cat([targets[1:], value[-1:]])
        return targets, rho * (reward + discount * following - value[:-1])


class PopArt:
    """Moving averages for each task, and the value layer that is kept in step with them.

    The layer gives a number for each of K tasks; `task` is the task of each unroll, `[B]`.
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


class PixelControl(nn.Module):
    """The head, and its loss on one batch; the newest frame is in the frames' last channel."""

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
            reward, discount = self._rewards(frames), _PIXEL_DISCOUNT * continuation
            target, targets = q[-1].amax(1), []
            for t in reversed(range(len(reward))):
                target = reward[t] + discount[t, :, None, None] * target
                targets.append(target)
        return 0.5 * (torch.stack(targets[::-1]) - taken).square().sum()

    def _rewards(self, frames: Tensor) -> Tensor:
        """The mean absolute change of each cell, `[L, B, h, w]`."""
        sides = [_CELL * side for side in self._grid]
        top, left = (
            (whole - side) // 2 for whole, side in zip(frames.shape[2:4], sides, strict=True)
        )
        newest = frames[:, :, top : top + sides[0], left : left + sides[1], -1].float() / 255
        change = (newest[1:] - newest[:-1]).abs()
        return change.unflatten(3, (-1, _CELL)).unflatten(2, (-1, _CELL)).mean((3, 5))


if __name__ == "__main__":
    protocol.serve({"r2d2": R2D2, "impala": Impala}, ["torch"])
