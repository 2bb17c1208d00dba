"""A run of Stable-Baselines3's PPO on a task of the DeepMind Control Suite, from features.

    python -m benchmarks.peers.sb3_ppo \\
        '{"env": "control:cartpole/swingup", "seconds": 60, "num_environments": 16,
          "hidden_sizes": [256, 256]}'

Its last line of stdout is JSON: the actor steps a second from the second rollout on. Policy and
value have a network of these sizes each; all else is its own default, as stepping environments one
after another is. It needs the packages stable-baselines3, shimmy and dm-control.
"""

import importlib.metadata
import json
import sys
import time

import gymnasium
from dm_control import suite
from gymnasium.wrappers import FlattenObservation
from shimmy.dm_control_compatibility import DmControlCompatibilityV0
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

_PACKAGES = ("stable-baselines3", "torch", "dm-control", "shimmy")


class Watch(BaseCallback):
    """Notes when each rollout begins; ends the training at the first after so many seconds.

    Args:
      seconds: to watch, from the second rollout on.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._begun: list[tuple[float, int]] = []  # when, and at which step

    def _on_rollout_start(self) -> None:
        self._begun.append((time.perf_counter(), self.num_timesteps))

    def _on_step(self) -> bool:
        return len(self._begun) < 3 or self._begun[-1][0] - self._begun[1][0] < self._seconds

    def steps_per_second(self) -> float:
        """Of whole rollouts with their updates."""
        (began, before), (ended, after) = self._begun[1], self._begun[-1]
        return (after - before) / (ended - began)


def main() -> None:
    settings = json.loads(sys.argv[1])
    domain, task = settings["env"].removeprefix("control:").split("/")

    def make() -> gymnasium.Env:
        return FlattenObservation(DmControlCompatibilityV0(suite.load(domain, task)))

    sizes = settings["hidden_sizes"]
    env = make_vec_env(make, settings["num_environments"])
    model = PPO("MlpPolicy", env, device="cpu", policy_kwargs=dict(net_arch=sizes))
    watch = Watch(settings["seconds"])
    model.learn(10**12, callback=watch)
    result = {
        "steps_per_second": watch.steps_per_second(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
