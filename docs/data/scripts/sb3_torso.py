import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor


class Wide(BaseFeaturesExtractor):
    def __init__(self, observation_space):
        super().__init__(observation_space, features_dim=128)
        self._layers = torch.nn.Sequential(
            torch.nn.Linear(observation_space.shape[0], 128),
            torch.nn.Tanh(),
            torch.nn.Linear(128, 128),
            torch.nn.Tanh(),
        )

    def forward(self, observations):
        return self._layers(observations)


policy = {"features_extractor_class": Wide}
model = RecurrentPPO("MlpLstmPolicy", "CartPole-v1", policy_kwargs=policy).learn(20_000)
print(evaluate_policy(model, model.get_env(), n_eval_episodes=20)[0])
