"""The harness of studies: files of runs, trainings of so many minutes, intervals, pages."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
from concurrent import futures
from typing import NamedTuple

import numpy as np
import pytest

from agents.environment_loop import Episode
from analysis.playing.files import File, Played
from benchmarks import study
from benchmarks.study import interval
from run_folder import checkpoints
from run_folder.layout import RunFolder
from tests.patience import PATIENCE, wait_for
from tests.run_folder.manifests import MANIFEST


class Run(NamedTuple):
    task: str
    replay: float
    seed: int


class Result(NamedTuple):
    steps: int
    final: float
    curve: tuple[float, ...]


def test_runs_that_a_file_lacks_are_made_and_read_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "data" / "runs.csv"
    assert study.read(path, Run, Result) == {}
    known = {
        Run("memory:recall", 0.5, 3): Result(1_000, 0.25, (np.nan, 0.125, -1.0)),
        Run("b, c", 0.0, 0): Result(2_000, -1.0, ()),
    }
    made: list[Run] = []

    def train(run: Run) -> Result:
        made.append(run)
        return known[run]

    for _ in range(2):  # nothing is made again
        found = study.complete(path, list(known), train, Result)
        assert str(found) == str(known)  # a window without an episode equals no other
    assert made == list(known)
    assert len(path.read_text().splitlines()) == 3


_WAITS = """
import pathlib, signal, sys, time

def end(*_):
    pathlib.Path(sys.argv[1]).write_text("in order")
    if int(sys.argv[2]) >= 0:
        sys.exit(int(sys.argv[2]))

