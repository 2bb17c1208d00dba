import gym
import numpy as np
import tensorflow as tf

network = tf.saved_model.load("runs/cartpole")
environment = gym.make("CartPole-v1")
observation = environment.reset(seed=0)
state, total, ended = network.initial_state(1), 0.0, False
while not ended:
    q, state = network(observation[np.newaxis], state)
    observation, reward, ended, _ = environment.step(int(tf.argmax(q[0])))
    total += reward
print(total)
