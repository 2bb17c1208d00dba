"""Runs of Stable-Baselines3's PPO and sb3-contrib's RecurrentPPO, which end after so many seconds.

    python -m benchmarks.rivals.stable_baselines \\
        '{"env": "control:cartpole/swingup", "seconds": 60, "num_environments": 16,
          "hidden_sizes": [256, 256]}'
    python -m benchmarks.rivals.stable_baselines \\
        '{"env": "benchmarks.memory_tasks:memory_s9", "seconds": 600, "seed": 1, "steps": null,
          "log": "/tmp/log.csv"}'

The first is PPO on a task of the Control Suite, from features; its last line of stdout is JSON: the
actor steps a second from the second rollout on. Policy and value have a network of these sizes
each. With `log` it is RecurrentPPO, which writes a line for each episode. All else is its own
default, but for the number of environments and the LSTM's size, which are as in a run here.
They need the packages stable-baselines3, sb3-contrib, shimmy, and what the environment needs:
`rwrl:` the Real-World RL suite, dm_control and MuJoCo as requirements-control.lock has them.
"""

import csv
import importlib
import json
import sys
import time
from typing import Any

import gymnasium
from gymnasium.wrappers import FlattenObservation
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from benchmarks.rivals import protocol

_ENVIRONMENTS = 16
_LSTM_SIZE = 64
_COLUMNS = ("walltime", "actor_steps", "episode_return")
_PACKAGES = ("stable-baselines3", "torch", "dm-control", "shimmy")
_EVER = 10**12  # steps


class _Log(BaseCallback):
    """Writes the returns of episodes to a file; ends the training after so long."""

    def __init__(self, path: str, seconds: float, steps: int | None) -> None:
        super().__init__()
        self._file = open(path, "w", newline="", buffering=1)  # noqa: SIM115 (until the process ends)
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._rows.writerow(_COLUMNS)
        self._seconds, self._began = seconds, time.monotonic()
        self._steps = _EVER if steps is None else steps

    def _on_training_start(self) -> None:
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        walltime = time.monotonic() - self._began
        for info in self.locals["infos"]:
            if (episode := info.get("episode")) is not None:
                self._rows.writerow([f"{walltime:.2f}", self.num_timesteps, episode["r"]])
        return walltime < self._seconds and self.num_timesteps < self._steps


class _Watch(BaseCallback):
    """Notes when each rollout begins; ends the training so many seconds after the second."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._begun: list[tuple[float, int]] = []  # when, and at which step

    def _on_rollout_start(self) -> None:
        self._begun.append((time.perf_counter(), self.num_timesteps))

    def _on_step(self) -> bool:
        return len(self._begun) < 3 or self._begun[-1][0] - self._begun[1][0] < self._seconds

    def steps_per_second(self) -> float:
        """The rate over whole rollouts with their updates."""
        (began, before), (ended, after) = self._begun[1], self._begun[-1]
        return (after - before) / (ended - began)


def make(name: str) -> gymnasium.Env[Any, Any]:
    """One environment, by its name.

    `control:<domain>/<task>`, `rwrl:<domain>/<task>/<level>`, `gym:<module>:<id>` or
    `<package.module>:<function>`, which gives one of gymnasium's or bsuite's.

    MiniGrid's picture is a vector, as its mission is always the same and PPO has no torso for
    pictures of 7 x 7. So are observations of several parts; numbers in them become one-hot vectors.
    """
    kind, _, rest = name.partition(":")
    if kind == "control":
        shimmy = importlib.import_module("shimmy.dm_control_compatibility")
        task = importlib.import_module("dm_control.suite").load(*rest.split("/"))
        return FlattenObservation(shimmy.DmControlCompatibilityV0(task))
    if kind == "rwrl":
        shimmy = importlib.import_module("shimmy.dm_control_compatibility")
        domain, task, level = rest.split("/")
        suite = importlib.import_module("realworldrl_suite.environments")
        found = suite.load(domain, f"realworld_{task}", combined_challenge=level)
        return FlattenObservation(shimmy.DmControlCompatibilityV0(found))
    if kind == "gym":
        module, _, id_ = rest.partition(":")
        importlib.import_module(module)
        env = gymnasium.make(id_)
        if module == "minigrid":
            env = importlib.import_module("minigrid.wrappers").ImgObsWrapper(env)
    else:
        env = getattr(importlib.import_module(kind), rest)()
        if not isinstance(env, gymnasium.Env):
            env = importlib.import_module("shimmy.bsuite_compatibility").BSuiteCompatibilityV0(env)
    return FlattenObservation(env)


def train_recurrent_ppo(settings: protocol.Settings) -> None:
    """Trains on one core, and logs episodes."""
    importlib.import_module("torch").set_num_threads(1)
    env = make_vec_env(lambda: make(settings["env"]), _ENVIRONMENTS, seed=settings["seed"])
    model = importlib.import_module("sb3_contrib").RecurrentPPO(
        "MlpLstmPolicy",
        env,
        seed=settings["seed"],
        device="cpu",
        policy_kwargs=dict(lstm_hidden_size=_LSTM_SIZE),
    )
    model.learn(_EVER, callback=_Log(settings["log"], settings["seconds"], settings["steps"]))


def measure_ppo(settings: protocol.Settings) -> None:
    """Trains, and prints how fast."""
    env = make_vec_env(lambda: make(settings["env"]), settings["num_environments"])
    sizes = dict(net_arch=settings["hidden_sizes"])
    ppo = importlib.import_module("stable_baselines3").PPO
    watch = _Watch(settings["seconds"])
    ppo("MlpPolicy", env, device="cpu", policy_kwargs=sizes).learn(_EVER, callback=watch)
    result = dict(steps_per_second=watch.steps_per_second(), versions=protocol.versions(_PACKAGES))
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    (train_recurrent_ppo if "log" in told else measure_ppo)(told)
