"""Plays what a run has learned: python -m launch.evaluate --run_dir=runs/pong --episodes=30"""

import os

# Before TensorFlow and pygame are imported, by whatever follows.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws, but opens no window

import pathlib
import re
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from absl import flags

from agents.limited_memory import MOST_MEMORY_STEPS
from analysis.playing import captions, evaluation, files, film, progress_bar, summary, videos
from analysis.playing.evaluation import Player
from launch import command_line
from run_folder import checkpoints, settings
from run_folder.settings import SettingsError

_EPISODES = flags.DEFINE_integer(
    "episodes",
    None,
    "Of each task; by default what the papers play: 200 on Atari, 500 on DMLab; 100 elsewhere.",
    lower_bound=1,
    upper_bound=1_000_000,
)
_CHECKPOINT = flags.DEFINE_string(
    "checkpoint", "latest", "Whose parameters play: latest, or the update N of a kept one."
)
_EPSILON = flags.DEFINE_float("epsilon", None, "Probability of a random action; R2D2 only.")
_MEMORY_STEPS = flags.DEFINE_integer(
    "memory_steps",
    None,
    "The agent remembers its last k inputs only; all by default.",
    upper_bound=MOST_MEMORY_STEPS,
)
_VIDEO = flags.DEFINE_boolean("video", False, "Film an episode of each task, into videos/.")
_SECTIONS = {
    "Who plays": ("run_dir", "agent", "checkpoint", "epsilon", "memory_steps"),
    "What": ("episodes", "video", "seed"),
}


def player_of_flags() -> Player:
    """Who the command line asks for.

    Raises:
      SettingsError, CheckpointError: there is no such agent or checkpoint, or it cannot play so.
    """
    if not command_line.RUN_DIR.value:
        raise SettingsError("--run_dir must be given.")
    run = settings.load(pathlib.Path(command_line.RUN_DIR.value))
    return evaluation.load(
        run,
        command_line.AGENT.value or run.agents[0],
        checkpoint=_checkpoint(_CHECKPOINT.value),
        epsilon=_EPSILON.value,
        memory_steps=_MEMORY_STEPS.value,
        seed=command_line.SEED.value or 0,
    )


def _checkpoint(text: str) -> int | None:
    if text == "latest":
        return None
    if not (text.isdecimal() and len(text) < 20):  # with which int64 ends
        raise SettingsError(
            f"--checkpoint must be latest or the number of an update, got {text!r}."
        )
    return int(text)


def play_all(player: Player) -> None:
    """Plays task after task; prints and records what comes of it."""
    agent = player.agent.name
    file = files.File(player.run.path, player.played)
    returns = {}
    for task in player.tasks:
        episodes = _EPISODES.value or evaluation.num_episodes(task)
        with progress_bar.Progress(task, episodes) as progress:
            played = evaluation.play(player, task, episodes, progress.step)
        file.append(task, played)
        returns[task] = np.array([episode.episode_return for episode in played])
        print(summary.of_task(agent, task, returns[task]), flush=True)
    for line in summary.of_suite(agent, returns):
        print(line)
    print(f"Every episode, of update {player.played.learner_steps:,}: {file.path}")


def film_all(player: Player) -> None:
    """Films an episode of each task."""
    name = files.name(player.played)
    for task in player.tasks:
        of_task = re.sub(r"\W+", "_", task)
        path = files.vacant(player.run.folder.videos, f"{name}-{of_task}", ".mp4")
        title = (task, f"{player.agent.name}, update {player.played.learner_steps:,}")
        speed, frames = film.shoot(player, task)
        with progress_bar.Progress(f"film of {task}", 1) as progress:
            videos.write(path, _drawn(frames, captions.Captions(*title), progress), speed)
        print(f"Film: {path}", flush=True)


def _drawn(
    frames: Iterator[film.Frame],
    caption: captions.Captions,
    progress: progress_bar.Progress,
) -> Iterator[np.ndarray]:
    for frame in frames:
        yield caption.draw(frame)
        progress.step(1, 0)


def main(_: Sequence[str]) -> None:
    try:
        player = player_of_flags()
    except (SettingsError, checkpoints.CheckpointError) as error:
        command_line.fail(str(error))
    try:
        play_all(player)
        if _VIDEO.value:
            film_all(player)
    except KeyboardInterrupt:  # what was printed has been recorded
        sys.exit(130)
    sys.exit(0)


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
