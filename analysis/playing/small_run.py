"""What a run has learned as a run folder that is small enough to be kept and given away.

    config.json                      of the run
    launches.jsonl                   what was typed, with which commit and on which machine
    evaluations/*.csv                of these parameters
    checkpoints/best-<agent>.npz     the parameters, in 16 bits each

Commands take it as the run. It has no learner, logs or replay; a run that goes on from a copy of it
begins to learn with these parameters, and is new in all else.
"""

import dataclasses
import itertools
import math
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable

import numpy as np

from analysis.playing import files
from analysis.playing.evaluation import Player
from run_folder import best, disk, task_returns
from run_folder.best import Best
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError


def write(player: Player, folder: pathlib.Path) -> pathlib.Path:
    """Writes a player's parameters, and what is known of them, into a new folder.

    Returns:
      The folder.

    Raises:
      SettingsError: it cannot be written, or the parameters are too large for 16 bits.
    """
    run, played = player.run, player.played
    evaluations = {
        name: rows
        for name, rows in files.read_all(run.path).items()
        if rows and (rows[0].agent, rows[0].learner_steps) == (played.agent, played.learner_steps)
    }
    with np.errstate(over="ignore"):
        parameters = [variable.numpy().astype(np.float16) for variable in player.network.variables]
    if not all(np.isfinite(value).all() for value in parameters):
        raise SettingsError(f"{played.agent}'s parameters are too large to be kept in 16 bits.")
    kept = Best(
        score=_score(played, evaluations.values()),
        learner_step=played.learner_steps,
        actor_steps=played.actor_steps,
        walltime=played.walltime,
        parameters=parameters,
    )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
            unfinished = RunFolder(pathlib.Path(place, folder.name))
            unfinished.evaluations.mkdir(parents=True)
            disk.write(unfinished.config, dataclasses.replace(run, run_dir=folder.name).to_json())
            if run.folder.launches.exists():  # older runs have none
                shutil.copy(run.folder.launches, unfinished.launches)
            for name in evaluations:
                shutil.copy(run.folder.evaluations / f"{name}.csv", unfinished.evaluations)
            best.write(unfinished.checkpoints, played.agent, kept)
            os.rename(unfinished.path, folder)
    except OSError as error:
        raise SettingsError(f"{folder} cannot be written: {disk.said(error)}.") from None
    return folder


def _score(played: files.Played, evaluations: Iterable[list[files.Row]]) -> float:
    """What the parameters returned, played as here; -inf where they never were."""
    usual = [rows for rows in evaluations if files.variation(rows[0]) == files.variation(played)]
    returns = files.returns(list(itertools.chain.from_iterable(usual)))
    if not returns:
        return -math.inf
    return task_returns.overall({task: float(values.mean()) for task, values in returns.items()})
