"""How a launch ends: its exit code, its words, what it leaves behind."""

import dataclasses
import errno
import json
import math
import os
import pathlib
import signal
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from launch.graph import coordinator, process
from launch.local import supervisor
from launch.local.fork_server import Ended
from launch.local.supervisor import (
    LONGEST_DELAY,
    PROGRAM,
    WINDOW_SECONDS,
    Restarts,
)
from recurrent_replay import command
from run_folder import disk
from run_folder.checkpoints import CheckpointError
from run_folder.settings import Settings
from tests.run_folder import saved_runs

LIMIT = "100 actor steps were reached"


class Server:
    """Stands for the fork server.

    Attributes:
      meanwhile: called once the program has been started, for each launch the next.
      failing: nodes whose end it tells of.
      launches: how many there were.
      started: nodes that were started again.
      now: seconds that were waited for it, the supervisor's clock.
      begun: when the nodes were asked to end.
      killed_after: nodes that were killed, and after how many seconds.
    """

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] = lambda: None
        self.failing: list[Ended] = []
        self.launches = 0
        self.started: list[str] = []
        self.now = 0.0
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.begun = math.nan
        self.killed: set[str] = set()  # of whose end it has not told
        self.killed_after: dict[str, float] = {}

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Does something when so many seconds were waited for it."""
        self.later.append((self.now + seconds, do))

    def launch(self, *_: object, output: pathlib.Path, hang_seconds: float) -> list[str]:
        self.launches += 1
        self.meanwhile()
        return ["actor/0", "learner/0"]

    def start(self, label: str) -> None:
        self.started.append(label)

    def ended(self, seconds: float) -> list[Ended]:
        self.now += seconds
        due = [each for each in self.later if each[0] <= self.now]
        for each in due:
            self.later.remove(each)
            each[1]()
        if self.killed:
            killed, self.killed = self.killed, set()
            return [Ended(label, -9) for label in killed]
        failing, self.failing = self.failing, []
        return failing

    def signal(self, number: int, labels: Iterable[str]) -> None:
        if number == signal.SIGTERM:
            self.begun = self.now
        else:
            self.killed = set(labels)
            self.killed_after = dict.fromkeys(labels, self.now - self.begun)


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Settings:
    """A run that has saved something."""
    saved = saved_runs.save(tmp_path / "run", "impala")
    supervisor.begin(saved)
    for group in ("actor", "learner"):
        (saved.path / "nodes" / group).mkdir()
        (saved.path / "nodes" / group / "0").write_text("")
    return saved


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(supervisor, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "NOTICE_SECONDS", 0.2)
    monkeypatch.setattr(supervisor, "CRASH_SECONDS", 0.6)
    monkeypatch.setattr(coordinator, "SAVE_SECONDS", 0.1)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    server = Server()
    clock = types.SimpleNamespace(monotonic=lambda: server.now, strftime=time.strftime)
    monkeypatch.setattr(supervisor, "time", clock)
    yield server
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run's first minute is over."""
    monkeypatch.setattr(supervisor, "FIRST_SECONDS", 0.0)


def _report(
    run: Settings,
    reason: str = "",
    state: str = "finished",
    limits: Mapping[str, int | None] | None = None,
    notices: Sequence[str] = (),
    noticed: int = 0,
    episodes: int = 0,
) -> Callable[[], None]:
    """What the coordinator writes."""
    counts = dict.fromkeys(("learner_steps", "episodes", "walltime", "environments_lost"), 0)
    counts |= {"actor_steps": 2_000, "episodes": episodes}
    text = json.dumps(
        dict(
            state=state,
            reason=reason,
            counts=counts,
            limits=limits or {},
            rates=dict(actor_steps=0, learner_steps=0),
            replay_size=0,
            filling={},
            replays_per_observation=0,
            learners={},
            left_out={},
            acting=[8, 8],
            notices=notices,
            noticed=noticed,
            returns={"catch": 0.0},
            aggregates={},
            evaluations={},
        )
    )

    def write() -> None:
        disk.write(run.folder.progress, text)

    return write


def _remove_manifest(run: Settings) -> None:
    (run.path / "checkpoints" / "manifest.json").unlink()


