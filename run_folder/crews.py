"""Who acts where: which actors share a process, whose policy they follow, what they play."""

from typing import NamedTuple

import numpy as np

from run_folder.settings import Settings


class Crew(NamedTuple):
    """The actors of one node. Those that play the same task are neighbours."""

    agent: str  # whose policy they follow
    actors: tuple[int, ...]  # indices among all actors of the run
    ranks: tuple[int, ...]  # theirs among the actors that follow the same agent ...
    num_actors: int  # ... which are so many
    tasks: tuple[int, ...]  # what each plays: indices in `Settings.tasks`


def num_nodes(settings: Settings) -> int:
    """How many processes a run's program has."""
    of_agents = settings.learners_per_agent * len(settings.agents)
    learners = 1 if settings.colocate_learners else of_agents
    evaluators = len(settings.agents) if settings.evaluation_episodes else 0
    return settings.num_replay_shards + 1 + learners + len(crews(settings)) + evaluators


def crews(settings: Settings) -> list[Crew]:
    """Spreads the actors evenly over the agents that act, each agent's over tasks, then processes.

    Of those that follow one agent, the actor of rank i plays task i modulo the number of tasks:
    every task is played with policies from the whole range of the agent's. Sorted by task before
    they are cut into processes, so that a process holds few different environments.
    """
    found = []
    num_tasks = len(settings.tasks)
    shares = np.array_split(np.arange(settings.num_actors), len(settings.acting))
    for name, share in zip(settings.acting, shares, strict=True):
        sorted_ranks = sorted(range(len(share)), key=lambda rank: (rank % num_tasks, rank))
        for begin in range(0, len(share), settings.actors_per_node):
            ranks = sorted_ranks[begin : begin + settings.actors_per_node]
            found.append(
                Crew(
                    name,
                    actors=tuple(int(share[rank]) for rank in ranks),
                    ranks=tuple(ranks),
                    num_actors=len(share),
                    tasks=tuple(rank % num_tasks for rank in ranks),
                )
            )
    return found
