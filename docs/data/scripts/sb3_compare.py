import matplotlib.pyplot as plt
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import load_results

for algorithm, policy in ((PPO, "MlpPolicy"), (RecurrentPPO, "MlpLstmPolicy")):
    folder = f"runs/{algorithm.__name__}"
    environments = make_vec_env("CartPole-v1", n_envs=8, monitor_dir=folder)
    model = algorithm(policy, environments).learn(5_000)
    rows = load_results(folder)
    plt.plot(rows["l"].cumsum(), rows["r"], ".", label=algorithm.__name__)
    mean = evaluate_policy(model, make_vec_env("CartPole-v1"), n_eval_episodes=20)[0]
    print(algorithm.__name__, mean)
plt.legend()
