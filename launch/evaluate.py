"""Plays a trained agent: python -m launch.evaluate --run_dir=runs/pong --episodes=30"""

import os

os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "2"
)  # before TensorFlow is imported, by whatever follows

import pathlib
import sys
from collections.abc import Sequence

import numpy as np
from absl import app, flags

from agents import actor, environment_loop
from agents.contract import Update
from environments import suites
from launch import catalogue, checkpoints, command_line, nodes, settings

_EPISODES = flags.DEFINE_integer("episodes", 30, "Episodes to play.", lower_bound=1)

MAX_ENVIRONMENTS = 32


def load(run: settings.Settings) -> tuple[Update, int]:
    """The parameters of a run's newest checkpoint, and the learner step they are from.

    Raises:
      CheckpointError: when there is none, or it is damaged.
    """
    folder = run.path / "checkpoints"
    manifest = checkpoints.read(folder)
    if manifest is None:
        raise checkpoints.CheckpointError(f"{folder} holds no checkpoint yet.")
    update = catalogue.make(run.agent, run.config).make_update(nodes.environment_spec(run))
    checkpoints.restore(folder, manifest, run.agent, update)
    return update, manifest.learner_step


def evaluate(run: settings.Settings, episodes: int, seed: int) -> np.ndarray:
    """Undiscounted returns `[episodes]` of the agent as its paper evaluates it."""
    update, _ = load(run)
    agent = catalogue.make(run.agent, run.config)
    returns: list[float] = []
    while len(returns) < episodes:
        n = min(MAX_ENVIRONMENTS, episodes - len(returns))
        player = actor.RecurrentActor(
            agent.make_evaluation_policy(update.network, seed),
            update.network.initial_state(n),
            num_environments=n,
            frame_stack=agent.frame_stack,
            resets_on_life_loss=agent.resets_on_life_loss,
        )
        environments = suites.make(
            run.env, n, seed=seed + len(returns), full_action_space=run.full_action_space
        )
        loop = environment_loop.VectorEnvironmentLoop(environments, player)
        returns += [episode.episode_return for episode in loop.run_episodes()]
        environments.close()
    return np.asarray(returns)


def main(_: Sequence[str]) -> None:
    try:
        if not command_line.RUN_DIR.value:
            raise settings.SettingsError("--run_dir must be given.")
        run = settings.load(pathlib.Path(command_line.RUN_DIR.value))
        returns = evaluate(run, _EPISODES.value, command_line.SEED.value or 0)
    except (settings.SettingsError, checkpoints.CheckpointError) as error:
        command_line.fail(str(error))
    print(
        f"{run.agent} on {run.env}: mean return {returns.mean():.2f} over {len(returns)} episodes "
        f"(standard deviation {returns.std():.2f}, from {returns.min():.1f} to {returns.max():.1f})"
    )
    sys.exit(0)


if __name__ == "__main__":
    app.run(main, flags_parser=command_line.parse_flags)
