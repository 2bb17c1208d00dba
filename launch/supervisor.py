"""Starts a run's processes, shows how it goes, and ends it in order."""

import os
import shlex
import signal
import sys
import threading
import time
from typing import Any

import launchpad as lp
import psutil
from absl import flags
from launchpad.launch.run_locally import launch_local_output_to_files

from launch import checkpoints, coordinator, process, progress
from launch.program import local_resources, make_program
from launch.settings import Settings

SAVE_SECONDS = 10.0  # from a stop to the last save
NOTICE_SECONDS = 4  # from there to the end of every process


def run(settings: Settings, manifest: checkpoints.Manifest | None) -> int:
    """Runs the program of `settings` on this machine.

    Returns:
      The exit code: 0 when the run ended as asked, 1 when a node crashed.
    """
    nodes = settings.path / "nodes"
    nodes.mkdir(parents=True, exist_ok=True)
    (settings.path / "config.json").write_text(settings.to_json())
    for name in (progress.FILE, process.CRASH_FILE, coordinator.STOP_FILE):
        (nodes / name).unlink(missing_ok=True)
    # Launchpad reads the environment variable that says this when it is imported, before the folder is known.
    launch_local_output_to_files._LOGGING_DIR = str(nodes)
    # Launchpad's own countdown ends with a SIGKILL to this very process; `_end` has a gentler one.
    flags.FLAGS.set_default("lp_termination_notice_secs", -1)

    program = make_program(settings, manifest)
    manager = _launch(program)
    stop = _stop_on_signals()
    crashed = _watch(manager, stop, settings)
    _end(manager)
    return _report(settings, crashed, stop)


def _launch(program: lp.Program) -> Any:
    """Launches with Launchpad's own announcements sent nowhere: the view has the terminal."""
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


def _stop_on_signals() -> threading.Event:
    """An event that Ctrl-C or SIGTERM sets, instead of what Launchpad does on them at once."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _watch(manager: Any, stop: threading.Event, settings: Settings) -> bool:
    """Shows progress until the run is finished; says whether a node failed."""
    deadline = None
    failed = threading.Event()
    threading.Thread(target=_wait_for_failure, args=(manager, failed), daemon=True).start()
    with progress.View(f"{settings.agent} on {settings.env}, {settings.run_dir}") as view:
        while not failed.is_set():
            state = progress.read(settings.path)
            if state is not None:
                view.show(state)
                if state["state"] == "finished":
                    return False
            if stop.is_set() and deadline is None:
                (settings.path / "nodes" / coordinator.STOP_FILE).touch()
                deadline = time.time() + SAVE_SECONDS
            if deadline is not None and time.time() > deadline:
                return False
            time.sleep(0.2)
    return True


def _wait_for_failure(manager: Any, failed: threading.Event) -> None:
    try:
        manager.wait()
    except RuntimeError:
        failed.set()


def _end(manager: Any) -> None:
    """Asks what still runs to end, and kills what does not in time."""
    children = psutil.Process().children(recursive=True)

    def kill_late() -> None:
        for child in psutil.wait_procs(children, timeout=NOTICE_SECONDS)[1]:
            child.kill()

    threading.Thread(target=kill_late, daemon=True).start()
    manager.stop_and_wait()


def _report(settings: Settings, crashed: bool, stop: threading.Event) -> int:
    """Says on the terminal how the run ended and what can be done with it; returns the exit code."""
    if crashed:
        crash = settings.path / "nodes" / process.CRASH_FILE
        text = crash.read_text() if crash.exists() else "A node's process was killed.\n"
        print(f"{text}The run has ended. What each node printed is in {crash.parent}.", file=sys.stderr)
    else:
        state = progress.read(settings.path) or {"reason": ""}
        reason = state["reason"] or "stopped before it began"
        if stop.is_set() and state.get("state") != "finished":
            reason = "stopped before the learner had saved"
        print(f"The run has ended: {reason}.")
    _describe_checkpoint(settings)
    return 1 if crashed else 0


def _describe_checkpoint(settings: Settings) -> None:
    manifest = checkpoints.read(settings.path / "checkpoints")
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
        f"Evaluate: python -m launch.evaluate --run_dir={run_dir} --episodes=30"
    )