def test_a_run_that_reached_its_limit_and_saved_is_a_success(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server.meanwhile = _report(run, LIMIT)
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert f"The run has ended: {LIMIT}." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limits", "further"),
    [
        (dict(actor_steps=2_000, learner_steps=None), " --max_actor_steps=4000"),
        (dict(actor_steps=2_001, learner_steps=None), ""),
        (dict(actor_steps=1_500, learner_steps=9), " --max_actor_steps=3000"),
        ({}, ""),
    ],
)
def test_the_line_that_resumes_raises_what_was_reached(
    run: Settings,
    server: Any,
    capsys: pytest.CaptureFixture[str],
    limits: dict[str, int | None],
    further: str,
) -> None:
    server.meanwhile = _report(run, LIMIT, limits=limits)
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    line = f"Resume:   {command('train')} --run_dir={run.path} --resume{further}\n"
    assert line in capsys.readouterr().out


def test_a_run_that_reached_its_limit_and_saved_nothing_is_none(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _remove_manifest(run)
    server.meanwhile = _report(run, LIMIT)
    assert supervisor.run(run, {}, server, lambda: {}) == 1
    assert "Nothing was saved yet." in capsys.readouterr().out


def test_a_run_that_is_stopped_before_anything_was_saved_was_asked_to(
    run: Settings, server: Any
) -> None:
    _remove_manifest(run)
    server.meanwhile = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert supervisor.run(run, {}, server, lambda: {}) == 0


def test_at_its_limit_a_run_waits_for_the_last_save(run: Settings, server: Any) -> None:
    """For ten times as long as after a signal."""
    _report(run, LIMIT, state="running")()
    server.meanwhile = lambda: server.after(1.0, _report(run, LIMIT))
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert server.now >= 1.0


def test_each_notice_is_told_once(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _report(run, state="running", notices=["one", "two"], noticed=2)()
    later = ("two", "three", "four"), 4  # the first is no longer kept

    def meanwhile() -> None:
        server.after(0.3, _report(run, "", "running", {}, *later))
        server.after(0.6, _report(run, LIMIT, "finished", {}, *later))

    server.meanwhile = meanwhile
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    told = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert [word for word in told if word in ("one", "two", "three", "four")] == [
        *("one", "two", "three", "four")
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_the_run_to_end(number: int, run: Settings, server: Any) -> None:
    _report(run, state="running")()
    server.meanwhile = lambda: os.kill(os.getpid(), number)
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert run.folder.stop.exists()
    assert server.killed_after == pytest.approx({"actor/0": 0.2, "learner/0": 0.2}, abs=0.02)


def test_servers_end_after_those_who_ask_them(
    run: Settings, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end as soon as they are asked."""
    nodes = ["actor/0", "coordinator/0", "learner/0", "replay/0", "replay/1"]
    asked: list[set[str]] = []

    def signalled(number: int, labels: Iterable[str]) -> None:
        assert number == signal.SIGTERM
        asked.append(set(labels))
        server.failing = [Ended(label, 0) for label in labels]

    monkeypatch.setattr(server, "signal", signalled)
    monkeypatch.setattr(server, "launch", lambda *_, **__: nodes)
    _report(run, LIMIT)()
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert asked == [{"actor/0", "learner/0"}, {"coordinator/0", "replay/0", "replay/1"}]


def test_a_closed_terminal_is_none_of_a_run_that_ignores_it(run: Settings, server: Any) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

    def hang_up() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        _report(run, LIMIT)()

    server.meanwhile = hang_up
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert not run.folder.stop.exists()


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    ("free", "lacks"),
    [
        (disk.Free(0, math.inf), "0 bytes are free"),
        (disk.Free(5e9, 2), "inodes for 2 more files are free"),
    ],
)
def test_a_full_disk_is_no_success_and_is_named(
    free: disk.Free,
    lacks: str,
    run: Settings,
    server: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a full disk the crash file can be made, but nothing written into it."""
    monkeypatch.setattr(disk, "free", lambda _: free)
    (run.path / "nodes" / "crash.txt").touch()
    server.failing = [Ended("actor/0", 1)]
    assert supervisor.run(run, {}, server, lambda: {}) == 1
    out, err = capsys.readouterr()
    assert "The process of node actor/0 ended with code 1." in err
    assert f"The disk of {run.path} is full ({lacks}): free some, then resume." in err
    assert "it was asked to stop" not in out
    assert (server.launches, server.started) == (1, [])
    assert server.killed_after == pytest.approx({"learner/0": 0.6}, abs=0.02)


def test_a_stop_on_a_full_disk_ends_the_run_all_the_same(
    run: Settings, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touch(path: pathlib.Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _report(run, state="running")()
    monkeypatch.setattr(pathlib.Path, "touch", touch)
    server.meanwhile = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert supervisor.run(run, {}, server, lambda: {}) == 0


def test_what_was_saved_and_is_damaged_is_told_at_the_end(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.path / "checkpoints" / "manifest.json").write_text("{")
    server.meanwhile = _report(run, LIMIT)
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert "manifest.json is corrupt" in capsys.readouterr().out


@pytest.mark.usefixtures("later")
def test_an_actor_that_dies_is_started_again_in_place(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def die() -> None:
        (run.path / "nodes" / "actor" / "0").write_text("its last words")
        server.failing = [Ended("actor/0", -9)]
        server.after(1.5, _report(run, LIMIT))

    server.meanwhile = die
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert (server.launches, server.started) == (1, ["actor/0"])
    out = capsys.readouterr().out
    assert "The process of node actor/0 was killed by SIGKILL. It starts again in 1 s." in out
    (kept,) = (run.path / "nodes" / "crashes").glob("*-actor-0.txt")
    assert "its last words" in kept.read_text()


@pytest.mark.usefixtures("later")
def test_what_an_actor_said_of_its_error_is_kept_and_does_not_hide_the_next(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def die() -> None:
        run.folder.crash.write_text("The actor 0 node crashed:\nTrace\nValueError: first\n")
        server.failing = [Ended("actor/0", 1)]
        server.after(1.0, _report(run, LIMIT))

    server.meanwhile = die
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert not run.folder.crash.exists()
    (kept,) = (run.path / "nodes" / "crashes").iterdir()
    assert "ValueError: first" in kept.read_text()
    assert "The actor 0 node crashed: ValueError: first. It starts again" in capsys.readouterr().out


@pytest.mark.usefixtures("later")
def test_a_dead_learner_begins_the_program_again_from_what_was_saved(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    went_on = []

    def go_on() -> dict[str, Any]:
        went_on.append(server.launches)
        return {}

    def die() -> None:
        if server.launches == 1:
            server.failing = [Ended("learner/0", -9)]
        else:
            _report(run, LIMIT)()

    server.meanwhile = die
    assert supervisor.run(run, {}, server, go_on) == 0
    assert (server.launches, went_on, server.started) == (2, [1], [])
    out = capsys.readouterr().out
    assert "node learner/0 was killed by SIGKILL. The run goes on from what was saved" in out


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("label", ["actor/0", "learner/0"])
def test_what_dies_too_often_ends_the_run_as_ever(
    label: str, run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    once = dataclasses.replace(run, restarts=0)
    server.failing = [Ended(label, -9)]
    assert supervisor.run(once, {}, server, lambda: {}) == 1
    assert (server.launches, server.started) == (1, [])
    assert f"The process of node {label} was killed by SIGKILL." in capsys.readouterr().err


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("saves", [False, True])
def test_who_dies_again_and_again_before_anything_new_is_saved_ends_the_run(
    saves: bool,
    run: Settings,
    server: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """However seldom it dies."""
    monkeypatch.setattr(supervisor, "WINDOW_SECONDS", -1.0)
    monkeypatch.setattr(supervisor, "LONGEST_DELAY", 0.0)
    manifest = run.folder.checkpoints / "manifest.json"
    saved = manifest.read_text()
    manifest.unlink()

    def die() -> None:
        server.failing = [Ended("learner/0", -9, starved=True)]
        if saves:
            manifest.write_text(saved + " " * server.launches)
        if server.launches == 6:
            server.failing = []
            _report(run, LIMIT)()

    server.meanwhile = die
    assert supervisor.run(run, {}, server, lambda: {}) == (0 if saves else 1)
    assert server.launches == (6 if saves else 4)
    out, err = capsys.readouterr()
    killed = "learner/0 was killed by SIGKILL, for memory ran out: fewer actors or a smaller replay"
    assert killed in out
    assert ("Nothing was saved yet: the run begins anew, in 0 s." in out) != saves
    assert ("It is not started again: --restarts=3 mends so many deaths in" in err) != saves


def test_in_its_first_minute_a_new_run_mends_nothing(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    server.failing = [Ended("actor/0", 1)]
    assert supervisor.run(run, {}, server, lambda: {}) == 1
    assert (server.launches, server.started) == (1, [])
    assert "what dies in the first 60 s of a new run would die again." in capsys.readouterr().err


@pytest.mark.usefixtures("later")
def test_a_node_that_ends_before_its_run_has_died_whatever_its_code(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _report(run, state="running")()
    server.meanwhile = lambda: server.failing.extend(
        [Ended("learner/0", process.DONE), Ended("actor/0", 0)]
    )
    server.start = lambda label: _report(run, LIMIT)()
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    said = "node actor/0 ended with code 0, by sys.exit or os._exit. It starts again in 1 s."
    assert said in capsys.readouterr().out


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("episodes", [0, 1])
def test_what_was_never_played_ends_the_run_and_what_was_is_tried_again(
    episodes: int, run: Settings, server: Any
) -> None:
    def die() -> None:
        _report(run, state="running", episodes=episodes)()
        server.failing = [Ended("actor/0", process.CANNOT_PLAY)]

    server.meanwhile = die
    server.start = lambda label: _report(run, LIMIT)()
    assert supervisor.run(run, {}, server, lambda: {}) == (0 if episodes else 1)
    assert server.launches == 1


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("instead", [False, True])
def test_a_run_folder_that_is_moved_ends_the_run_with_a_sentence(
    instead: bool, run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def move() -> None:
        run.path.rename(run.path.with_name("moved"))
        if instead:
            run.path.mkdir()
        server.failing = [Ended("actor/0", 1)]  # which could not write its log

    server.meanwhile = move
    assert supervisor.run(run, {}, server, lambda: {}) == 1
    out, err = capsys.readouterr()
    assert f"{run.path} was moved or removed: it is not where its run writes." in err
    assert (out, server.launches) == ("", 1)
    assert not list(run.path.glob("*"))


@pytest.mark.usefixtures("later")
def test_a_run_that_cannot_go_on_ends_with_the_reason(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def go_on() -> dict[str, Any]:
        raise CheckpointError("The checkpoint is corrupt.")

    server.failing = [Ended("learner/0", -9)]
    assert supervisor.run(run, {}, server, go_on) == 1
    assert "The checkpoint is corrupt." in capsys.readouterr().err


@pytest.mark.usefixtures("later")
def test_a_process_that_stood_still_is_told_from_one_that_was_killed(
    run: Settings, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def die() -> None:
        server.failing = [Ended("actor/0", -9, silence=21.4)]
        server.after(0.5, _report(run, LIMIT))

    server.meanwhile = die
    assert supervisor.run(run, {}, server, lambda: {}) == 0
    assert "node actor/0 did not go on for 21 s and was killed." in capsys.readouterr().out


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_each_delay_is_twice_the_last_of_the_same() -> None:
    restarts = Restarts(100, is_new=False, clock=Clock())
    delays = [restarts.delay("actor/0") for _ in range(6)]
    assert delays == [1, 2, 4, 8, LONGEST_DELAY, LONGEST_DELAY]
    assert restarts.delay("actor/1") == 1
    assert restarts.count == 7


def test_so_many_are_mended_in_ten_minutes_whatever_they_are() -> None:
    clock = Clock()
    restarts = Restarts(3, is_new=False, clock=clock)
    assert [restarts.delay("actor/0"), restarts.delay("actor/1")] == [1, 1]
    clock.now += WINDOW_SECONDS - 1
    assert not restarts.why_not()
    assert restarts.delay("evaluator/0") == 1
    assert "--restarts=3 mends so many deaths in 10 minutes" in restarts.why_not()
    clock.now += 2  # the first two are forgotten
    assert [restarts.delay("actor/0"), restarts.delay("actor/0")] == [1, 2]
    assert restarts.why_not()
    assert restarts.count == 5


def test_the_program_begins_again_so_often_from_one_checkpoint() -> None:
    clock = Clock()
    restarts = Restarts(3, is_new=False, clock=clock)
    for saves in (False, False, False, True, True, True, True, False, False):
        clock.now += WINDOW_SECONDS + 1
        if saves:
            restarts.saved()
        assert not restarts.why_not()
        restarts.delay(PROGRAM)
    clock.now += WINDOW_SECONDS + 1
    assert "--restarts=3 mends so many deaths in 10 minutes, or from one" in restarts.why_not()
    restarts.saved()
    assert not restarts.why_not()
