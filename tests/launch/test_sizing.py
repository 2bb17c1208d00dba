"""The number of actors that suits a machine, from what was measured of it."""

import json
import os
import pathlib
import signal
from typing import Any

import pytest

from environments.copies.dead_simulators import CannotPlayError
from launch import sizing
from launch.graph import actor_node
from launch.sizing import Bounds, Rung
from run_folder.settings import Crew, Settings, SettingsError
from tests.launch.runs import forked
from tests.run_folder import saved_runs

ALONE = {(1, 1): 100, (1, 4): 300, (1, 16): 900, (1, 64): 1_500}
FLAT = {(1, 1): 100, (1, 4): 104}
PLENTY = 10_000.0


@pytest.mark.parametrize(
    ("rates", "given", "measured", "found"),
    [
        # One process: the ladder ends at its end, or where the rate no longer grows by a tenth.
        (ALONE, {}, 4, (64, 64)),
        (ALONE | {(1, 64): 980}, {}, 4, (64, 64)),  # 16 have less than 95%
        (ALONE | {(1, 64): 940}, {}, 4, (16, 16)),
        (ALONE | {(1, 64): 900}, {}, 4, (16, 16)),
        (ALONE | {(1, 16): 310}, {}, 3, (8, 8)),
        (FLAT, {}, 2, (8, 8)),
        # Memory, of which an environment takes 1 and a process 10 beside.
        (ALONE, dict(memory=74), 4, (64, 64)),
        (ALONE, dict(memory=73), 3, (16, 16)),
        (FLAT, dict(memory=7, base=0), 2, (7, 7)),
        ({(1, 1): 100}, dict(memory=3, base=0), 1, (3, 3)),
        ({(1, 1): 100}, dict(memory=9), 1, (1, 1)),
        # Several processes: fewer than cores, at most 256 environments.
        (ALONE, dict(cores=2), 4, (64, 64)),
        (ALONE | {(2, 64): 2_900}, dict(cores=4), 5, (128, 64)),
        (ALONE | {(2, 64): 1_570}, dict(cores=4), 5, (64, 64)),
        (ALONE | {(2, 64): 1_600}, dict(cores=16), 5, (128, 64)),
        (ALONE | {(2, 64): 2_900, (4, 64): 5_000, (8, 32): 7_000}, dict(cores=9), 7, (256, 32)),
        (ALONE | {(2, 64): 2_900, (4, 64): 5_000, (8, 32): 4_990}, dict(cores=17), 7, (256, 64)),
        (FLAT | {(2, 1): 200, (4, 1): 400}, dict(cores=5), 4, (8, 2)),
        (ALONE | {(2, 64): 2_900}, dict(cores=9, memory=148), 5, (128, 64)),
        (ALONE, dict(cores=9, memory=147), 4, (64, 64)),
        # With actors_per_node given.
        ({(1, 3): 300}, dict(per_node=3), 1, (9, 3)),
        ({(1, 3): 300}, dict(per_node=3, memory=26), 1, (6, 3)),
        ({(1, 3): 300, (2, 3): 580, (4, 3): 1_100}, dict(per_node=3, cores=8), 3, (12, 3)),
        ({(1, 100): 300, (2, 100): 580}, dict(per_node=100, cores=64), 2, (200, 100)),
        ({(1, 200): 300}, dict(per_node=200, cores=64), 1, (200, 200)),
        # Several tasks have equally many environments.
        (ALONE, dict(num_tasks=57), 4, (57, 57)),
        (FLAT, dict(num_tasks=57), 2, (57, 57)),
        (ALONE | {(2, 64): 2_900}, dict(num_tasks=3, cores=4), 5, (126, 63)),
        ({(1, 8): 300}, dict(num_tasks=57, per_node=8), 1, (64, 8)),
    ],
)
def test_the_fewest_that_are_about_as_good_as_the_best_are_chosen(
    rates: dict[tuple[int, int], float],
    given: dict[str, Any],
    measured: int,
    found: tuple[int, int],
) -> None:
    given = dict(cores=1, memory=PLENTY, base=10) | given
    base = given.pop("base")
    bounds = Bounds(**given)

    def measure(nodes: int, each: int) -> Rung:
        return Rung(nodes, each, rates[nodes, each], memory=base + each)

    rungs = sizing.climb(measure, bounds)
    assert [rung[:2] for rung in rungs] == list(rates)[:measured]
    assert sizing.choose(rungs, bounds) == found


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (
            {(1, 1): 320, (1, 4): 900.4, (1, 16): 1_690},
            "1,690 steps/s with 16 environments in a process, 900 with 4, 320 with 1",
        ),
        ({(1, 3): 0.4}, "0 steps/s with 3 environments in a process"),
        (
            {(1, 1): 320, (1, 4): 900, (2, 4): 1_700},
            "1,700 steps/s with 2 x 4 environments, 900 with 1 x 4, 320 with 1 x 1",
        ),
    ],
)
def test_the_line_says_what_was_measured(rates: dict[tuple[int, int], float], said: str) -> None:
    rungs = [Rung(*place, rate, memory=0) for place, rate in rates.items()]
    assert sizing.sentence(rungs) == said


