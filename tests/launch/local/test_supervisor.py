"""How a launch ends: its exit code, its words, what it leaves behind."""

import errno
import json
import math
import os
import pathlib
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from launch.graph import coordinator
from launch.local import supervisor
from launch.local.fork_server import Ended
from run_folder import whole_files
from run_folder.settings import Settings
from tests.run_folder import saved_runs

LIMIT = "100 actor steps were reached"


class Server:
    """Stands for the fork server.

    Attributes:
      meanwhile: called once the program has been started.
      failing: nodes whose end it tells of.
      begun: when the nodes were asked to end.
      killed: nodes that were, and after how many seconds.
    """

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.failing: list[Ended] = []
        self.begun = math.nan
        self.killed: dict[str, float] = {}

    def launch(self, *_: object, output: pathlib.Path) -> list[str]:
        self.meanwhile()
        return ["actor/0", "learner/0"]

    def ended(self, seconds: float) -> list[Ended]:
        time.sleep(seconds)
        failing, self.failing = self.failing, []
        return failing

    def signal(self, number: int, labels: Iterable[str]) -> None:
        if number == signal.SIGTERM:
            self.begun = time.time()
        else:
            self.killed = dict.fromkeys(labels, time.time() - self.begun)


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Settings:
    """A run that has saved something."""
    saved = saved_runs.save(tmp_path / "run", "impala")
    supervisor.begin(saved)
    (saved.path / "nodes" / "actor").mkdir()
    (saved.path / "nodes" / "actor" / "0").write_text("")
    return saved


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(supervisor, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "NOTICE_SECONDS", 0.2)
    monkeypatch.setattr(supervisor, "CRASH_SECONDS", 0.6)
    monkeypatch.setattr(coordinator, "SAVE_SECONDS", 0.1)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    yield Server()
    for number, handler in before.items():
        signal.signal(number, handler)


def _report(run: Settings, reason: str = "", state: str = "finished") -> Callable[[], None]:
    """What the coordinator writes."""
    counts = dict.fromkeys(
        ("actor_steps", "learner_steps", "episodes", "walltime", "environments_lost"), 0
    )
    text = json.dumps(
        dict(
            state=state,
            reason=reason,
            counts=counts,
            limits={},
            rates=dict(actor_steps=0, learner_steps=0),
            replay_size=0,
            replays_per_observation=0,
            learners={},
            returns={"catch": 0.0},
            aggregates={},
            evaluations={},
        )
    )

    def write() -> None:
        whole_files.write(run.folder.progress, text)

    return write


def _remove_manifest(run: Settings) -> None:
    (run.path / "checkpoints" / "manifest.json").unlink()


def test_a_run_that_reached_its_limit_and_saved_is_a_success(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server.meanwhile = _report(run, LIMIT)
    assert supervisor.run(run, {}, server) == 0
    assert f"The run has ended: {LIMIT}." in capsys.readouterr().out


def test_a_run_that_reached_its_limit_and_saved_nothing_is_none(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _remove_manifest(run)
    server.meanwhile = _report(run, LIMIT)
    assert supervisor.run(run, {}, server) == 1
    assert "Nothing was saved yet." in capsys.readouterr().out


def test_a_run_that_is_stopped_before_anything_was_saved_was_asked_to(
    run: Settings, server: Any
) -> None:
    _remove_manifest(run)
    server.meanwhile = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert supervisor.run(run, {}, server) == 0


def test_at_its_limit_a_run_waits_for_the_last_save(run: Settings, server: Any) -> None:
    """For ten times as long as after a signal."""
    _report(run, LIMIT, state="running")()
    server.meanwhile = lambda: threading.Timer(1.0, _report(run, LIMIT)).start()
    begun = coordinator.time.time()
    assert supervisor.run(run, {}, server) == 0
    assert coordinator.time.time() - begun >= 1.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_the_run_to_end(number: int, run: Settings, server: Any) -> None:
    _report(run, state="running")()
    server.meanwhile = lambda: os.kill(os.getpid(), number)
    assert supervisor.run(run, {}, server) == 0
    assert run.folder.stop.exists()
    assert server.killed == pytest.approx({"actor/0": 0.2, "learner/0": 0.2}, abs=0.15)


def test_a_closed_terminal_is_none_of_a_run_that_ignores_it(run: Settings, server: Any) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

    def hang_up() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        _report(run, LIMIT)()

    server.meanwhile = hang_up
    assert supervisor.run(run, {}, server) == 0
    assert not run.folder.stop.exists()


def test_a_full_disk_is_no_success_and_is_named(
    run: Settings,
    server: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a full disk the crash file can be made, but nothing written into it."""
    monkeypatch.setattr(supervisor.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    (run.path / "nodes" / "crash.txt").touch()
    server.failing = [Ended("actor/0", 1)]
    assert supervisor.run(run, {}, server) == 1
    out, err = capsys.readouterr()
    assert "The process of node actor/0 ended with code 1." in err
    assert f"The disk of {run.path} is full (0 bytes are free): free some, then resume." in err
    assert "it was asked to stop" not in out
    assert server.killed == pytest.approx({"learner/0": 0.6}, abs=0.15)


def test_a_stop_on_a_full_disk_ends_the_run_all_the_same(
    run: Settings, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touch(path: pathlib.Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _report(run, state="running")()
    monkeypatch.setattr(pathlib.Path, "touch", touch)
    server.meanwhile = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert supervisor.run(run, {}, server) == 0


def test_what_was_saved_and_is_damaged_is_told_at_the_end(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.path / "checkpoints" / "manifest.json").write_text("{")
    server.meanwhile = _report(run, LIMIT)
    assert supervisor.run(run, {}, server) == 0
    assert "manifest.json is corrupt" in capsys.readouterr().out
