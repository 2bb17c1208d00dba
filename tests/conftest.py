"""Prepares every test: variables that TensorFlow's import reads, one seed, the shared fixtures."""

import atexit
import faulthandler
import gc
import itertools
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import thread

import ale_py  # noqa: F401 - a process that loads it twice aborts, and tests restore sys.modules
import hypothesis
import numpy as np
import pytest
from absl import flags

from tests.commands import Commands
from tests.patience import PATIENCE

# TensorFlow reports CPU features and absent GPUs on stderr, which buries a failure's own output.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Values and tolerances are a processor's: a GPU computes in TensorFloat-32.
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

# Hypothesis may keep what it finds out about Unicode and constants, but not in the tree.
os.environ.setdefault(
    "HYPOTHESIS_STORAGE_DIRECTORY", f"{tempfile.gettempdir()}/hypothesis-{os.getuid()}"
)

# No seed of the day, no file of examples and no clock: whoever runs a test draws the same.
hypothesis.settings.register_profile(
    "alike",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=150,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
)
hypothesis.settings.load_profile("alike")

# Launchpad asks flags that a command would have parsed.
flags.FLAGS.mark_as_parsed()

# A fork that a test lets die is told of by its parent, not by a page about all its threads.
os.register_at_fork(after_in_child=faulthandler.disable)

_PID = os.getpid()


def _collect_again() -> None:
    """Lets this process collect again; a fork that forks keeps what it was born with."""
    if os.getpid() == _PID:
        gc.unfreeze()


# As `tests.forks.garbage_is_kept`, of which the project's own code does not know: it tries
# environments and measures them in forks, and a fork that collects what this process has dropped
# may wait for ever for a dataset's threads.
os.register_at_fork(before=gc.freeze, after_in_parent=_collect_again)

# Under nohup this signal is ignored, by what tests start too, and some send it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Of the terminal, real or not, that programs draw in and wrap their helps for.
_TERMINALS = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Has views and helps be the same in any terminal, once pytest has looked at its own."""
    for name in _TERMINALS:
        os.environ.pop(name, None)
    os.environ["TERM"] = "xterm-256color"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs go first: what others compute fills their waits, and none is begun at the end."""
    items.sort(key=lambda item: item.get_closest_marker("launchpad") is None)


_exit_status: list[int] = []


def pytest_sessionfinish(exitstatus: int) -> None:
    """Keeps the exit status, which pytest tells here last."""
    _exit_status.append(int(exitstatus))


@atexit.register
def _end() -> None:
    """Ends the process when all else that is to be done at its end is: registered first, done last.

    Tests leave datasets behind whose threads still read. One that came back from TensorFlow while
    the interpreter is taken down would abort the process, after all tests have passed.
    """
    if _exit_status:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_exit_status[-1])


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    """Begins each test at the same random state, whatever ran before it.

    Without it, a network built by a test has other weights in every run, and once in some hundred
    runs all of a small layer's units are switched off.
    """
    random.seed(0)
    np.random.seed(0)
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.random.set_seed(0)


@pytest.fixture(autouse=True)
def ctrl_c_is_raised() -> None:
    """Has each test hear of Ctrl-C as a command does, whatever ran before it.

    A shell's background job ignores it, and Launchpad handles it from the first of its nodes on.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    """Fails a test that leaves a thread behind for which the tests' process would wait for ever.

    Threads of a pool are told to end when the interpreter is.
    """
    before = set(threading.enumerate())
    yield
    pools = tuple(thread._threads_queues)
    for left in set(threading.enumerate()) - before:
        if not left.daemon and left not in pools:
            left.join(timeout=PATIENCE)
            assert not left.is_alive(), f"{left} is still there."


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    """Runs commands of the tree as a user gives them."""
    with Commands() as found:
        yield found


_numbers = itertools.count()


@pytest.fixture
def write_module(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a module of a user's and returns its name, which no other has."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str) -> str:
        name = f"users_own_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write
