"""Trains a V-trace agent in one process, with no replay server: a run follows from its seed."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from agents.actor import RecurrentActor, make_evaluator
from agents.contract import Agent, Update
from agents.environment_loop import VectorEnvironmentLoop
from environments import suites
from environments.dm import make_environment_spec
from studies.unrolls import Collector, UniformReplay, to_batch

EVALUATION_EPISODES = 200
_EVALUATION_SEED = 5  # its environments' seeds begin there


class Trained(NamedTuple):
    """What came of a training."""

    steps: int  # of the environments
    final_return: float  # mean of the episodes played after training
    mean_return: float  # mean of all episodes during training
    update: Update
    metrics: dict[str, float]  # of the last update


def train(agent: Agent, task: str, updates: int, seed: int) -> Trained:
    """Trains and evaluates. Every update has a new unroll of each environment.

    Args:
      agent: IMPALA, or one of its kind.
      task: name of an environment.
      updates: how many.
      seed: of parameters, policy and environments.
    """
    config = agent.config
    tf.random.set_seed(seed)
    update = agent.make_update(make_environment_spec(task))
    num_environments = config.batch_size - config.num_replayed
    collector, replay = Collector(config.length), UniformReplay(config.replay_size, seed)
    actor = RecurrentActor(
        agent.make_policy(update.network, np.arange(num_environments), num_environments, seed),
        update.network.initial_state(num_environments),
        num_environments=num_environments,
        frame_stack=config.frame_stack,
        writer=collector,
    )
    environments = suites.make(task, num_environments, seed=seed)
    loop = VectorEnvironmentLoop(environments, actor, [task] * num_environments)
    steps, returns = 0, []
    for _ in range(updates):
        while (unrolls := collector.take()) is None:
            new_steps, episodes = loop.step()
            steps += new_steps
            returns += [episode.episode_return for episode in episodes]
        replay.add(unrolls)
        _, metrics = update(to_batch([unrolls, *replay.sample(config.num_replayed)]))
    return Trained(
        steps,
        _final_return(agent, update, task, seed),
        float(np.mean(returns)),
        update,
        {name: float(value) for name, value in metrics.items()},
    )


def _final_return(agent: Agent, update: Update, task: str, seed: int) -> float:
    network = getattr(update, "learned_network", update.network)  # not the one that lags
    evaluator = make_evaluator(agent, network, num_environments=EVALUATION_EPISODES, seed=seed)
    environments = suites.make(task, EVALUATION_EPISODES, seed=_EVALUATION_SEED + seed)
    loop = VectorEnvironmentLoop(environments, evaluator, [task] * EVALUATION_EPISODES)
    return float(np.mean([episode.episode_return for episode in loop.run_episodes()]))
