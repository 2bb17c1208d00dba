"""Figure 5: what a policy loses that remembers its last k inputs only."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from agents.actor import RecurrentActor
from agents.environment_loop import VectorEnvironmentLoop
from agents.limited_memory import limit_memory
from analysis.diagnosis import players
from analysis.playing import evaluation, intervals
from analysis.playing.evaluation import Player
from environments import suites
from r2d2.diagnosis.diagnostics import Means, make_limited_policy
from run_folder.settings import Settings


@dataclasses.dataclass(frozen=True)
class Row:
    """What the greedy policy does with one memory: a point in each panel of the figure.

    Attributes:
      task: what was played.
      memory_steps: k, inputs remembered; None for all.
      episode_return: mean over the episodes, undiscounted and unclipped.
      low: of the mean's 95% interval.
      high: of it.
      greedy_match: part of the steps at which the unlimited policy would act alike.
      q_difference: mean of |max_a Q_k(a) − max_a Q_∞(a)|, in the units of the network's outputs.
      episodes: how many were played.
    """

    task: str
    memory_steps: int | None
    episode_return: float
    low: float
    high: float
    greedy_match: float
    q_difference: float
    episodes: int


def measure(
    run: Settings,
    name: str,
    memories: Sequence[int],
    episodes: int,
    seed: int,
    report: Callable[[str], None],
) -> list[Row]:
    """Plays each task with each memory, and without a limit.

    Args:
      run: whose agent it is.
      name: of the agent.
      memories: the ks.
      episodes: of each, all at once.
      seed: of what is played: the same for each.
      report: told what comes next.

    Raises:
      SettingsError: when the agent has no action values or no memory.
      CheckpointError: when nothing was saved, or it is damaged.
    """
    players.check(run, name, "memory")
    player = evaluation.load(run, name, seed=seed)
    rows = []
    for task in player.tasks:
        for k in (*sorted(memories), None):
            report(f"{task}: remembering {'all' if k is None else f'{k:,} inputs'}")
            rows.append(_play(player, task, k, episodes))
    return rows


def _play(player: Player, task: str, memory_steps: int | None, episodes: int) -> Row:
    network, agent, seed = player.network, player.agent, player.played.seed
    limited = network if memory_steps is None else limit_memory(network, memory_steps)
    values = Means()
    actor = RecurrentActor(
        make_limited_policy(limited, network),
        (limited.initial_state(episodes), network.initial_state(episodes)),
        num_environments=episodes,
        frame_stack=agent.frame_stack,
        actions=network.actions,
        resets_on_life_loss=agent.resets_on_life_loss,
        writer=values,
    )
    environments = suites.make(
        task,
        episodes,
        seed=seed,
        full_action_space=player.run.full_action_space,
        full_rendering=player.run.full_rendering,
    )
    with contextlib.closing(environments):
        loop = VectorEnvironmentLoop(environments, actor, [task] * episodes)
        ended = loop.run_episodes()
    returns = np.array([episode.episode_return for episode in ended])
    low, high = intervals.of_mean(returns)
    return Row(
        task=task,
        memory_steps=memory_steps,
        episode_return=float(returns.mean()),
        low=low,
        high=high,
        episodes=episodes,
        **values.means(),
    )
