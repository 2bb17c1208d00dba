"""Starts a run's processes, shows how it goes, and ends it in order."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import launchpad as lp
import psutil
from absl import flags
from launchpad.launch.run_locally import launch_local_output_to_files

from launch.graph import coordinator, temporary_files
from launch.graph.program import local_resources, make_program
from launch.local import view
from run_folder import checkpoints, progress, whole_files
from run_folder.settings import Settings

NOTICE_SECONDS = 4  # from the request to end, after all is saved, to the end of every process
CRASH_SECONDS = 10  # the same when a node has crashed, and the learner has yet to save
POLL_SECONDS = 0.2
LEAST_FREE_BYTES = 2**20  # of a disk that is not full
OUTPUT_LINES = 30  # of a node that died without a word in the crash file

Workers = Mapping[str, Sequence[subprocess.Popen[bytes]]]


def run(settings: Settings, manifests: checkpoints.Manifests) -> int:
    """Runs the program of `settings` on this machine; `begin` has readied its folder.

    Returns:
      The exit code: 0 when the run ended as asked, 1 when a node crashed, or when the run's own
      limit was reached and nothing could be saved.
    """
    signals, stop = _signals(), threading.Event()
    _handle(signals, stop)
    # Until each node is past its imports, a signal waits: nodes inherit the mask.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with temporary_files.folder_of_a_run():
        manager = _launch(make_program(settings, manifests), str(settings.folder.nodes))
        workers = {node: list(group) for node, group in manager._active_workers.items()}
        _handle(signals, stop)  # Launchpad's own handlers would end all nodes at once
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

        crashed = True  # unless the watch says otherwise
        try:
            crashed = _watch(manager, stop, settings)
            crash = _crash(settings, workers) if crashed else ""
        finally:
            _end(manager, CRASH_SECONDS if crashed else NOTICE_SECONDS)
    with contextlib.suppress(OSError):  # the terminal may have been closed
        _report(settings, crash)
    return 1 if crashed or (not stop.is_set() and not _saved(settings)) else 0


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


def _launch(program: lp.Program, output_folder: str) -> Any:
    """Launches with Launchpad's own announcements sent nowhere: the view has the terminal."""
    # Launchpad reads the variable that says this when it is imported: before the folder is known.
    launch_local_output_to_files._LOGGING_DIR = output_folder
    # Launchpad's countdown ends with a SIGKILL to this very process; `_end` has a gentler one.
    flags.FLAGS.set_default("lp_termination_notice_secs", -1)
    stdout, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115
    try:
        return lp.launch(
            program,
            launch_type="local_mp",
            local_resources=local_resources(program),
            terminal="output_to_files",
        )
    finally:
        sys.stdout.close()
        sys.stdout = stdout


def _watch(manager: Any, stop: threading.Event, settings: Settings) -> bool:
    """Shows progress until the run is finished; says whether a node failed."""
    failed = threading.Event()
    threading.Thread(target=_wait_for_failure, args=(manager, failed), daemon=True).start()
    deadline = float("inf")
    with view.View(f"{settings.agent} on {settings.env}, {settings.run_dir}") as drawn:
        while time.time() < deadline:
            state = progress.read(settings.path)
            if state is not None:
                drawn.show(state)
            elif stop.is_set():
                return False  # the nodes are still on their way: there is nothing to save
            if state is not None and state["state"] == "finished":
                return False
            if failed.is_set():
                return True
            if stop.is_set():
                with contextlib.suppress(OSError):  # a full disk; then nodes hear it by a signal
                    settings.folder.stop.touch()
                deadline = min(deadline, time.time() + coordinator.SAVE_SECONDS)
            time.sleep(POLL_SECONDS)
    return False


def _wait_for_failure(manager: Any, failed: threading.Event) -> None:
    try:
        manager.wait()
    except RuntimeError:
        failed.set()


def _end(manager: Any, seconds: float) -> None:
    """Asks what still runs to end, and kills what does not in time."""
    children = psutil.Process().children(recursive=True)

    def kill_late() -> None:
        for child in psutil.wait_procs(children, timeout=seconds)[1]:
            child.kill()

    threading.Thread(target=kill_late, daemon=True).start()
    manager.stop_and_wait()


def _crash(settings: Settings, workers: Workers) -> str:
    """What is known of the node that failed first."""
    return _first_words(settings, workers) + _advice_on_space(settings)


def _first_words(settings: Settings, workers: Workers) -> str:
    file = settings.folder.crash
    if file.exists() and (text := file.read_text(errors="replace")):  # empty on a full disk
        return text
    for node, group in workers.items():
        for worker in group:
            if worker.returncode:
                return _end_of_output(settings, node, worker.returncode)
    return "A node's process ended.\n"


def _advice_on_space(settings: Settings) -> str:
    free = shutil.disk_usage(settings.path).free
    if free >= LEAST_FREE_BYTES:
        return ""
    return f"The disk of {settings.path} is full ({free:,} bytes are free): free some, then resume."


def _end_of_output(settings: Settings, node: str, code: int) -> str:
    """How a process ended that could not say so itself, and the last that it printed."""
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    lines = (settings.folder.nodes / node).read_text(errors="replace").splitlines()
    text = "".join(f"  {line}\n" for line in lines[-OUTPUT_LINES:])
    return f"The process of node {node} {how}. It had printed:\n{text or '  nothing'}"


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
