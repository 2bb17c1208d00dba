"""Trainings of so many minutes on a core each: how they are run, and what is kept of them."""

import contextlib
import csv
import dataclasses
import os
import pathlib
import subprocess
import threading

import numpy as np
import pytest

from agents.environment_loop import Episode
from analysis.playing.files import File, Played
from r2d2.config import VARIANTS
from r2d2.policy import epsilon_ladder
from run_folder import checkpoints
from run_folder.layout import RunFolder
from studies import control_curves, curves, memory, timed
from studies.curves import Episodes
from tests.patience import PATIENCE, wait_for
from tests.run_folder.manifests import MANIFEST

RUNS = pathlib.Path("runs")

_WAITS = """
import pathlib, signal, sys, time

def end(*_):
    pathlib.Path(sys.argv[1]).write_text("in order")
    sys.exit(int(sys.argv[2]))

signal.signal(signal.SIGTERM, end)
pathlib.Path(sys.argv[1]).write_text("begun")
time.sleep(600)
"""


@pytest.mark.parametrize("code", [0, 5])
def test_what_takes_too_long_ends_in_order_and_what_fails_is_told(
    code: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "written"

    class Impatient(subprocess.Popen[bytes]):
        """Whose minutes are over as soon as it has begun."""

        def wait(self, timeout: float | None = None) -> int:
            if timeout == 600.0:
                wait_for(lambda: written.exists() and written.read_text() == "begun")
                raise subprocess.TimeoutExpired("waits", timeout)
            return super().wait(timeout)

    (tmp_path / "waits.py").write_text(_WAITS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", Impatient)
    with contextlib.ExitStack() as stack:
        if code:
            told = f"returned non-zero exit status {code}"
            stack.enter_context(pytest.raises(subprocess.CalledProcessError, match=told))
        timed.run(["waits", str(written), str(code)], minutes=10.0)
    assert written.read_text() == "in order"


def test_it_may_have_all_its_time_and_something_before_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    timed.run(["calendar", "2026", "11"], None, ("nice", "-n", "3"))
    out = capfd.readouterr().out
    assert "python -m calendar 2026 11" in out
    assert "November 2026" in out


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, (["--resume"], 10.0)),  # killed before anything was saved
        (540.0, (["--resume"], 1.0)),
        (541.0, None),
    ],
)
def test_a_training_that_was_cut_short_goes_on_for_what_is_left(
    seconds: float | None,
    told: tuple[list[str], float] | None,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[list[str], float]] = []

    def run(arguments: list[str], minutes: float, before: tuple[str, ...]) -> None:
        assert (arguments[:2], before) == (["launch.train", f"--run_dir={tmp_path}"], ("nice",))
        asked.append((arguments[2:], minutes))

    monkeypatch.setattr(timed, "run", run)
    timed.train(tmp_path, ["--env=catch"], 10.0, ("nice",))
    assert asked.pop() == (["--env=catch"], 10.0)
    folder = RunFolder(tmp_path)
    folder.config.write_text("{}")
    if seconds is not None:
        manifest = dataclasses.replace(MANIFEST, walltime=seconds)
        folder.checkpoints.mkdir()
        checkpoints.write(folder.checkpoints, checkpoints.MANIFEST, manifest)
    timed.train(tmp_path, ["--env=catch"], 10.0, ("nice",))
    assert asked == ([told] if told else [])


def test_as_many_jobs_at_a_time_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    busy, lock, both = set[int](), threading.Lock(), threading.Event()

    def work(job: int, core: int) -> None:
        with lock:
            assert core not in busy
            busy.add(core)
            if busy == {3, 5}:
                both.set()
        assert both.wait(PATIENCE)  # the other core has work at the same time
        with lock:
            busy.remove(core)

    assert sorted(curves.on_cores(range(7), work)) == list(range(7))
    with pytest.raises(ZeroDivisionError):
        list(curves.on_cores([1, 0], lambda job, _: print(1 / job)))


def test_each_training_has_a_folder_of_its_own() -> None:
    for study in (control_curves, memory):
        folders = {study.folder_of(RUNS, run) for run in study.RUNS}
        assert len(folders) == len(study.RUNS)


def test_returns_are_of_actors_that_hardly_explore() -> None:
    own = VARIANTS[memory.R2D2]
    actors = np.arange(memory.NUM_ACTORS)
    epsilons = epsilon_ladder(actors, len(actors), own.epsilon_base, own.epsilon_alpha)
    assert [i for i, epsilon in enumerate(epsilons) if epsilon < 0.01] == list(memory.GREEDY)


COLUMNS = ("task", "walltime", "actor_steps", "episode_return", "actor")


def test_episodes_are_kept_by_minute(tmp_path: pathlib.Path) -> None:
    log, peers = RunFolder(tmp_path).log("episodes"), tmp_path / "peers"
    rows = [(10, 100, 3, 15), (20, 200, -9, 0), (50, 300, 5, 9), (119, 900, 8, 12)]
    log.parent.mkdir()
    for path, lines in (
        (log, [COLUMNS, *(("t", *row) for row in rows)]),
        (peers, [COLUMNS[1:], *rows]),
    ):
        with path.open("w") as file:
            csv.writer(file).writerows(lines)
    run, control = memory.RUNS[0], control_curves.RUNS[0]
    assert run.agent == memory.R2D2
    assert list(memory.minutes_of(tmp_path, run)) == [
        (memory.Minute(*run, 0), Episodes(200.0, 4.0)),  # of actors 9 to 15
        (memory.Minute(*run, 1), Episodes(900.0, 8.0)),
    ]
    peer = run._replace(agent=memory.PPO)
    for found in (
        memory.minutes_of(peers, peer),
        control_curves.minutes_of(tmp_path, control),
    ):
        (first, of_all), (second, of_last) = found
        assert (first.minute, second.minute) == (0, 1)
        assert of_all == pytest.approx((200.0, -1 / 3))
        assert of_last == (900.0, 8.0)


def test_a_result_is_a_mean_with_its_standard_error(tmp_path: pathlib.Path) -> None:
    episodes = [Episode(0, 2.0, 100), Episode(1, 4.0, 100), Episode(2, 9.0, 100)]
    played = Played("stacx", 7, 4000, 150.0, None, None, 0)
    File(tmp_path, played).append(control_curves.FEATURES, episodes)
    found = control_curves.result(tmp_path)
    assert found == pytest.approx((4000, 5.0, np.sqrt((9 + 1 + 16) / 2 / 3)))


def test_random_actions_are_played_to_their_end_and_again_alike() -> None:
    returns = control_curves.random_returns("gym:CartPole-v1", 4)
    assert ((returns >= 8) & (returns < 200)).all()
    assert returns.max() >= 2 * returns.min()  # one that is over is not given what others are
    np.testing.assert_array_equal(returns, control_curves.random_returns("gym:CartPole-v1", 4))
