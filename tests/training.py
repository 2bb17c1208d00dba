"""Trains an agent in this process: N environments and the learner take turns."""

import collections
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.actor import make_evaluator
from agents.contract import Agent, Network
from agents.environment_loop import VectorEnvironmentLoop
from agents.in_process import InProcess
from environments import suites
from environments.dm import make_environment_spec

RECENT = 500  # episodes; of returns of ±1, a mean of 0.9 has a standard error of 0.02
# R2D2's, with which it learns small tasks of short episodes.
R2D2: dict[str, Any] = dict(
    burn_in=0,
    length=10,
    period=10,
    batch_size=32,
    min_replay_size=200,
    replay_size=5_000,
    learning_rate=2e-3,
    adam_epsilon=1e-5,
    target_update_period=50,
    discount=0.99,
)


def train(agent: Agent, env: str, **options: Any) -> float:
    """The mean return of the trained agent in one environment; see `train_suite`."""
    (mean_return,) = train_suite(agent, env, **options)
    return mean_return


def train_suite(
    agent: Agent,
    env: str,
    *,
    num_environments: int,
    vector_steps: int,
    until: float = math.inf,
    steps_per_update: int = 1,
    evaluation_episodes: int = 200,
    seed: int,
) -> list[float]:
    """The mean return of the trained agent in each task, as the agent is evaluated.

    Args:
      env: the name of an environment or of a suite, whose tasks get equal shares.
      num_environments: of all tasks together.
      vector_steps: steps of all environments together, before and between the updates; at most.
      until: the mean return that ends training sooner, once the `RECENT` last episodes have it, of
        whichever task, and an evaluation in each task. Who has learned all there is may forget
        some of it: almost no gradient is left, so RMSProp divides by almost nothing, and one rare
        mistake moves every parameter far.
      steps_per_update: vector steps to each learner step; an agent that reads a queue learns as
        soon as it holds a batch instead.
      evaluation_episodes: of each task.
    """
    suite = suites.tasks(env)
    tasks = np.sort(np.arange(num_environments) % len(suite))
    process = InProcess(agent, make_environment_spec(env), tasks=tasks, seed=seed)
    learner, replay = process.learner, process.replay
    names = [suite[task] for task in tasks]
    loop = VectorEnvironmentLoop(suites.make_each(names, seed=seed), process.actor, names)
    recent: collections.deque[float] = collections.deque(maxlen=RECENT)

    def evaluate() -> list[float]:
        return _mean_returns(agent, process.update.network, suite, evaluation_episodes, seed)

    for step in range(vector_steps):
        recent.extend(episode.episode_return for episode in loop.step()[1])
        if len(recent) == RECENT and np.mean(list(recent)) >= until:
            reached = evaluate()
            if min(reached) >= until:
                break
            recent.clear()
        if agent.tables[0].kind == "queue":
            while replay.has_batch():
                learner.step()
        elif replay.num_items() >= agent.tables[0].min_size and step % steps_per_update == 0:
            learner.step()
    else:
        reached = evaluate()
    return reached


def _mean_returns(
    agent: Agent, network: Network, suite: Sequence[str], episodes: int, seed: int
) -> list[float]:
    """The mean return of so many episodes of each task."""
    played = [task for task in suite for _ in range(episodes)]
    evaluator = make_evaluator(agent, network, num_environments=len(played), seed=seed)
    environments = suites.make_each(played, seed=seed + 1)
    ended = VectorEnvironmentLoop(environments, evaluator, played).run_episodes()
    returns = np.reshape([episode.episode_return for episode in ended], [len(suite), -1])
    return [float(mean) for mean in returns.mean(axis=1)]