class _Loop:
    """In place of a crew's environments and policy."""

    def __init__(self, actors: tuple[int, ...]) -> None:
        self._actors = actors

    def step(self) -> tuple[int, list[Any]]:
        return len(self._actors), []


def _played(run: Settings, crew: Crew) -> tuple[float, float]:
    return 10.0 + crew.actors[0], 100.0 - crew.actors[0]


def test_the_rates_of_processes_that_play_at_once_are_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sizing, "_play", _played)
    assert sizing._measure(saved_runs.resolve(), 2, 3) == Rung(2, 3, rate=10 + 13, memory=100)


def test_processes_begin_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor_node, "make_loop", lambda run, crew, *_: _Loop(crew.actors))
    monkeypatch.setattr(sizing, "_SECONDS", 0.01)
    found = sizing._measure(saved_runs.resolve(), 2, 3)
    assert (found.rate > 0, found.memory > 0) == (True, True)


def test_a_crew_plays_all_tasks() -> None:
    crew = sizing._crew(saved_runs.resolve("popart", env="catch,memory:recall"), range(3, 6))
    assert (crew.actors, crew.tasks) == ((3, 4, 5), (0, 1, 1))


def test_a_process_that_ends_while_others_wait_for_it_becomes_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def make_loop(run: Settings, crew: Crew, *_: Any) -> _Loop:
        if crew.actors[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return _Loop(crew.actors)

    monkeypatch.setattr(actor_node, "make_loop", make_loop)
    with pytest.raises(SettingsError, match="'catch' ended its process when it was tried"):
        sizing._measure(saved_runs.resolve(), 2, 1)


@pytest.mark.parametrize("nodes", [1, 2])  # another waits for it
def test_what_cannot_be_played_is_said(monkeypatch: pytest.MonkeyPatch, nodes: int) -> None:
    def make_loop(run: Settings, crew: Crew, *_: Any) -> _Loop:
        if crew.actors[-1] == nodes - 1:
            raise CannotPlayError("Its ROM is gone.")
        return _Loop(crew.actors)

    monkeypatch.setattr(actor_node, "make_loop", make_loop)
    said = "--env=catch cannot be played: Its ROM is gone."
    with pytest.raises(SettingsError, match=said):
        sizing._measure(saved_runs.resolve(), nodes, 1)


@pytest.mark.launchpad
def test_a_run_begins_with_what_was_found(tmp_path: pathlib.Path) -> None:
    run_dir = tmp_path / "run"
    outcome = forked().run(
        "launch.train",
        *("--agent=impala", "--env=catch", f"--run_dir={run_dir}", "--num_actors=auto"),
        *("--actors_per_node=4", "--evaluation_episodes=0", "--max_actor_steps=400"),
    )
    assert (outcome.code, outcome.err) == (0, "")
    recorded = json.loads((run_dir / "config.json").read_text())
    num_actors = recorded["num_actors"]
    assert (num_actors % 4, num_actors >= 8, recorded["actors_per_node"]) == (0, True, 4)
    assert f"\nnum_actors={num_actors}, actors_per_node=4: " in outcome.out
    assert "400 actor steps were reached" in outcome.out
