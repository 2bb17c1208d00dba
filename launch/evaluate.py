"""Plays what a run has learned: python -m launch.evaluate --run_dir=runs/pong --episodes=30"""

import os

# Before pygame is imported, by whatever follows.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws, but opens no window

import re
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from absl import flags

from analysis.playing import captions, evaluation, files, film, progress_bar, summary, videos
from analysis.playing.evaluation import Player
from environments import screens
from launch import command_line, playing_flags
from run_folder import checkpoints, log_writer
from run_folder.settings import SettingsError

_EPISODES = flags.DEFINE_integer(
    "episodes",
    None,
    "Of each task; by default what the papers play: 200 on Atari, 500 on DMLab; 100 elsewhere.",
    lower_bound=1,
    upper_bound=1_000_000,
)
_VIDEO = flags.DEFINE_boolean("video", False, "Film an episode of each task, into videos/.")
_SECTIONS = {
    "Who plays": playing_flags.NAMES,
    "What": ("episodes", "video", "seed"),
}


def _check_film(player: Player) -> None:
    """Raises SettingsError where a task cannot be filmed, before hours of play."""
    try:
        for task in player.tasks:
            screens.check(task)
    except ValueError as error:
        raise SettingsError(f"--video: {error}") from None


def play_all(player: Player) -> None:
    """Plays task after task; prints and records what comes of it."""
    agent = player.agent.name
    file = files.File(player.run.path, player.played)
    board = log_writer.make_board(player.run.path, _label(player))
    returns = {}
    for task in player.tasks:
        episodes = _EPISODES.value or evaluation.num_episodes(task)
        with progress_bar.Progress(task, episodes) as progress:
            played = evaluation.play(player, task, episodes, progress.step)
        file.append(task, played)
        returns[task] = np.array([episode.episode_return for episode in played])
        mean = float(returns[task].mean())
        board.write({"actor_steps": player.played.actor_steps, f"return/{task}": mean})
        print(summary.of_task(agent, task, returns[task]), flush=True)
    board.close()
    for line in summary.of_suite(agent, returns):
        print(line)
    print(f"Every episode, of update {player.played.learner_steps:,}: {file.path}")


def _label(player: Player) -> str:
    """Of TensorBoard's group: who plays, and how where it is not as the agent is evaluated."""
    played = player.played
    who = [played.agent] if len(player.run.agents) > 1 else []
    return "-".join(["evaluate", *who, *files.variation(played)])


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
        player = playing_flags.player()
        if _VIDEO.value:
            _check_film(player)
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
