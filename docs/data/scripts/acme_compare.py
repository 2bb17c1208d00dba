import acme
import gym
import matplotlib.pyplot as plt
import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs, wrappers
from acme.agents.tf import actors, impala, r2d2
from acme.tf import networks


class Network(networks.RNNCore):
    def __init__(self, head):
        super().__init__()
        self._layers = snt.DeepRNN([snt.nets.MLP([64]), snt.LSTM(64), head])

    def __call__(self, inputs, state):
        return self._layers(inputs, state)

    def initial_state(self, batch_size, **kwargs):
        return self._layers.initial_state(batch_size)

    def unroll(self, inputs, state, sequence_length):
        return snt.static_unroll(self._layers, inputs, state, sequence_length)


environment = wrappers.SinglePrecisionWrapper(wrappers.GymWrapper(gym.make("CartPole-v1")))
spec = specs.make_environment_spec(environment)
q_network = Network(snt.Linear(spec.actions.num_values))
policy_network = Network(networks.PolicyValueHead(spec.actions.num_values))
lengths = {"burn_in_length": 10, "trace_length": 20, "replay_period": 10}
agents = {
    "r2d2": r2d2.R2D2(spec, q_network, **lengths, min_replay_size=100, checkpoint=False),
    "impala": impala.IMPALA(spec, policy_network, sequence_length=20, sequence_period=20),
}
policies = {
    "r2d2": snt.DeepRNN([q_network, lambda q: tf.argmax(q, axis=-1)]),
    "impala": snt.DeepRNN([policy_network, lambda output: tf.argmax(output[0], axis=-1)]),
}
for name, agent in agents.items():
    loop = acme.EnvironmentLoop(environment, agent)
    played = [loop.run_episode() for _ in range(200)]
    plt.plot([e["steps"] for e in played], [e["episode_return"] for e in played], ".", label=name)
    evaluation = acme.EnvironmentLoop(environment, actors.RecurrentActor(policies[name]))
    print(name, np.mean([evaluation.run_episode()["episode_return"] for _ in range(20)]))
plt.legend()
