"""Commands of the project that are given so many minutes."""

import contextlib
import pathlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence

from run_folder import checkpoints
from run_folder.layout import RunFolder

LEAST_MINUTES = 1.0  # for which a start is worth its while
END_SECONDS = 120.0  # within which whatever was asked to end has ended


def run(arguments: Sequence[str], minutes: float | None, before: Sequence[str] = ()) -> None:
    """Runs `python -m` to its end, or has it end in order after so many minutes.

    Args:
      arguments: of `python -m`.
      minutes: None for as long as it takes.
      before: what stands before the command, such as `taskset -c 0`.

    Raises:
      subprocess.CalledProcessError: it failed.
      subprocess.TimeoutExpired: it was asked to end, and did not.
    """
    command = (*before, sys.executable, "-m", *arguments)
    print(shlex.join(["python", "-m", *arguments]), flush=True)
    with subprocess.Popen(command) as running:
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = running.wait(None if minutes is None else 60 * minutes)
        if code is None:
            running.send_signal(signal.SIGTERM)
            code = running.wait(END_SECONDS)
    if code:
        raise subprocess.CalledProcessError(code, command)


def train(
    path: pathlib.Path, flags: Sequence[str], minutes: float, before: Sequence[str] = ()
) -> None:
    """Trains a run for so many minutes in all; goes on with one that was cut short.

    Args:
      path: its folder.
      flags: of `launch.train`, as it is begun.
      minutes: that it takes in all; those of a launch that was killed count up to its last save.
      before: as for `run`.

    Raises:
      CheckpointError: its manifest is damaged.
      subprocess.CalledProcessError, subprocess.TimeoutExpired: as `run`.
    """
    how = flags
    if RunFolder(path).config.exists():
        how = ("--resume",)
        saved = checkpoints.parse(RunFolder(path).checkpoints)
        minutes -= saved.walltime / 60 if saved is not None else 0
    if minutes >= LEAST_MINUTES:
        run(["launch.train", f"--run_dir={path}", *how], minutes, before)
