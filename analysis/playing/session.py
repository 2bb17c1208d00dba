"""Plays and films what a run has learned; prints and records what comes of it."""

import re
from collections.abc import Iterator

import numpy as np

from analysis.playing import captions, evaluation, files, film, progress_bar, summary, videos
from analysis.playing.evaluation import Player
from environments import screens
from run_folder import log_writer
from run_folder.settings import SettingsError


def check_film(player: Player) -> None:
    """Raises SettingsError where a task cannot be filmed, before hours of play."""
    try:
        for task in player.tasks:
            screens.check(task)
    except ValueError as error:
        raise SettingsError(f"--video: {error}") from None


def play_all(player: Player, episodes: int | None) -> None:
    """Plays task after task.

    Args:
      player: who plays.
      episodes: of each task; None for as many as the papers play.
    """
    agent = player.agent.name
    file = files.File(player.run.path, player.played)
    board = log_writer.make_board(player.run.path, _label(player))
    returns = {}
    for task in player.tasks:
        count = episodes or evaluation.num_episodes(task)
        with progress_bar.Progress(task, count) as progress:
            played = evaluation.play(player, task, count, progress.step)
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
