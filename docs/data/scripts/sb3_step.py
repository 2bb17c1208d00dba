import gymnasium
from sb3_contrib import RecurrentPPO

model = RecurrentPPO.load("runs/cartpole/model")
environment = gymnasium.make("CartPole-v1")
observation, _ = environment.reset(seed=0)
state, total, ended = None, 0.0, False
while not ended:
    action, state = model.predict(observation, state, deterministic=True)
    observation, reward, terminated, truncated, _ = environment.step(action)
    total, ended = total + reward, terminated or truncated
print(total)
