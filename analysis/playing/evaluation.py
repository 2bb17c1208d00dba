"""Plays the frozen parameters of a run by the papers' protocol.

For notebooks and other commands; `launch.evaluate` prints the results:

    run = settings.load(pathlib.Path("runs/pong"))
    player = evaluation.load(run, "r2d2", memory_steps=8)
    returns = {task: [e.episode_return for e in evaluation.play(player, task)]
               for task in player.tasks}

Episodes begin with up to 30 no-ops and end after 30 minutes on Atari (`environments.atari`); their
returns are undiscounted and unclipped.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from gymnasium.vector import VectorEnv

from agents import environment_loop
from agents.actor import RecurrentActor, Writer, make_evaluator
from agents.contract import Agent, Network, Update
from agents.environment_loop import Episode
from agents.limited_memory import limit_memory
from analysis.playing.files import Played
from environments import suites
from run_folder import best, building, checkpoints, resuming
from run_folder.checkpoints import CheckpointError, Manifest
from run_folder.settings import Settings, SettingsError

# R2D2, Appendix; IMPALA, Section 5.3.2 and Table 3; PopArt-IMPALA, "Evaluation".
_EPISODES = {"atari": 200, "dmlab": 500}
_OTHER_EPISODES = 100
_MAX_ENVIRONMENTS = 32
_MAX_ENGINES = 8  # of DeepMind Lab, each a process of hundreds of megabytes


@dataclasses.dataclass(frozen=True)
class Player:
    """An agent's parameters, ready to play."""

    run: Settings  # of the run that the parameters are from
    agent: Agent  # its config has the epsilon to play with
    update: Update  # holds the parameters
    network: Network  # acts with them, with a limited memory if that was asked for
    played: Played  # describes the evaluation in its file

    @property
    def tasks(self) -> list[str]:
        """The tasks that are played: of a level with a held-out twin, the twin."""
        return [suites.evaluation_task(task) for task in self.run.tasks]

    def actor(self, count: int, writer: Writer | None = None) -> RecurrentActor:
        """Who acts in so many environments, as the agent is evaluated; a writer takes the rows."""
        return make_evaluator(
            self.agent, self.network, num_environments=count, seed=self.played.seed, writer=writer
        )

    def environments(self, task: str, count: int) -> VectorEnv:
        """So many environments of a task, as in the run."""
        return suites.make(
            task,
            count,
            seed=self.played.seed,
            full_action_space=self.run.full_action_space,
            full_rendering=self.run.full_rendering,
        )


def load(
    run: Settings,
    name: str | None = None,
    *,
    checkpoint: int | str | None = None,
    epsilon: float | None = None,
    memory_steps: int | None = None,
    seed: int = 0,
) -> Player:
    """An agent of a run, ready to play.

    Args:
      run: as `settings.load` reads it.
      name: of the agent; None for the run's first.
      checkpoint: the learner step whose parameters play; "best" for those of the run's best
        evaluation, which estimate no returns; None for the newest, or those where nothing else was
        saved.
      epsilon: probability of a random action; None for that of the agent's config.
      memory_steps: inputs that it remembers (`agents.limited_memory`); None for all.
      seed: of environments and policy.

    Raises:
      SettingsError: when the run has no such agent or the agent cannot play so.
      CheckpointError: when there is no such checkpoint, or it is damaged.
    """
    name = name or run.agents[0]
    check_agent(run, name)
    agent = building.make_agent(run, name, _with_epsilon(run, name, epsilon))
    plays_best = checkpoint == "best" or (checkpoint is None and resuming.has_best_alone(run, name))
    found = _best(run, name) if plays_best else find(run, name, checkpoint)
    try:
        update = agent.make_update(building.environment_spec(run))
    except ValueError as error:  # an engine that this machine lacks
        raise SettingsError(f"{run.path} cannot be played here: {error}") from None
    if isinstance(found, best.Best):
        best.assign(found, update.network)
        # The scale of its estimates may be the learner's own, which an evaluator does not know.
        agent = dataclasses.replace(agent, estimates=lambda *_: {})
    else:
        checkpoints.restore(run.folder.checkpoints, found, name, update)
    try:
        network = (
            update.network if memory_steps is None else limit_memory(update.network, memory_steps)
        )
    except ValueError as error:
        raise SettingsError(f"--{error}") from None
    field = run.entry(name).epsilon_field
    played = Played(
        agent=name,
        learner_steps=found.learner_step,
        actor_steps=found.actor_steps,
        walltime=found.walltime,
        epsilon=None if field is None else getattr(agent.config, field),
        memory_steps=memory_steps,
        seed=seed,
    )
    return Player(run, agent, update, network, played)


