"""Figure 1: what training gets wrong where it has to find the recurrent state of a sequence.

Actors play with the parameters of each of the newest snapshots, and the learner's newest ones look
back at what they did: see `r2d2.diagnosis.diagnostics`. Replay's mean parameter lag, which the
analysis `lag` finds, says which of the snapshots is as old as what the learner sees.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from agents.actor import RecurrentActor
from agents.environment_loop import VectorEnvironmentLoop
from analysis.diagnosis import players
from analysis.playing.evaluation import Player
from environments import suites
from r2d2.diagnosis.diagnostics import Strategy, q_discrepancies
from r2d2.diagnosis.recording import Played, Recorder, cut_sequences
from replay.layout import Layout
from run_folder.settings import Settings, SettingsError

MOST_SNAPSHOTS = 4
_ENVIRONMENTS = 8
_WINDOWS = 25  # rows of each environment, in units of burn-in and trained steps


@dataclasses.dataclass(frozen=True)
class Row:
    """ΔQ of many sequences: a bar in each panel of the figure.

    Attributes:
      task: what was played.
      parameter_lag: updates between the parameters that acted and those that look back.
      start: what the unroll begins with: `zero` or the `stored` state.
      burn_in: steps that are unrolled before the first trained one.
      first_mean: at the first trained step, over the sequences.
      first_median: the same; a sequence whose values are all near 0 weighs little in it.
      last_mean: at the last trained step.
      last_median: the same.
      sequences: how many there were.
    """

    task: str
    parameter_lag: int
    start: str
    burn_in: int
    first_mean: float
    first_median: float
    last_mean: float
    last_median: float
    sequences: int


def default_burn_ins(layout: Layout) -> list[int]:
    """None, and the paper's 20 and 40 in proportion to its 80 trained steps; the run's own too."""
    return sorted({0, layout.length // 4, layout.length // 2, layout.burn_in})


def measure(
    run: Settings,
    name: str,
    burn_ins: Sequence[int],
    sequences: int,
    seed: int,
    report: Callable[[str], None],
) -> list[Row]:
    """ΔQ for each task, snapshot and strategy.

    Args:
      run: whose agent it is.
      name: of the agent.
      burn_ins: lengths to compare.
      sequences: the most that are drawn for each task and snapshot.
      seed: of what is played, and of that draw.
      report: told what comes next.

    Raises:
      SettingsError: when the agent has no action values or no memory, or the tasks' episodes are
        too short.
      CheckpointError: when nothing was saved, or it is damaged.
    """
    players.check(run, name, "discrepancy")
    actors = players.newest_first(run, name, MOST_SNAPSHOTS)
    learner = actors[0]
    strategies = [Strategy(stored, n) for stored in (False, True) for n in burn_ins]
    layout = dataclasses.replace(learner.agent.tables[0].layout, burn_in=max(burn_ins))
    rows = []
    for task in run.tasks:
        for actor in actors:
            lag = learner.played.learner_steps - actor.played.learner_steps
            report(f"{task}: acting with the parameters of {lag:,} updates ago")
            played = _play(actor, task, _WINDOWS * (layout.burn_in + layout.length), seed)
            try:
                cuts = cut_sequences(played, layout, sequences, seed)
            except ValueError as error:
                raise SettingsError(f"{task}: {error}") from None
            report(f"{task}, lag {lag:,}: looking back at {len(cuts.trained):,} sequences")
            measured = q_discrepancies(
                learner.network, played, cuts, strategies, layout.frame_stack
            )
            rows += [
                Row(
                    task=task,
                    parameter_lag=lag,
                    start="stored" if strategy.stored_state else "zero",
                    burn_in=strategy.burn_in,
                    first_mean=float(np.mean(found.first)),
                    first_median=float(np.median(found.first)),
                    last_mean=float(np.mean(found.last)),
                    last_median=float(np.median(found.last)),
                    sequences=len(cuts.trained),
                )
                for strategy, found in measured.items()
            ]
    return rows


def _play(player: Player, task: str, rows: int, seed: int) -> Played:
    """What actors do with these parameters, from epsilons all over the run's ladder."""
    agent, network, run = player.agent, player.network, player.run
    ranks = np.linspace(0, run.num_actors - 1, _ENVIRONMENTS).round().astype(int)
    recorder = Recorder()
    actor = RecurrentActor(
        agent.make_policy(network, ranks, run.num_actors, seed),
        network.initial_state(_ENVIRONMENTS),
        num_environments=_ENVIRONMENTS,
        frame_stack=agent.frame_stack,
        actions=network.actions,
        resets_on_life_loss=agent.resets_on_life_loss,
        writer=recorder,
    )
    environments = suites.make(
        task,
        _ENVIRONMENTS,
        seed=seed,
        full_action_space=run.full_action_space,
        full_rendering=run.full_rendering,
    )
    with contextlib.closing(environments):
        loop = VectorEnvironmentLoop(environments, actor, [task] * _ENVIRONMENTS)
        for _ in range(rows):
            loop.step()
    return recorder.played(resets_on_life_loss=agent.resets_on_life_loss)
