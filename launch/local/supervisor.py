"""Starts a run's processes, shows how it goes, makes deaths good, and ends it in order."""

import contextlib
import dataclasses
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable

from launch.graph import coordinator, process
from launch.graph.program import make_program
from launch.local import caller, processes, view
from launch.local.fork_server import Ended, ForkServer, how
from recurrent_replay import command
from run_folder import checkpoints, disk, progress, resuming
from run_folder.settings import Settings, SettingsError

NOTICE_SECONDS = 4  # from the request to end, after all is saved, to the end of every process
CRASH_SECONDS = 10  # the same when a node has crashed, and the learner has yet to save
KILL_SECONDS = 5  # from a SIGKILL to the end of the process, whatever holds it
POLL_SECONDS = 0.2
OUTPUT_LINES = 30  # of a node that died without a word in the crash file
ASKED_BY_OTHERS = ("replay", "coordinator")
# Nodes whose end loses nothing that others need.
STARTED_AGAIN = ("actor", "evaluator", "demonstrator")
WINDOW_SECONDS = 600.0  # in which deaths are counted
FIRST_SECONDS = 60.0  # of a run's very first launch: what dies then would die again
LONGEST_DELAY = 8.0
PROGRAM = "the program"  # as what dies: it begins again from what was saved


def run(
    settings: Settings,
    manifests: checkpoints.Manifests,
    server: ForkServer,
    go_on: Callable[[], checkpoints.Manifests],
    on_progress: Callable[[], None] = lambda: None,
) -> int:
    """Runs the program of `settings` on this machine; `begin` has readied its folder.

    An actor or an evaluator that dies is started again. When another node does, the program ends in
    order, and is launched again from what it saved last.

    Args:
      settings: of the run.
      manifests: what it goes on from.
      server: that forks its nodes.
      go_on: readies the folder for another launch, and says what that goes on from.
      on_progress: called now and then while it runs.

    Returns:
      The exit code: 0 when the run ended as asked, 1 when nodes crashed and were not, or could not
      be, made good, or when the run's own limit was reached and nothing could be saved.
    """
    stop = threading.Event()
    processes.hear_the_end(stop)
    restarts = Restarts(settings.restarts, is_new=not manifests)
    title = f"{settings.agent} on {settings.env}, {settings.run_dir}"
    with view.View(title, earlier=view.earlier(settings.folder)) as drawn:
        launch = Launch(settings, server, restarts, stop, drawn, on_progress)
        try:
            while (crash := launch.run(manifests)) and not (crash := launch.again(crash)):
                manifests = go_on()
        except SettingsError as error:
            crash = str(error)
    with contextlib.suppress(OSError):  # the terminal may have been closed
        conclude(settings, crash)
    return 1 if crash or (not stop.is_set() and not saved(settings)) else 0


def begin(settings: Settings) -> None:
    """Readies the run folder for the processes of a launch.

    Raises:
      OSError: it cannot be written. What it held before is there still.
    """
    folder = settings.folder
    folder.nodes.mkdir(parents=True, exist_ok=True)
    disk.write(folder.config, settings.to_json())
    started = folder.nodes.glob(folder.started().name)
    for file in (folder.progress, folder.crash, folder.stop, *started):
        file.unlink(missing_ok=True)


