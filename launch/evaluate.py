"""Plays a trained agent: python -m launch.evaluate --run_dir=runs/pong --episodes=30"""

import os

os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "2"
)  # before TensorFlow is imported, by whatever follows

import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from absl import flags

from agents import actor, environment_loop
from agents.contract import Agent, Network, Update
from environments import suites
from launch import catalogue, checkpoints, command_line, nodes, settings, task_returns

_EPISODES = flags.DEFINE_integer("episodes", 30, "Episodes of each task to play.", lower_bound=1)
_SECTIONS = {"What is played": ("run_dir", "agent", "episodes", "seed")}

MAX_ENVIRONMENTS = 32
MAX_ENGINES = 8  # of DeepMind Lab, each a process of hundreds of megabytes


def load(run: settings.Settings, agent: Agent) -> Update:
    """The parameters of an agent's newest checkpoint.

    Raises:
      CheckpointError: when there is none, or it is damaged.
    """
    folder = run.path / "checkpoints"
    manifest = checkpoints.read(folder, checkpoints.manifest_name(agent.name, run.paced_by))
    if manifest is None:
        raise checkpoints.CheckpointError(f"{folder} holds no checkpoint of {agent.name} yet.")
    update = agent.make_update(nodes.environment_spec(run))
    checkpoints.restore(folder, manifest, agent.name, update)
    return update


def evaluate(run: settings.Settings, name: str, episodes: int, seed: int) -> dict[str, np.ndarray]:
    """Undiscounted returns `[episodes]` of each task by one agent, as its paper evaluates it.

    A level with a held-out twin is evaluated on that.
    """
    agent = catalogue.make(name, run.configs[name])
    network = load(run, agent).network
    tasks = [suites.evaluation_task(task) for task in run.tasks]
    return {task: _play(run, agent, network, task, episodes, seed) for task in tasks}


def _play(
    run: settings.Settings, agent: Agent, network: Network, task: str, episodes: int, seed: int
) -> np.ndarray:
    returns: list[float] = []
    at_once = MAX_ENGINES if task.startswith("dmlab") else MAX_ENVIRONMENTS
    while len(returns) < episodes:
        n = min(at_once, episodes - len(returns))
        player = actor.make_evaluator(agent, network, num_environments=n, seed=seed)
        environments = suites.make(
            task, n, seed=seed + len(returns), full_action_space=run.full_action_space
        )
        loop = environment_loop.VectorEnvironmentLoop(environments, player)
        returns += [episode.episode_return for episode in loop.run_episodes()]
        environments.close()
    return np.asarray(returns)


def describe(name: str, returns: Mapping[str, np.ndarray]) -> Iterator[str]:
    """A line for each task and, where several have human scores, one for what they amount to."""
    for task, values in returns.items():
        yield (
            f"{name} on {task}: mean return {values.mean():.2f} over {len(values)} episodes "
            f"(standard deviation {values.std():.2f}, from {values.min():.1f} to "
            f"{values.max():.1f})"
        )
    means = {task: float(values.mean()) for task, values in returns.items()}
    aggregates = task_returns.aggregates(means)
    if aggregates and len(means) > 1:
        yield f"{name}, human-normalised: {task_returns.percent(aggregates)}"


def main(_: Sequence[str]) -> None:
    try:
        if not command_line.RUN_DIR.value:
            raise settings.SettingsError("--run_dir must be given.")
        run = settings.load(pathlib.Path(command_line.RUN_DIR.value))
        name = command_line.AGENT.value or run.agents[0]
        if name not in run.agents:
            raise settings.SettingsError(
                f"--agent={name} did not learn in {run.path}; there are {', '.join(run.agents)}."
            )
        returns = evaluate(run, name, _EPISODES.value, command_line.SEED.value or 0)
    except (settings.SettingsError, checkpoints.CheckpointError) as error:
        command_line.fail(str(error))
    for line in describe(name, returns):
        print(line)
    sys.exit(0)


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
