import gymnasium
import numpy as np
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy


class Cue(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps, self._cue = 0, self.np_random.integers(2)
        return np.eye(2, dtype=np.float32)[self._cue], {}

    def step(self, action):
        self._steps += 1
        ends = self._steps == 4
        reward = float(ends and action == self._cue)
        return np.zeros(2, np.float32), reward, ends, False, {}


environments = make_vec_env(Cue, n_envs=8)
model = RecurrentPPO("MlpLstmPolicy", environments).learn(20_000)
print(evaluate_policy(model, environments, n_eval_episodes=50)[0])
