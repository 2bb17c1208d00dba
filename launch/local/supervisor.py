"""Starts a run's processes, shows how it goes, and ends it in order."""

import contextlib
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable

from launch.graph import coordinator
from launch.graph.program import make_program
from launch.local import view
from launch.local.fork_server import Ended, ForkServer, how
from run_folder import checkpoints, progress, whole_files
from run_folder.settings import Settings

NOTICE_SECONDS = 4  # from the request to end, after all is saved, to the end of every process
CRASH_SECONDS = 10  # the same when a node has crashed, and the learner has yet to save
POLL_SECONDS = 0.2
LEAST_FREE_BYTES = 2**20  # of a disk that is not full
OUTPUT_LINES = 30  # of a node that died without a word in the crash file


def run(settings: Settings, manifests: checkpoints.Manifests, server: ForkServer) -> int:
    """Runs the program of `settings` on this machine; `begin` has readied its folder.

    Args:
      settings: of the run.
      manifests: what it goes on from.
      server: that forks its nodes.

    Returns:
      The exit code: 0 when the run ended as asked, 1 when a node crashed, or when the run's own
      limit was reached and nothing could be saved.
    """
    signals, stop = _signals(), threading.Event()
    _handle(signals, stop)
    running = set(server.launch(make_program, settings, manifests, output=settings.folder.nodes))
    failed: list[Ended] = []
    try:
        failed = _watch(server, running, stop, settings)
        crash = _crash(settings, failed[0]) if failed else ""
    finally:
        _end(server, running, CRASH_SECONDS if failed else NOTICE_SECONDS)
    with contextlib.suppress(OSError):  # the terminal may have been closed
        _report(settings, crash)
    return 1 if failed or (not stop.is_set() and not _saved(settings)) else 0


def _signals() -> set[signal.Signals]:
    """Those that ask for the end. A closed terminal's is none where it is ignored, as by nohup."""
    asking = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        asking.add(signal.SIGHUP)
    return asking


def _handle(signals: Iterable[signal.Signals], stop: threading.Event) -> None:
    for number in signals:
        signal.signal(number, lambda *_: stop.set())


def begin(settings: Settings) -> None:
    """Readies the run folder for the processes of a launch.

    Raises:
      OSError: it cannot be written. What it held before is there still.
    """
    folder = settings.folder
    folder.nodes.mkdir(parents=True, exist_ok=True)
    whole_files.write(folder.config, settings.to_json())
    started = folder.nodes.glob(folder.started().name)
    for file in (folder.progress, folder.crash, folder.stop, *started):
        file.unlink(missing_ok=True)


def _watch(
    server: ForkServer, running: set[str], stop: threading.Event, settings: Settings
) -> list[Ended]:
    """Shows progress until the run is finished, or nodes failed, which it returns.

    Args:
      server: says what ends.
      running: labels of the nodes; those that ended are taken out.
      stop: set when somebody asks for the end.
      settings: of the run.
    """
    deadline = float("inf")
    with view.View(f"{settings.agent} on {settings.env}, {settings.run_dir}") as drawn:
        while time.time() < deadline:
            state = progress.read(settings.path)
            if state is not None:
                drawn.show(state)
            elif stop.is_set():
                return []  # the nodes are still on their way: there is nothing to save
            if state is not None and state["state"] == "finished":
                return []
            ended = server.ended(POLL_SECONDS)
            running.difference_update(label for label, _ in ended)
            if failed := [each for each in ended if each.code]:
                return failed
            if stop.is_set():
                with contextlib.suppress(OSError):  # a full disk; then nodes hear it by a signal
                    settings.folder.stop.touch()
                deadline = min(deadline, time.time() + coordinator.SAVE_SECONDS)
    return []


def _end(server: ForkServer, running: set[str], seconds: float) -> None:
    """Asks what still runs to end, and kills what does not in time."""
    server.signal(signal.SIGTERM, running)
    deadline = time.time() + seconds
    while running and time.time() < deadline:
        running.difference_update(label for label, _ in server.ended(POLL_SECONDS))
    server.signal(signal.SIGKILL, running)


def _crash(settings: Settings, failed: Ended) -> str:
    """What is known of the node that failed first."""
    return _first_words(settings, failed) + _advice_on_space(settings)


def _first_words(settings: Settings, failed: Ended) -> str:
    file = settings.folder.crash
    if file.exists() and (text := file.read_text(errors="replace")):  # empty on a full disk
        return text
    return _end_of_output(settings, *failed)


def _advice_on_space(settings: Settings) -> str:
    free = shutil.disk_usage(settings.path).free
    if free >= LEAST_FREE_BYTES:
        return ""
    return f"The disk of {settings.path} is full ({free:,} bytes are free): free some, then resume."


def _end_of_output(settings: Settings, node: str, code: int) -> str:
    """How a process ended that could not say so itself, and the last that it printed."""
    lines = (settings.folder.nodes / node).read_text(errors="replace").splitlines()
    text = "".join(f"  {line}\n" for line in lines[-OUTPUT_LINES:])
    return f"The process of node {node} {how(code)}. It had printed:\n{text or '  nothing'}"


def _report(settings: Settings, crash: str) -> None:
    """Says on the terminal how the run ended and what can be done with it."""
    if crash:
        outputs = settings.folder.nodes
        print(
            f"{crash.rstrip()}\nThe run has ended. What each node printed is in {outputs}.",
            file=sys.stderr,
        )
    else:
        state = progress.read(settings.path)
        reason = (state["reason"] if state else "") or "it was asked to stop"
        print(f"The run has ended: {reason}.")
    _describe_checkpoint(settings)


def _saved(settings: Settings) -> bool:
    """Whether there is a manifest, of whatever it is."""
    return (settings.folder.checkpoints / checkpoints.MANIFEST).exists()


def _describe_checkpoint(settings: Settings) -> None:
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
        age = int(time.time() - manifest.replay_saved_at)
        replay = f"{manifest.replay_items:,} items of replay saved {age} s ago"
    run_dir = shlex.quote(settings.run_dir)
    print(
        f"Saved: the learner at update {manifest.learner_step:,}, {replay}.\n"
        f"Resume:   python -m launch.train --run_dir={run_dir} --resume\n"
        f"Evaluate: python -m launch.evaluate --run_dir={run_dir} --episodes=30\n"
        f"Report:   python -m launch.report --run_dir={run_dir}"
    )
