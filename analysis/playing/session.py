"""Plays and films what a run has learned; tells and records the results."""

import contextlib
import math
import pathlib
import re
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import tensorflow as tf
from rich import progress
from rich.console import Console

from analysis.playing import evaluation, files, film, intervals
from analysis.playing.evaluation import Player
from analysis.playing.intervals import Interval
from environments import scores, screens
from run_folder import disk, log_writer
from run_folder.settings import SettingsError

LINE_SECONDS = 10.0  # between lines of progress, where there is no terminal

Step = Callable[[int, int], None]  # is told of actor steps, and of episodes that ended
Say = Callable[[str], None]  # is told the results, a line at a time


def check_film(player: Player) -> None:
    """Raises SettingsError where a task cannot be filmed, before hours of play."""
    try:
        for task in player.tasks:
            screens.check(task)
    except ValueError as error:
        raise SettingsError(f"--video: {error}") from None


def play_all(player: Player, episodes: int | None, say: Say) -> dict[str, np.ndarray]:
    """Plays so many episodes of each task, by default as many as the papers play.

    Returns:
      Each task's returns, `[episodes]`. They are recorded in the run's evaluations/.

    Raises:
      SettingsError: the run folder cannot be written.
    """
    agent, played = player.agent.name, player.played
    file = files.File(player.run.path, played)
    who = [played.agent] if len(player.run.agents) > 1 else []
    label = "-".join(["evaluate", *who, *files.variation(played)])  # of TensorBoard's group
    try:
        board = log_writer.Board(player.run.path, label)
    except tf.errors.OpError as error:  # it makes its file at once: nothing is played in vain
        raise SettingsError(f"{player.run.path} cannot be written: {disk.said(error)}.") from None
    returns = {}
    for task in player.tasks:
        count = episodes or evaluation.num_episodes(task)
        with progressing(task, count) as step:
            ended = evaluation.play(player, task, count, step)
        file.append(task, ended)
        returns[task] = np.array([episode.episode_return for episode in ended])
        mean = float(returns[task].mean())
        board.write({"actor_steps": played.actor_steps, f"return/{task}": mean})
        say(of_task(agent, task, returns[task]))
    board.close()
    for line in of_suite(agent, returns):
        say(line)
    say(f"Every episode, of update {played.learner_steps:,}: {file.path}")
    return returns


def film_all(player: Player, say: Say) -> list[pathlib.Path]:
    """Films an episode of each task into the run's videos/; returns the films' paths."""
    name, made = files.name(player.played), []
    for task in player.tasks:
        of_task = re.sub(r"\W+", "_", task)
        path = files.vacant(player.run.folder.videos, f"{name}-{of_task}", ".mp4")
        title = (task, f"{player.agent.name}, update {player.played.learner_steps:,}")
        speed, frames = film.shoot(player, task)
        with progressing(f"film of {task}", 1) as step:
            film.write(path, _drawn(frames, film.Captions(*title), step), speed)
        say(f"Film: {path}")
        made.append(path)
    return made


def _drawn(
    frames: Iterator[film.Frame], captions: film.Captions, step: Step
) -> Iterator[np.ndarray]:
    for frame in frames:
        yield captions.draw(frame)
        step(1, 0)


@contextlib.contextmanager
def progressing(title: str, episodes: int, console: Console | None = None) -> Iterator[Step]:
    """Shows progress: by a bar where a terminal can redraw it, else by a line now and then.

    The console is standard error by default, so that standard output has the results alone.
    """
    console = console or Console(stderr=True)
    redraws = console.is_terminal and not console.is_dumb_terminal
    bar = progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("episodes, {task.fields[steps]:,} steps"),
        progress.TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not redraws,
    )
    task = bar.add_task(title, total=episodes, steps=0)
    counted = np.zeros(2, int)  # steps and episodes
    line_at = time.monotonic() + LINE_SECONDS

    def step(steps: int, ended: int) -> None:
        nonlocal line_at
        counted[:] += (steps, ended)
        if redraws:
            bar.update(task, completed=int(counted[1]), steps=int(counted[0]))
        elif time.monotonic() >= line_at:
            line_at = time.monotonic() + LINE_SECONDS
            so_far = f"{counted[1]} of {episodes} episodes, {counted[0]:,} steps"
            console.print(f"{title}: {so_far}", soft_wrap=True, highlight=False, markup=False)

    with bar:
        yield step


def of_task(agent: str, task: str, returns: np.ndarray) -> str:
    """A line of a task's mean return with its interval; of a game, human-normalised too."""
    interval = intervals.of_mean(returns)
    line = (
        f"{agent} on {task}: mean return {returns.mean():.2f} over {len(returns)} episodes"
        f"{_bounds(interval, '{:.2f}')}, from {returns.min():.1f} to {returns.max():.1f}"
    )
    score = scores.human_normalised(task, float(returns.mean()))
    if score is None:
        return line
    bounds = (scores.human_normalised(task, bound) for bound in interval)
    normalised = Interval(*(math.nan if bound is None else bound for bound in bounds))
    return f"{line}; human-normalised {score:.1%}{_bounds(normalised, '{:.1%}')}"


def of_suite(agent: str, returns: Mapping[str, np.ndarray]) -> Iterator[str]:
    """A line of the aggregates over all tasks that have human scores; none for fewer than two."""
    each = []
    for task, values in returns.items():
        normalised = [scores.human_normalised(task, float(value)) for value in values]
        if None not in normalised:
            each.append(np.array(normalised, float))
    if len(each) < 2:
        return
    found = scores.aggregate([float(values.mean()) for values in each])._asdict()
    bounds = intervals.of_aggregate(each)
    yield f"{agent}, human-normalised over {len(each)} tasks: " + ", ".join(
        f"{name.replace('_', ' ')} {value:.1%}{_bounds(bounds[name], '{:.1%}')}"
        for name, value in found.items()
    )


def _bounds(interval: Interval, form: str) -> str:
    """Brackets around an interval; nothing where there is none."""
    if math.isnan(interval.low):
        return ""
    return f" [{form.format(interval.low)}, {form.format(interval.high)}]"
