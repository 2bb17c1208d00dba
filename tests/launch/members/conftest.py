"""Loops of populations whose turns no process plays."""

import io
import pathlib
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from launch.members import loop
from launch.members.loop import Loop
from launch.members.view import View
from population.folder import PopulationFolder
from tests.launch.members.playing import LIMIT, Make, World
from tests.population.populations import settings_of


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> PopulationFolder:
    """Of a population that has not begun."""
    return PopulationFolder(tmp_path)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Where all turns are stubs; signals are handled as before afterwards."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    found = World()
    monkeypatch.setattr(loop, "Turn", found.turn)
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.0)
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def told() -> io.StringIO:
    """The terminal's output."""
    return io.StringIO()


@pytest.fixture
def make(folder: PopulationFolder, told: io.StringIO) -> Make:
    """Makes a loop of a population with these settings."""

    def make(mine: range | None = None, *, limit: int | None = LIMIT, **given: Any) -> Loop:
        values = {} if limit is None else dict(max_actor_steps=limit)
        own = dict(turn_steps=100, ready_episodes=10**6, flags=values)
        population = settings_of(**(own | given))
        view = View("a test", Console(file=told, width=200))
        return Loop(population, folder, mine or range(population.members), view)

    return make