def check_agent(run: Settings, name: str) -> None:
    """Accepts an agent that learned in the run.

    Raises:
      SettingsError: for any other.
    """
    if name not in run.agents:
        raise SettingsError(
            f"--agent={name} did not learn in {run.path}; there are {', '.join(run.agents)}."
        )


def num_episodes(task: str) -> int:
    """The number of episodes that the papers play of a task; 100 where they say nothing."""
    return _EPISODES.get(suites.kind(task), _OTHER_EPISODES)


def play(
    player: Player,
    task: str,
    episodes: int | None = None,
    on_step: Callable[[int, int], None] = lambda steps, ended: None,
) -> list[Episode]:
    """Plays episodes of a task in several environments at once, each its share of them.

    Args:
      player: who plays.
      task: one of `player.tasks`.
      episodes: how many; None for `num_episodes`.
      on_step: told the actor steps and the episodes that every step of the environments brought.

    Returns:
      The episodes, environment after environment.
    """
    episodes = episodes or num_episodes(task)
    at_once = min(_MAX_ENGINES if suites.kind(task) == "dmlab" else _MAX_ENVIRONMENTS, episodes)
    evaluator, finished = player.actor(at_once), list[Episode]()
    with contextlib.closing(player.environments(task, at_once)) as environments:
        loop = environment_loop.VectorEnvironmentLoop(environments, evaluator, [task] * at_once)
        for steps, ended in loop.play_in_all(episodes):
            finished += ended
            on_step(steps, len(ended))
    return sorted(finished, key=lambda episode: episode.environment)


def _with_epsilon(run: Settings, name: str, epsilon: float | None) -> Any:
    """The agent's Config, with another probability of a random action if one is given."""
    config, field = run.configs[name], run.entry(name).epsilon_field
    if epsilon is None:
        return config
    if field is None:
        raise SettingsError(
            f"--epsilon={epsilon:g} is the probability of a random action, but {name} samples its "
            "actions from its policy."
        )
    if not 0 <= epsilon <= 1:
        raise SettingsError(f"--epsilon must be between 0 and 1, got {epsilon:g}.")
    return dataclasses.replace(config, **{field: epsilon})


def find(run: Settings, name: str, step: int | str | None) -> Manifest:
    """The manifest of an agent's learner at an update, or None for the newest; errors as `load`."""
    if isinstance(step, str):
        raise SettingsError(
            'checkpoint must be the number of an update, None for the newest, or "best", which '
            f"plays but does not learn on, got {step!r}."
        )
    folder = run.folder.checkpoints
    newest = checkpoints.read(folder, checkpoints.manifest_name(name, run.paced_by))
    if newest is None:
        held = "no checkpoint"
        if resuming.has_best_alone(run, name):
            held = "the best parameters alone, and no other checkpoint"
        raise CheckpointError(f"{folder} holds {held} of {name} yet.")
    if step in (None, newest.learner_step):
        return newest
    return checkpoints.read_kept(folder, name, step)


def _best(run: Settings, name: str) -> best.Best:
    """What is kept of an agent's best evaluation. Raises CheckpointError where nothing is."""
    folder = run.folder.checkpoints
    found = best.read(folder, name)
    if found is None:
        raise CheckpointError(
            f"{folder} holds no best parameters of {name}: no evaluation by the run itself, of all "
            f"its tasks, has ended (its --evaluation_episodes={run.evaluation_episodes})."
        )
    return found
