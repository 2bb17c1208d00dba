"""What is said of a run when it has ended, and what can be typed next."""

import contextlib
import shlex
import sys

from recurrent_replay import command
from run_folder import checkpoints, progress, resuming
from run_folder.settings import Settings


def report(settings: Settings, crash: str) -> None:
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
    if settings.folder.config.exists():  # or the folder was moved
        _describe_checkpoint(settings)


def saved(settings: Settings) -> str:
    """The manifest of what a run has saved, whatever it says; empty where there is none."""
    with contextlib.suppress(OSError):
        return (settings.folder.checkpoints / checkpoints.MANIFEST).read_text(errors="replace")
    return ""


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
        replay = f"{manifest.replay_items:,} items of replay at update {manifest.replay_step:,}"
    run_dir = shlex.quote(settings.run_dir)
    state = progress.read(settings.path)
    further = resuming.raised_limits(state["limits"], state["counts"]) if state else []
    print(
        f"Saved: the learner at update {manifest.learner_step:,}, {replay}.\n"
        f"Resume:   {command('train')} --run_dir={run_dir} {' '.join(['--resume', *further])}\n"
        f"Evaluate: {command('evaluate')} --run_dir={run_dir} --episodes=30\n"
        f"Report:   {command('report')} --run_dir={run_dir}"
    )
