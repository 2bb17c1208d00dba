"""A training of sb3-contrib's RecurrentPPO.

    python -m benchmarks.peers.recurrent_ppo \\
        '{"env": "bsuite:memory_len/12", "seconds": 600, "seed": 1, "log": "/tmp/log.csv"}'

It writes a line for each episode, and ends after so many seconds. Everything is its own default but
the environments beside each other and the LSTM's size, which are those of a run here. It needs the
packages sb3-contrib, shimmy, and what the environment needs.
"""

import csv
import importlib
import json
import sys
import time
from typing import Any

import gymnasium
import sb3_contrib
import torch
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation
from shimmy.bsuite_compatibility import BSuiteCompatibilityV0
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

_ENVIRONMENTS = 16
_LSTM_SIZE = 64
COLUMNS = ("walltime", "actor_steps", "episode_return")


class Log(BaseCallback):
    """Writes the returns of episodes; ends the training in time.

    Args:
      path: of the file.
      seconds: from the first step to the end.
    """

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__()
        self._file = open(path, "w", newline="", buffering=1)  # noqa: SIM115 (until the process ends)
        self._rows = csv.writer(self._file, lineterminator="\n")
        self._rows.writerow(COLUMNS)
        self._seconds, self._began = seconds, time.monotonic()

    def _on_training_start(self) -> None:
        self._began = time.monotonic()

    def _on_step(self) -> bool:
        walltime = time.monotonic() - self._began
        for info in self.locals["infos"]:
            if (episode := info.get("episode")) is not None:
                self._rows.writerow([f"{walltime:.2f}", self.num_timesteps, episode["r"]])
        return walltime < self._seconds


def make(name: str) -> gymnasium.Env[Any, Any]:
    """One environment: `gym:<module>:<id>` or `bsuite:<id>`.

    MiniGrid's picture is a vector, as its mission is always the same and PPO has no torso for
    pictures of 7 x 7.
    """
    kind, _, rest = name.partition(":")
    if kind == "bsuite":
        bsuite = importlib.import_module("bsuite")
        return FlattenObservation(BSuiteCompatibilityV0(bsuite.load_from_id(rest)))
    module, _, id_ = rest.partition(":")
    importlib.import_module(module)
    env = gymnasium.make(id_)
    if module == "minigrid":
        env = importlib.import_module("minigrid.wrappers").ImgObsWrapper(env)
    return FlattenObservation(env) if isinstance(env.observation_space, spaces.Box) else env


def main() -> None:
    """Trains as the settings on the command line say."""
    settings = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    env = make_vec_env(lambda: make(settings["env"]), _ENVIRONMENTS, seed=settings["seed"])
    model = sb3_contrib.RecurrentPPO(
        "MlpLstmPolicy",
        env,
        seed=settings["seed"],
        device="cpu",
        policy_kwargs=dict(lstm_hidden_size=_LSTM_SIZE),
    )
    model.learn(10**12, callback=Log(settings["log"], settings["seconds"]))


if __name__ == "__main__":
    main()
