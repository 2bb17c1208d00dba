import matplotlib.pyplot as plt
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.results_plotter import plot_results

environments = make_vec_env("CartPole-v1", n_envs=8, monitor_dir="runs/cartpole")
model = RecurrentPPO("MlpLstmPolicy", environments).learn(20_000)
model.save("runs/cartpole/model")
plot_results(["runs/cartpole"], None, "timesteps", "CartPole-v1")
plt.savefig("returns.png")
print(evaluate_policy(model, make_vec_env("CartPole-v1"), n_eval_episodes=20)[0])
