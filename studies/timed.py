"""Commands of the project that are given so many minutes."""

import contextlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence

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