signal.signal(signal.SIGTERM, end)
pathlib.Path(sys.argv[1]).write_text("begun")
time.sleep(600)
"""


@pytest.mark.parametrize("code", [0, 5, -1])
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
            wait_for(lambda: written.read_text() == "in order")  # it has heard
            return super().wait(timeout)

    (tmp_path / "waits.py").write_text(_WAITS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", Impatient)
    with contextlib.ExitStack() as stack:
        if code < 0:  # it does not end at all
            monkeypatch.setattr(study, "END_SECONDS", 1.0)
            stack.enter_context(pytest.raises(subprocess.TimeoutExpired))
        elif code:
            told = f"returned non-zero exit status {code}"
            stack.enter_context(pytest.raises(subprocess.CalledProcessError, match=told))
        study.run(["waits", str(written), str(code)], minutes=10.0)
    assert written.read_text() == "in order"


def test_it_ends_in_order_with_a_study_that_is_killed(tmp_path: pathlib.Path) -> None:
    written = tmp_path / "written"
    (tmp_path / "waits.py").write_text(_WAITS)
    studying = f"from benchmarks import study; study.run(['waits', {str(written)!r}, '0'], None)"
    path = f"{tmp_path}{os.pathsep}{os.getcwd()}"
    with subprocess.Popen(
        [sys.executable, "-c", studying], env=os.environ | {"PYTHONPATH": path}
    ) as it:
        wait_for(lambda: written.exists() and written.read_text() == "begun")
        it.kill()
    wait_for(lambda: written.read_text() == "in order")


@pytest.mark.parametrize("minutes", ["0", "1", "2.5", "0.5", "-1", "nan", "inf", "two"])
def test_minutes_are_none_or_enough_for_a_start(
    minutes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = study.parser_of_trainings("", "runs", None)
    is_right = minutes in ("0", "1", "2.5")
    with contextlib.nullcontext() if is_right else pytest.raises(SystemExit):
        assert parser.parse_args(["runs", f"--minutes={minutes}"]).minutes == float(minutes)
    assert ("--minutes" in capsys.readouterr().err) != is_right


def test_it_may_have_all_its_time_and_something_before_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    study.run(["calendar", "2026", "11"], None, ("nice", "-n", "3"))
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

    def run(arguments: list[str], minutes: float, before: tuple[str, ...]) -> bool:
        assert (arguments[:2], before) == (["launch.train", f"--run_dir={tmp_path}"], ("nice",))
        asked.append((arguments[2:], minutes))
        return True

    monkeypatch.setattr(study, "run", run)
    study.train(tmp_path, ["--env=catch"], 10.0, ("nice",))
    assert asked.pop() == (["--env=catch"], 10.0)
    folder = RunFolder(tmp_path)
    folder.config.write_text("{}")
    if seconds is not None:
        manifest = dataclasses.replace(MANIFEST, walltime=seconds)
        folder.checkpoints.mkdir()
        checkpoints.write(folder.checkpoints, checkpoints.MANIFEST, manifest)
    study.train(tmp_path, ["--env=catch"], 10.0, ("nice",))
    assert asked == ([told] if told else [])


def test_as_many_jobs_at_a_time_as_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    busy, lock, both = set[int](), threading.Lock(), threading.Event()

    def work(job: int, core: int) -> int:
        with lock:
            assert core not in busy
            busy.add(core)
            if busy == {3, 5}:
                both.set()
        assert both.wait(PATIENCE)  # the other core has work at the same time
        with lock:
            busy.remove(core)
        return -job

    assert sorted(study.on_cores(range(7), work)) == [(job, -job) for job in range(7)]
    with pytest.raises(ZeroDivisionError):
        list(study.on_cores([1, 0], lambda job, _: print(1 / job)))


def test_no_job_begins_any_more_once_one_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up, begun = threading.Event(), []

    class Pool(futures.ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            given_up.set()
            super().shutdown(wait=wait)

    def work(job: int, _: int) -> None:
        begun.append(job)
        if job == 0:
            raise KeyboardInterrupt
        assert given_up.wait(PATIENCE)

    monkeypatch.setattr(futures, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    with pytest.raises(KeyboardInterrupt):
        list(study.on_cores(range(9), work))
    assert len(begun) <= 3


def test_a_training_that_somebody_ended_is_not_taken_for_a_whole_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "run", lambda *_: False)
    with pytest.raises(RuntimeError, match="was asked to end before its 10 minutes were over"):
        study.train(tmp_path, ["--env=catch"], 10.0)
    monkeypatch.setattr(study, "has_ended", lambda _: True)  # at its own limit
    study.train(tmp_path, ["--env=catch"], 10.0)


@pytest.mark.parametrize(
    ("said", "steps", "expected"),
    [("running", 1_008, False), ("finished", 1_008, True), ("finished", 900, False)],
)
def test_a_run_has_ended_at_its_own_limit(
    said: str, steps: int, expected: bool, tmp_path: pathlib.Path
) -> None:
    assert not study.has_ended(tmp_path)
    limits = dict(actor_steps=1_000, learner_steps=None)
    state = dict(state=said, limits=limits, counts=dict(actor_steps=steps, learner_steps=20))
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "progress.json").write_text(json.dumps(state))
    assert study.has_ended(tmp_path) == expected


def test_the_interval_holds_the_true_mean_19_times_in_20() -> None:
    # Their deviations from 3 are ±2, ±1 and 0: s² = 10 / 4, and t is 2.776 at four degrees.
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found == pytest.approx((3.0, 2.776 * np.sqrt(2.5 / 5)))
    for size in (3, 5):
        samples = np.random.default_rng(0).normal(7.0, 2.0, size=(4_000, size))
        covered = np.mean([abs(x.mean - 7.0) <= x.margin for x in map(interval, samples)])
        assert 0.94 < covered < 0.96  # its standard error is 0.003
    with pytest.raises(ValueError, match="Expected 3 or 5 values, got 4"):
        interval([1.0, 2.0, 3.0, 4.0])


def test_means_are_of_each_minute() -> None:
    walltime, values = np.array([10.0, 20.0, 119.0, 200.0]), np.array([1.0, 3.0, 8.0, 5.0])
    np.testing.assert_array_equal(study.mean_by_minute(walltime, values), [2, 8, np.nan, 5])
    np.testing.assert_array_equal(study.mean_by_minute(walltime, values, 2), [2, 8])
    assert list(study.episodes_by_minute(walltime, walltime, values)) == [
        (0, (15.0, 2.0)),
        (1, (119.0, 8.0)),
        (3, (200.0, 5.0)),
    ]


def test_an_evaluation_is_a_mean_with_its_standard_error(tmp_path: pathlib.Path) -> None:
    episodes = [Episode(0, 2.0, 100), Episode(1, 4.0, 100), Episode(2, 9.0, 100)]
    played = Played("stacx", 7, 4000, 150.0, None, None, 0)
    File(tmp_path, played).append("catch", episodes)
    found = study.newest_evaluation(tmp_path)
    assert found == pytest.approx((4000, 5.0, np.sqrt((9 + 1 + 16) / 2 / 3)))


def test_a_block_is_replaced_and_nothing_else() -> None:
    page = "a\n<!-- table: begin -->\nold\n<!-- table: end -->\nb\n"
    replaced = study.replace_block(page, "table", "new")
    assert replaced == "a\n<!-- table: begin -->\n\nnew\n\n<!-- table: end -->\nb\n"
    assert study.replace_block(replaced, "table", "new") == replaced
    with pytest.raises(ValueError, match="Expected one <!-- images: begin -->"):
        study.replace_block(page, "images", "new")
