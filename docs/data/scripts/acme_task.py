import acme
import dm_env
import numpy as np
import sonnet as snt
import tensorflow as tf
from acme import specs, wrappers
from acme.agents.tf import actors, r2d2
from acme.tf import networks


class Cue(dm_env.Environment):
    def observation_spec(self):
        return specs.BoundedArray((2,), np.float32, 0, 1)

    def action_spec(self):
        return specs.DiscreteArray(2)

    def reset(self):
        self._steps, self._cue = 0, np.random.randint(2)
        return dm_env.restart(np.eye(2, dtype=np.float32)[self._cue])

    def step(self, action):
        self._steps += 1
        seen = np.zeros(2, np.float32)
        if self._steps < 4:
            return dm_env.transition(0.0, seen)
        return dm_env.termination(float(action == self._cue), seen)


class Network(networks.RNNCore):
    def __init__(self, num_actions):
        super().__init__()
        self._layers = snt.DeepRNN([snt.nets.MLP([64]), snt.LSTM(64), snt.Linear(num_actions)])

    def __call__(self, inputs, state):
        return self._layers(inputs, state)

    def initial_state(self, batch_size, **kwargs):
        return self._layers.initial_state(batch_size)

    def unroll(self, inputs, state, sequence_length):
        return snt.static_unroll(self._layers, inputs, state, sequence_length)


environment = wrappers.SinglePrecisionWrapper(Cue())
spec = specs.make_environment_spec(environment)
network = Network(spec.actions.num_values)
lengths = {"burn_in_length": 0, "trace_length": 4, "replay_period": 4}
agent = r2d2.R2D2(spec, network, **lengths, min_replay_size=100, checkpoint=False)
loop = acme.EnvironmentLoop(environment, agent)
for _ in range(5000):
    loop.run_episode()
greedy = actors.RecurrentActor(snt.DeepRNN([network, lambda q: tf.argmax(q, axis=-1)]))
evaluation = acme.EnvironmentLoop(environment, greedy)
print(np.mean([evaluation.run_episode()["episode_return"] for _ in range(50)]))