class Restarts:
    """Counts deaths. Each is made good after twice the delay of the last one of the same kind.

    A death after which the program begins again counts, beyond `WINDOW_SECONDS`, until the run has
    saved something new: or it would begin again for ever from where it began.

    Args:
      limit: deaths that are made good, of those that count.
      is_new: whether this is a run's very first launch.
      clock: seconds.
    """

    def __init__(
        self, limit: int, *, is_new: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.count = 0
        self._limit = limit
        self._clock = clock
        self._from = clock() + (FIRST_SECONDS if is_new else 0.0)
        self._deaths: list[tuple[float, str]] = []
        self._saved_at = clock()

    def saved(self) -> None:
        """The run has saved something new."""
        self._saved_at = self._clock()

    def why_not(self) -> str:
        """Why what dies now is not made good, as a sentence; empty where it is."""
        if self._clock() < self._from:
            return (
                f"It is not started again: what dies in the first {FIRST_SECONDS:.0f} s of a new "
                "run would die again."
            )
        if len(self._counted()) >= self._limit:
            return (
                f"It is not started again: --restarts={self._limit} mends so many deaths in "
                f"{WINDOW_SECONDS / 60:.0f} minutes, or from one checkpoint to the next."
            )
        return ""

    def delay(self, what: str) -> float:
        """Seconds after which what has died starts again: 1, 2, 4, ..."""
        self._deaths = self._counted()
        before = sum(dead == what for _, dead in self._deaths)
        self._deaths.append((self._clock(), what))
        self.count += 1
        return min(2.0**before, LONGEST_DELAY)

    def _counted(self) -> list[tuple[float, str]]:
        lately = self._clock() - WINDOW_SECONDS
        return [
            (then, what)
            for then, what in self._deaths
            if then >= lately or (what == PROGRAM and then >= self._saved_at)
        ]


class Launch:
    """The launches of a run, one after another; `stop` is set when somebody asks for the end."""

    def __init__(
        self,
        settings: Settings,
        server: ForkServer,
        restarts: Restarts,
        stop: threading.Event,
        drawn: view.View,
        on_progress: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._folder = settings.folder
        self._server = server
        self._restarts = restarts
        self._stop = stop
        self._view = drawn
        self._on_progress = on_progress
        self._running: set[str] = set()
        self._due: dict[str, float] = {}  # when a node that has died starts again
        self._told = 0  # of the coordinator's notices
        self._is_in_vain = False  # to begin again: it would end the same way
        self._why_not = ""  # what has died is started again
        self._place = _place(settings)
        self._saved = saved(settings)  # at the last death

    def run(self, manifests: checkpoints.Manifests) -> str:
        """Runs the program to its end; returns what is known of the crash that ended it, if any."""
        self._due.clear()
        self._told = 0
        # By its whole path: an environment may take a process to another folder.
        settings = dataclasses.replace(self._settings, run_dir=str(self._settings.path.absolute()))
        self._running = set(
            self._server.launch(
                make_program,
                *(settings, manifests),
                output=self._folder.nodes,
                hang_seconds=self._settings.hang_seconds,
            )
        )
        crash = ""
        try:
            crash = self._watch()
        finally:
            self._end(CRASH_SECONDS if crash else NOTICE_SECONDS)
        return crash

    def again(self, crash: str) -> str:
        """Waits until the program is to be launched again after a crash.

        Returns:
          What is known of the crash, and why the run ends by it; empty where it does not.
        """
        is_asked_to_end = self._stop.is_set() or self._folder.stop.exists()
        if is_asked_to_end or self._is_in_vain or disk.full(self._settings.path):
            return crash
        if self._why_not:
            return f"{crash.rstrip()}\n{self._why_not}"
        delay = self._restarts.delay(PROGRAM)
        goes_on = "The run goes on from what was saved"
        if not saved(self._settings):
            goes_on = "Nothing was saved yet: the run begins anew"
        self._tell(f"{_headline(crash)} {goes_on}, in {delay:g} s.")
        self._keep("program", crash)
        return crash if self._stop.wait(delay) else ""

    def _watch(self) -> str:
        """Shows progress until the run is finished, or until a crash that only its end mends."""
        deadline = float("inf")
        while time.monotonic() < deadline:
            state = progress.read(self._settings.path)
            if state is not None:
                self._view.show(state, self._restarts.count)
                self._on_progress()
                new = state["noticed"] - self._told
                for sentence in state["notices"][-new:] if new else ():
                    self._tell(sentence)
                self._told = state["noticed"]
                if state["state"] == "finished":
                    return ""
            elif self._stop.is_set():
                return ""  # the nodes are still on their way: there is nothing to save
            all_ended = self._server.ended(POLL_SECONDS)
            self._running.difference_update(ended.label for ended in all_ended)
            if _place(self._settings) != self._place:
                self._is_in_vain = True
                path = self._settings.path
                return f"{path} was moved or removed: it is not where its run writes."
            for ended in all_ended:
                if ended.code != process.DONE and (crash := self._mend(ended)):
                    return crash
            for label in [label for label, due in self._due.items() if time.monotonic() >= due]:
                self._due.pop(label)
                self._running.add(label)
                self._server.start(label)
            if self._stop.is_set():
                with contextlib.suppress(OSError):  # a full disk; then nodes hear it by a signal
                    self._folder.stop.touch()
                deadline = min(deadline, time.monotonic() + coordinator.SAVE_SECONDS)
        return ""

    def _mend(self, ended: Ended) -> str:
        """Sees to it that a node is started again; where it is not, returns what is known of it."""
        crash = _crash(self._settings, ended)
        state = progress.read(self._settings.path)
        was_played = bool(state and state["counts"]["episodes"])
        self._is_in_vain = ended.code == process.CANNOT_PLAY and not was_played
        before, self._saved = self._saved, saved(self._settings)
        if self._saved != before:
            self._restarts.saved()
        self._why_not = self._restarts.why_not()
        if (
            self._is_in_vain
            or self._why_not
            or ended.label.split("/")[0] not in STARTED_AGAIN
            or disk.full(self._settings.path)
        ):
            return crash
        delay = self._restarts.delay(ended.label)
        self._due[ended.label] = time.monotonic() + delay
        self._tell(f"{_headline(crash)} It starts again in {delay:g} s.")
        self._keep(ended.label, crash)
        return ""

    def _end(self, seconds: float) -> None:
        """Asks what still runs to end, and kills what does not in time."""
        deadline = time.monotonic() + seconds
        # Who asks a server that is gone waits for it, as long as gRPC likes: so these end last.
        servers = {label for label in self._running if label.split("/")[0] in ASKED_BY_OTHERS}
        for number, labels, until in (
            (signal.SIGTERM, self._running - servers, deadline),
            (signal.SIGTERM, servers, deadline),
            (signal.SIGKILL, set(self._running), deadline + KILL_SECONDS),
        ):
            if asked := labels & self._running:
                self._server.signal(number, asked)
            while labels & self._running and time.monotonic() < until:
                self._running.difference_update(e.label for e in self._server.ended(POLL_SECONDS))

    def _keep(self, label: str, crash: str) -> None:
        """Files what is known of a crash that was made good."""
        with contextlib.suppress(OSError):
            self._folder.crashes.mkdir(exist_ok=True)
            name = f"{time.strftime('%Y%m%d-%H%M%S')}-{label.replace('/', '-')}.txt"
            (self._folder.crashes / name).write_text(crash)
            self._folder.crash.unlink(missing_ok=True)

    def _tell(self, sentence: str) -> None:
        self._view.tell(f"{time.strftime('%H:%M:%S')} {sentence}")


def _place(settings: Settings) -> tuple[int, int] | None:
    """Tells the run folder from another one of its name; None where there is none."""
    with contextlib.suppress(OSError):
        found = settings.path.stat()
        return found.st_dev, found.st_ino
    return None


def _crash(settings: Settings, ended: Ended) -> str:
    """All that is known of a node that has failed; in two lines where the disk is full."""
    file = settings.folder.crash
    words = file.read_text(errors="replace") if file.exists() else ""  # empty on a full disk
    if not words:
        how_it_ended = how(ended.code, starved=ended.starved)
        if ended.silence:
            how_it_ended = f"did not go on for {ended.silence:.0f} s and was killed"
        lines: list[str] = []
        with contextlib.suppress(OSError):  # somebody has removed it
            lines = (settings.folder.nodes / ended.label).read_text(errors="replace").splitlines()
        text = "".join(f"  {line}\n" for line in lines[-OUTPUT_LINES:]) or "  nothing"
        words = f"The process of node {ended.label} {how_it_ended}.\nIt had printed:\n{text}"
    if full := disk.full(settings.path):
        return f"{_headline(words)}\n{full}: free some, then resume."
    return words


def _headline(crash: str) -> str:
    """A crash as a sentence: how a process ended, or the error it ended by."""
    first, *rest = crash.strip().splitlines()
    text = f"{first} {rest[-1].strip()}" if first.endswith(":") and rest else first
    return text if text.endswith(".") else f"{text}."


def saved(settings: Settings) -> str:
    """The manifest of what a run has saved, whatever it says; empty where there is none."""
    with contextlib.suppress(OSError):
        return (settings.folder.checkpoints / checkpoints.MANIFEST).read_text(errors="replace")
    return ""


def conclude(settings: Settings, crash: str) -> None:
    """Says on the terminal how the run ended and what can be typed next."""
    state = progress.read(settings.path)
    if crash:
        print(
            f"{crash.rstrip()}\n"
            f"The run has ended. What each node printed is in {settings.folder.nodes}.",
            file=sys.stderr,
        )
        caller.tell(crash.rstrip())
    else:
        reason = (state["reason"] if state else "") or "it was asked to stop"
        print(f"The run has ended: {reason}.")
    if not settings.folder.config.exists():  # the folder was moved
        return
    try:
        manifest = checkpoints.read(settings.folder.checkpoints)
    except checkpoints.CheckpointError as error:
        print(f"{error} Resume it to hear what can be done.")
        return
    if manifest is None:
        print("Nothing was saved yet.")
        return
    replay = "no replay"
    if manifest.replay is not None:
        replay = f"{manifest.replay_items:,} items of replay at update {manifest.replay_step:,}"
    run_dir = shlex.quote(settings.run_dir)
    further = resuming.raised_limits(state["limits"], state["counts"]) if state else []
    if state and state["goal"] and state["goal"]["is_reached"]:
        further.append("--until_return=inf")
    print(
        f"Saved: the learner at update {manifest.learner_step:,}, {replay}.\n"
        f"Resume:   {command('train')} --run_dir={run_dir} {' '.join(['--resume', *further])}\n"
        f"Evaluate: {command('evaluate')} --run_dir={run_dir} --episodes=30\n"
        f"Report:   {command('report')} --run_dir={run_dir}"
    )
