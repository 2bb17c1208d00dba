import acme
import gym
import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs, wrappers
from acme.agents.tf import actors, r2d2
from acme.tf import networks


class Network(networks.RNNCore):
    def __init__(self, num_actions):
        super().__init__()
        torso = snt.Sequential([snt.Linear(128), tf.tanh, snt.Linear(128), tf.tanh])
        self._layers = snt.DeepRNN([torso, snt.LSTM(64), snt.Linear(num_actions)])

    def __call__(self, inputs, state):
        return self._layers(inputs, state)

    def initial_state(self, batch_size, **kwargs):
        return self._layers.initial_state(batch_size)

    def unroll(self, inputs, state, sequence_length):
        return snt.static_unroll(self._layers, inputs, state, sequence_length)


environment = wrappers.SinglePrecisionWrapper(wrappers.GymWrapper(gym.make("CartPole-v1")))
spec = specs.make_environment_spec(environment)
network = Network(spec.actions.num_values)
lengths = {"burn_in_length": 10, "trace_length": 20, "replay_period": 10}
agent = r2d2.R2D2(spec, network, **lengths, min_replay_size=100, checkpoint=False)
loop = acme.EnvironmentLoop(environment, agent)
for _ in range(500):
    loop.run_episode()
greedy = actors.RecurrentActor(snt.DeepRNN([network, lambda q: tf.argmax(q, axis=-1)]))
evaluation = acme.EnvironmentLoop(environment, greedy)
print(np.mean([evaluation.run_episode()["episode_return"] for _ in range(20)]))
