"""Tries whether members' runs would be accepted, before a population's settings are written.

Importing this takes seconds: TensorFlow and Launchpad.
"""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from launch import starting
from launch.local import fork_server
from population import decisions
from population.folder import PopulationFolder, name_of
from population.settings import Population
from run_folder import resuming, run_lock, settings
from run_folder.settings import Settings, SettingsError


def check(population: Population, folder: PopulationFolder, members: Sequence[int]) -> None:
    """Asks of every member what `launch.train` asks of a run; nothing is written.

    Raises:
      SettingsError: of a member it would not begin, or go on.
    """
    with fork_server.ForkServer() as server:
        server.call(check_here, dataclasses.asdict(population), folder.path, tuple(members))


def check_here(said: Mapping[str, Any], path: pathlib.Path, members: Sequence[int]) -> None:
    """As `check`, of the population of these fields; it runs TensorFlow's ops."""
    population, folder = Population(**said), PopulationFolder(path)
    runs = {member: _run_of(population, folder, member) for member in members}
    saved = [
        member
        for member, run in runs.items()  # one may be running on without its population
        if run.folder.checkpoints.exists() and not run_lock.is_held(run.path)
    ]
    member = saved[0] if saved else members[0]  # one stands for all
    try:
        updates = starting.make_updates(runs[member])
        if saved:
            resuming.manifests(runs[member], updates, step=None, with_replay=False)
    except SettingsError as error:
        raise _of(member, error) from None


def _run_of(population: Population, folder: PopulationFolder, member: int) -> Settings:
    """The settings of a member's next turn."""
    made = decisions.of_member(folder, member)
    drawn = made[-1].new if made else population.draw(member)
    run = folder.member(member)
    try:
        if run.config.exists():
            overrides = population.overrides_of(drawn)
            found = resuming.changed(settings.load(run.path), population.flags, overrides)
        else:
            found = population.run_of(folder, member, drawn)
        starting.check_shares(found)
    except SettingsError as error:
        raise _of(member, error) from None
    return found


def _of(member: int, error: Exception) -> SettingsError:
    return SettingsError(f"Member {name_of(member)}: {error}")
