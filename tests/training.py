"""Trains an agent in this process: N environments and the learner take turns."""

import dataclasses
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
import tree

from agents.actor import make_actor, make_evaluator
from agents.contract import Agent
from agents.environment_loop import VectorEnvironmentLoop
from agents.learner import Learner
from environments import suites
from replay import tables
from replay.dataset import make_dataset
from replay.priorities import PriorityUpdater
from replay.writer import SequenceWriter


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
    steps_per_update: int = 1,
    evaluation_episodes: int = 200,
    seed: int,
) -> list[float]:
    """The mean return of the trained agent in each task, as the agent is evaluated.

    Args:
      env: the name of an environment or of a suite, whose tasks get equal shares.
      num_environments: of all tasks together.
      vector_steps: steps of all environments together, before and between the updates.
      steps_per_update: vector steps to each learner step; an agent that reads a queue learns as
        soon as it holds a batch instead.
      evaluation_episodes: of each task.
    """
    suite = suites.tasks(env)
    tasks = np.sort(np.arange(num_environments) % len(suite))
    tf.random.set_seed(seed)
    spec = suites.make_environment_spec(env)
    update = agent.make_update(spec)
    state = tree.map_structure(lambda x: x[0], update.network.initial_state(1))
    unlimited = [
        dataclasses.replace(table, min_size=1, samples_per_insert=None) for table in agent.tables
    ]
    names = [table.name for table in unlimited]
    length = tables.block_length(unlimited)
    server = reverb.Server(tables.make_tables(unlimited, spec, dict.fromkeys(names, state), length))
    client = server.localhost_client()
    priorities = PriorityUpdater([client], names[0])
    addresses = [client.server_address]
    batches = make_dataset(addresses, unlimited, spec, state, length, agent.batch_sizes)
    burn_in = unlimited[0].layout.burn_in
    learner = Learner(update, iter(batches), burn_in=burn_in, priorities=priorities)
    writer = SequenceWriter(
        client,
        unlimited,
        block_length=length,
        actors=np.arange(num_environments),
        tasks=tasks,
        agent=0,
        initial_priorities={names[0]: agent.initial_priority} if agent.initial_priority else {},
    )
    actor = make_actor(
        agent,
        spec,
        actors=range(num_environments),
        num_actors=num_environments,
        seed=seed,
        source=learner,
        writer=writer,
    )
    actor.update(wait=True)
    environments = suites.make_each([suite[task] for task in tasks], seed=seed)
    loop = VectorEnvironmentLoop(environments, actor)
    for step in range(vector_steps):
        loop.step()
        if agent.tables[0].kind == "queue":
            due = num_environments * (step // agent.tables[0].layout.period) // agent.batch_sizes[0]
            num_updates = due - learner.num_steps
        else:
            enough = client.server_info()[names[0]].current_size >= agent.tables[0].min_size
            num_updates = int(enough and step % steps_per_update == 0)
        for _ in range(num_updates):
            learner.step()
    played = [task for task in suite for _ in range(evaluation_episodes)]
    evaluator = make_evaluator(agent, update.network, num_environments=len(played), seed=seed)
    environments = suites.make_each(played, seed=seed + 1)
    episodes = VectorEnvironmentLoop(environments, evaluator).run_episodes()
    priorities.close()
    writer.close()
    server.stop()
    returns = np.reshape([episode.episode_return for episode in episodes], [len(suite), -1])
    return [float(mean) for mean in returns.mean(axis=1)]
