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
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from launch.graph import coordinator, process
from launch.local import supervisor
from launch.local.fork_server import Ended
from launch.local.supervisor import LONGEST_DELAY, PROGRAM, WINDOW_SECONDS, Restarts
from recurrent_replay import command
from run_folder import disk
from run_folder.checkpoints import CheckpointError
from run_folder.settings import Settings
from tests.launch.local.made_up import progress
from tests.run_folder import saved_runs

LIMIT = "100 actor steps were reached"


class Launch:
    """The launch of a run that has saved something; stands for the fork server, too.

    Attributes:
      run: its settings.
      meanwhile: called once the program has been started, for each launch the next.
      on_start: called whenever a node is started again.
      failing: nodes whose end it tells of.
      launches: how many there were.
      program: that was launched last: a function and its arguments.
      started: nodes that were started again.
      now: seconds that were waited for the server, the supervisor's clock.
      begun: when the nodes were asked to end.
      killed_after: nodes that were killed, and after how many seconds.
      out, err: all that was printed by the end.
    """

    def __init__(self, run: Settings, capsys: pytest.CaptureFixture[str]) -> None:
        self.run, self._capsys = run, capsys
        self.meanwhile: Callable[[], None] = lambda: None
        self.on_start: Callable[[], None] = lambda: None
        self.failing: list[Ended] = []
        self.launches = 0
        self.started: list[str] = []
        self.now = 0.0
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.begun = math.nan
        self.killed: set[str] = set()  # of whose end it has not told
        self.killed_after: dict[str, float] = {}

    def end(self, go_on: Callable[[], Any] = dict, **changes: Any) -> int:
        """Supervises the run, with changed settings, to its end; returns the exit code."""
        server: Any = self
        code = supervisor.run(dataclasses.replace(self.run, **changes), {}, server, go_on)
        self.out, self.err = self._capsys.readouterr()
        return code

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        """Does something when so many seconds were waited for the server."""
        self.later.append((self.now + seconds, do))

    def report(
        self, reason: str = "", state: str = "finished", episodes: int = 0, **changes: Any
    ) -> Callable[[], None]:
        """Writes, when it is called, what the coordinator would."""
        counts = dict(actor_steps=2_000, learner_steps=0, episodes=episodes)
        text = json.dumps(progress(state=state, reason=reason, counts=counts, **changes))
        return lambda: disk.write(self.run.folder.progress, text)

    def launch(self, *program: Any, output: pathlib.Path, hang_seconds: float) -> list[str]:
        self.launches += 1
        self.program = program
        self.meanwhile()
        return ["actor/0", "learner/0"]

    def start(self, label: str) -> None:
        self.started.append(label)
        self.on_start()

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
def launch(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Launch]:
    """A launch whose first minute is over."""
    launch = Launch(saved_runs.save(tmp_path / "run", "impala"), capsys)
    supervisor.begin(launch.run)
    for group in ("actor", "learner"):
        (launch.run.path / "nodes" / group).mkdir()
        (launch.run.path / "nodes" / group / "0").write_text("")
    monkeypatch.setattr(supervisor, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(supervisor, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "NOTICE_SECONDS", 0.2)
    monkeypatch.setattr(supervisor, "CRASH_SECONDS", 0.6)
    monkeypatch.setattr(coordinator, "SAVE_SECONDS", 0.1)
    clock = types.SimpleNamespace(monotonic=lambda: launch.now, strftime=time.strftime)
    monkeypatch.setattr(supervisor, "time", clock)
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    yield launch
    for number, handler in before.items():
        signal.signal(number, handler)


def _remove_manifest(launch: Launch) -> None:
    (launch.run.path / "checkpoints" / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("limits", "further"),
    [
        (dict(actor_steps=2_000, learner_steps=None), " --max_actor_steps=4000"),
        (dict(actor_steps=2_001, learner_steps=None), ""),
        (dict(actor_steps=1_500, learner_steps=9), " --max_actor_steps=3000"),
        (dict(actor_steps=None, learner_steps=None, walltime=3_600.0), " --max_minutes=120"),
        (dict(actor_steps=1_500, walltime=7.5), " --max_actor_steps=3000 --max_minutes=63"),
        (dict(actor_steps=None, walltime=9_000.5), ""),
    ],
)
def test_the_line_that_resumes_raises_what_was_reached(
    launch: Launch, limits: dict[str, float | None], further: str
) -> None:
    launch.meanwhile = launch.report(LIMIT, limits=limits)
    assert launch.end() == 0
    assert f"The run has ended: {LIMIT}." in launch.out
    line = f"Resume:   {command('train')} --run_dir={launch.run.path} --resume{further}\n"
    assert line in launch.out


@pytest.mark.parametrize(("is_reached", "further"), [(True, " --until_return=inf"), (False, "")])
def test_the_line_that_resumes_goes_on_beyond_the_return_that_was_reached(
    launch: Launch, is_reached: bool, further: str
) -> None:
    goal = dict(until_return=0.5, evaluations=1, in_a_row=int(is_reached), is_reached=is_reached)
    launch.meanwhile = launch.report(LIMIT, goal=goal)
    assert launch.end() == 0
    assert f" --run_dir={launch.run.path} --resume{further}\n" in launch.out


def test_nodes_know_a_run_by_its_whole_path_and_its_user_as_it_was_typed(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(launch.run.path.parent)
    launch.meanwhile = launch.report(LIMIT)
    assert launch.end(run_dir="run") == 0
    _, settings, _ = launch.program
    assert settings.run_dir == os.path.abspath("run")
    assert " --run_dir=run --resume" in launch.out


def test_a_run_that_reached_its_limit_and_saved_nothing_is_none(launch: Launch) -> None:
    _remove_manifest(launch)
    launch.meanwhile = launch.report(LIMIT)
    assert launch.end() == 1
    assert "Nothing was saved yet." in launch.out


def test_a_run_that_is_stopped_before_anything_was_saved_was_asked_to(launch: Launch) -> None:
    _remove_manifest(launch)
    launch.meanwhile = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert launch.end() == 0


def test_at_its_limit_a_run_waits_for_the_last_save(launch: Launch) -> None:
    """For ten times as long as after a signal."""
    launch.report(LIMIT, state="running")()
    launch.meanwhile = lambda: launch.after(1.0, launch.report(LIMIT))
    assert launch.end() == 0
    assert launch.now >= 1.0


def test_each_notice_is_told_once(launch: Launch) -> None:
    launch.report(state="running", notices=["one", "two"], noticed=2)()
    # The first is no longer kept.
    later: dict[str, Any] = dict(notices=["two", "three", "four"], noticed=4)

    def meanwhile() -> None:
        launch.after(0.3, launch.report(state="running", **later))
        launch.after(0.6, launch.report(LIMIT, **later))

    launch.meanwhile = meanwhile
    assert launch.end() == 0
    told = [line.split()[-1] for line in launch.out.splitlines()]
    words = ["one", "two", "three", "four"]
    assert [word for word in told if word in words] == words


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_the_run_to_end(number: int, launch: Launch) -> None:
    launch.report(state="running")()
    launch.meanwhile = lambda: os.kill(os.getpid(), number)
    assert launch.end() == 0
    assert launch.run.folder.stop.exists()
    assert launch.killed_after == pytest.approx({"actor/0": 0.2, "learner/0": 0.2}, abs=0.02)


def test_servers_end_after_those_who_ask_them(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end as soon as they are asked."""
    nodes = ["actor/0", "coordinator/0", "learner/0", "replay/0", "replay/1"]
    asked: list[set[str]] = []

    def signalled(number: int, labels: Iterable[str]) -> None:
        assert number == signal.SIGTERM
        asked.append(set(labels))
        launch.failing = [Ended(label, 0) for label in labels]

    monkeypatch.setattr(launch, "signal", signalled)
    monkeypatch.setattr(launch, "launch", lambda *_, **__: nodes)
    launch.report(LIMIT)()
    assert launch.end() == 0
    assert asked == [{"actor/0", "learner/0"}, {"coordinator/0", "replay/0", "replay/1"}]


def test_a_closed_terminal_is_none_of_a_run_that_ignores_it(launch: Launch) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

    def hang_up() -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        launch.report(LIMIT)()

    launch.meanwhile = hang_up
    assert launch.end() == 0
    assert not launch.run.folder.stop.exists()


@pytest.mark.parametrize(
    ("free", "lacks"),
    [
        (disk.Free(0, math.inf), "0 bytes are free"),
        (disk.Free(5e9, 2), "inodes for 2 more files are free"),
    ],
)
def test_a_full_disk_is_no_success_and_is_named(
    free: disk.Free, lacks: str, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the crash file can be made, but nothing written into it."""
    monkeypatch.setattr(disk, "free", lambda _: free)
    (launch.run.path / "nodes" / "crash.txt").touch()
    launch.failing = [Ended("actor/0", 1)]
    assert launch.end() == 1
    assert "The process of node actor/0 ended with code 1." in launch.err
    assert f"The disk of {launch.run.path} is full ({lacks}): free some, then" in launch.err
    assert "it was asked to stop" not in launch.out
    assert (launch.launches, launch.started) == (1, [])
    assert launch.killed_after == pytest.approx({"learner/0": 0.6}, abs=0.02)


def test_a_stop_on_a_full_disk_ends_the_run_all_the_same(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touch(path: pathlib.Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    launch.report(state="running")()
    monkeypatch.setattr(pathlib.Path, "touch", touch)
    launch.meanwhile = lambda: os.kill(os.getpid(), signal.SIGTERM)
    assert launch.end() == 0


def test_what_was_saved_and_is_damaged_is_told_at_the_end(launch: Launch) -> None:
    (launch.run.path / "checkpoints" / "manifest.json").write_text("{")
    launch.meanwhile = launch.report(LIMIT)
    assert launch.end() == 0
    assert "manifest.json is corrupt" in launch.out


def test_an_actor_that_dies_is_started_again_in_place(launch: Launch) -> None:
    def die() -> None:
        (launch.run.path / "nodes" / "actor" / "0").write_text("its last words")
        launch.failing = [Ended("actor/0", -9)]
        launch.after(1.5, launch.report(LIMIT))

    launch.meanwhile = die
    assert launch.end() == 0
    assert (launch.launches, launch.started) == (1, ["actor/0"])
    said = "The process of node actor/0 was killed by SIGKILL. It starts again in 1 s."
    assert said in launch.out
    (kept,) = (launch.run.path / "nodes" / "crashes").glob("*-actor-0.txt")
    assert "its last words" in kept.read_text()


def test_what_an_actor_said_of_its_error_is_kept_and_does_not_hide_the_next(launch: Launch) -> None:
    def die() -> None:
        launch.run.folder.crash.write_text("The actor 0 node crashed:\nTrace\nValueError: first\n")
        launch.failing = [Ended("actor/0", 1)]
        launch.after(1.0, launch.report(LIMIT))

    launch.meanwhile = die
    assert launch.end() == 0
    assert not launch.run.folder.crash.exists()
    (kept,) = (launch.run.path / "nodes" / "crashes").iterdir()
    assert "ValueError: first" in kept.read_text()
    assert "The actor 0 node crashed: ValueError: first. It starts again" in launch.out


def test_a_dead_learner_begins_the_program_again_from_what_was_saved(launch: Launch) -> None:
    went_on = []

    def go_on() -> dict[str, Any]:
        went_on.append(launch.launches)
        return {}

    def die() -> None:
        if launch.launches == 1:
            launch.failing = [Ended("learner/0", -9)]
        else:
            launch.report(LIMIT)()

    launch.meanwhile = die
    assert launch.end(go_on) == 0
    assert (launch.launches, went_on, launch.started) == (2, [1], [])
    said = "node learner/0 was killed by SIGKILL. The run goes on from what was saved"
    assert said in launch.out


@pytest.mark.parametrize("label", ["actor/0", "learner/0"])
def test_what_dies_too_often_ends_the_run_as_ever(label: str, launch: Launch) -> None:
    launch.failing = [Ended(label, -9)]
    assert launch.end(restarts=0) == 1
    assert (launch.launches, launch.started) == (1, [])
    assert f"The process of node {label} was killed by SIGKILL." in launch.err


@pytest.mark.parametrize("saves", [False, True])
def test_who_dies_again_and_again_before_anything_new_is_saved_ends_the_run(
    saves: bool, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However seldom it dies."""
    monkeypatch.setattr(supervisor, "WINDOW_SECONDS", -1.0)
    monkeypatch.setattr(supervisor, "LONGEST_DELAY", 0.0)
    manifest = launch.run.folder.checkpoints / "manifest.json"
    saved = manifest.read_text()
    manifest.unlink()

    def die() -> None:
        launch.failing = [Ended("learner/0", -9, starved=True)]
        if saves:
            manifest.write_text(saved + " " * launch.launches)
        if launch.launches == 6:
            launch.failing = []
            launch.report(LIMIT)()

    launch.meanwhile = die
    assert launch.end() == (0 if saves else 1)
    assert launch.launches == (6 if saves else 4)
    killed = "learner/0 was killed by SIGKILL, for memory ran out: fewer actors or a smaller replay"
    assert killed in launch.out
    assert ("Nothing was saved yet: the run begins anew, in 0 s." in launch.out) != saves
    said = "It is not started again: --restarts=3 mends so many deaths in"
    assert (said in launch.err) != saves


def test_in_its_first_minute_a_new_run_mends_nothing(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_SECONDS", 60.0)
    launch.failing = [Ended("actor/0", 1)]
    assert launch.end() == 1
    assert (launch.launches, launch.started) == (1, [])
    assert "what dies in the first 60 s of a new run would die again." in launch.err


def test_a_node_that_ends_before_its_run_has_died_whatever_its_code(launch: Launch) -> None:
    launch.report(state="running")()
    launch.meanwhile = lambda: launch.failing.extend(
        [Ended("learner/0", process.DONE), Ended("actor/0", 0)]
    )
    launch.on_start = launch.report(LIMIT)
    assert launch.end() == 0
    said = "node actor/0 ended with code 0, by sys.exit or os._exit. It starts again in 1 s."
    assert said in launch.out


@pytest.mark.parametrize("episodes", [0, 1])
def test_what_was_never_played_ends_the_run_and_what_was_is_tried_again(
    episodes: int, launch: Launch
) -> None:
    def die() -> None:
        launch.report(state="running", episodes=episodes)()
        launch.failing = [Ended("actor/0", process.CANNOT_PLAY)]

    launch.meanwhile = die
    launch.on_start = launch.report(LIMIT)
    assert launch.end() == (0 if episodes else 1)
    assert launch.launches == 1


@pytest.mark.parametrize("instead", [False, True])
def test_a_run_folder_that_is_moved_ends_the_run_with_a_sentence(
    instead: bool, launch: Launch
) -> None:
    def move() -> None:
        launch.run.path.rename(launch.run.path.with_name("moved"))
        if instead:
            launch.run.path.mkdir()
        launch.failing = [Ended("actor/0", 1)]  # which could not write its log

    launch.meanwhile = move
    assert launch.end() == 1
    said = f"{launch.run.path} was moved or removed: it is not where its run writes."
    assert said in launch.err
    assert (launch.out, launch.launches) == ("", 1)
    assert not list(launch.run.path.glob("*"))


def test_a_run_that_cannot_go_on_ends_with_the_reason(launch: Launch) -> None:
    def go_on() -> dict[str, Any]:
        raise CheckpointError("The checkpoint is corrupt.")

    launch.failing = [Ended("learner/0", -9)]
    assert launch.end(go_on) == 1
    assert "The checkpoint is corrupt." in launch.err


def test_a_process_that_stood_still_is_told_from_one_that_was_killed(launch: Launch) -> None:
    def die() -> None:
        launch.failing = [Ended("actor/0", -9, silence=21.4)]
        launch.after(0.5, launch.report(LIMIT))

    launch.meanwhile = die
    assert launch.end() == 0
    assert "node actor/0 did not go on for 21 s and was killed." in launch.out


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
