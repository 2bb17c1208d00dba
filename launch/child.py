"""A run of `launch.train` in a process of its own, for a caller in Python.

So no process of a run is forked from one in which TensorFlow has run, a script needs no guard, and
the run's folder records flags that would do the same.

The run is in a session of its own: a terminal's Ctrl-C reaches the caller alone, who asks the run
to end once. It ends in order when the caller's process is gone, too.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence

from launch.local.caller import CALLER, REFUSED
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError

_CRASH_LINES = 30


class RunCrashedError(RuntimeError):
    """A run that has ended by itself, and not by its limit. The message names its folder."""


class Child:
    """Starts `python -m launch.train`; what it prints goes to standard output, as Python has it.

    Args:
      flags: of the command.
      folder: of the run.
      is_watched: whether somebody waits for it. Then a terminal shows the live view, else lines;
        and a refusal, which is raised where it is waited for, is printed otherwise.

    Raises:
      OSError, ValueError: it cannot be started.
    """

    def __init__(self, flags: Sequence[str], folder: RunFolder, *, is_watched: bool) -> None:
        self._flags, self._folder, self._is_watched = flags, folder, is_watched
        self._process: subprocess.Popen[str] | None = None
        self._error: Exception | None = None
        self._told = ""  # why it refuses, or ended
        self._is_asked = False  # to end
        self._begun, self._ended = threading.Event(), threading.Event()
        # The kernel takes the thread that starts a process for its parent: so one that stays.
        threading.Thread(target=self._follow, daemon=True).start()
        self._begun.wait()
        self._raise()

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return not self._ended.is_set()

    def ask_to_end(self) -> None:
        """Asks for its end in order, even before it has begun."""
        self._is_asked = True
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def wait(self) -> None:
        """Waits for its end.

        Raises:
          SettingsError: it has refused what it was told.
          RunCrashedError: it has ended otherwise than it should.
        """
        self._ended.wait()
        self._raise()
        assert self._process is not None
        code = self._process.returncode
        if code == REFUSED:
            raise SettingsError(self._told or "The run was refused; it has printed why.")
        if code and not self._is_asked:
            head = [f"The run in {self._folder.path} ended with code {code}."]
            head += self._told.splitlines()[:_CRASH_LINES]
            raise RunCrashedError("\n".join(head))

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _follow(self) -> None:
        try:
            self._run()
        except Exception as error:  # for who asked for it
            self._error = error
        finally:
            self._begun.set()
            self._ended.set()

    def _run(self) -> None:
        draws = self._is_watched and _is_terminal()
        with tempfile.TemporaryFile() as told:
            caller = f"{os.getpid()} {told.fileno()}"
            path = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
            lines = {} if draws else {"FORCE_COLOR": ""}  # a notebook's kernel asks for colours
            self._process = subprocess.Popen(
                [sys.executable, "-m", "launch.train", *self._flags],
                env={**os.environ, **lines, "PYTHONPATH": path, CALLER: caller},
                pass_fds=[told.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=sys.stdout if draws else subprocess.PIPE,
                stderr=None if draws else subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            self._begun.set()
            for line in self._process.stdout or ():
                _show(line)
            self._process.wait()
            told.seek(0)
            self._told = told.read().decode()
        if self._process.returncode == REFUSED and not self._is_watched:
            _show(f"{self._told}\n")


def _is_terminal() -> bool:
    """Whether standard output is a terminal by itself: a notebook's may have one behind it."""
    try:
        return sys.stdout.isatty() and os.isatty(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):  # there is none
        return False


def _show(line: str) -> None:
    """Prints a line where `print` would; nobody may listen any more."""
    with contextlib.suppress(OSError, ValueError):
        print(line, end="", flush=True)
