"""Runs commands in forks of one process: python -m tests.forking [modules to import first]

TensorFlow takes each new interpreter seconds to import. This one imports it, then waits on standard
input for one `tests.commands.Request` a line; each runs in a fork, as `python -m` would run it, and
is answered with an `Outcome`. Nothing may be computed before a fork: threads do not survive it.
"""

import contextlib
import importlib
import json
import os
import pathlib
import runpy
import signal
import sys
import tempfile
import traceback
from typing import NoReturn
from unittest import mock

import matplotlib.pyplot  # noqa: F401
from absl import flags

from agents.popart import agent as popart  # noqa: F401
from benchmarks import local_replay  # noqa: F401
from r2d2 import agent as r2d2  # noqa: F401
from run_folder import resuming  # noqa: F401
from tests.commands import SECONDS, Outcome, Request
from tests.rooms import MAY_IMPORT

# By the time one of these is called, everything that a command was told has been accepted.
_BEGINNINGS = (
    "agents.single_process.InProcess",
    "benchmarks.study.read",
    "benchmarks.study.read_lines",
    "launch.hosts.job.read",
    "os.getloadavg",  # by a benchmark's report
    "run_folder.settings.load",
    "matplotlib.pyplot.subplots",
    "pathlib.Path.open",
    "run_folder.log_reader.read",
)
_BEGINNINGS_OF = {
    "launch.population": ("launch.acceptance.check", "population.settings.make_folder"),
    # With no one else's flags.
    "launch.train": ("launch.gcp.launcher.check_access", "launch.starting.check_shares"),
    "benchmarks.control": ("subprocess.Popen",),
    "benchmarks.population_storm": ("subprocess.Popen",),
    "benchmarks.populations": ("subprocess.Popen",),
    "benchmarks.storm": ("subprocess.Popen",),
}


class _Began(SystemExit):
    """A command would begin its work."""


def _begin(*_: object, **__: object) -> NoReturn:
    raise _Began(0)


def _execute(request: Request) -> tuple[int, bool]:
    """The exit code of a command that is this process, and whether it would have begun."""
    sys.argv = [request.module, *request.arguments]
    sys.path[:0] = request.path
    with contextlib.ExitStack() as stack:
        beginnings = (*_BEGINNINGS, *_BEGINNINGS_OF.get(request.module, ()))
        for name in beginnings if request.stop else ():
            stack.enter_context(mock.patch(name, _begin))
        try:
            runpy.run_module(request.module, run_name="__main__", alter_sys=True)
        except SystemExit as exit_:
            code = exit_.code or 0
            return code if isinstance(code, int) else 1, isinstance(exit_, _Began)
        except BaseException:
            traceback.print_exc()
            return 1, False
    return 0, False


def _defined(module: str) -> list[str]:
    """The flags of a command, and of the modules of the tree that it imports."""
    file = module.replace(".", os.sep) + ".py"  # absl calls the module that runs by its file
    return sorted(
        flag.name
        for name, found in flags.FLAGS.flags_by_module_dict().items()
        if name.split(".")[0] in MAY_IMPORT or name.endswith(file)
        for flag in found
    )


def _child(request: Request, folder: pathlib.Path) -> NoReturn:
    """Runs a command; what it prints and how it ended is then in the folder."""
    signal.alarm(SECONDS)
    if request.stop:
        os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)  # what `_exit` leaves goes with it
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), descriptor)
    code, began = _execute(request)
    sys.stdout.flush()
    sys.stderr.flush()
    (folder / "began").write_text(json.dumps([began, _defined(request.module)]))
    os._exit(code)


def _fork(request: Request) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if not (pid := os.fork()):
            _child(request, folder)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out, err = ((folder / name).read_text() for name in ("out", "err"))
        began, defined = (
            json.loads((folder / "began").read_text())
            if (folder / "began").exists()
            else (False, [])
        )
        return Outcome(code, out, err, began, defined)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(_fork(Request(**json.loads(line)))), flush=True)
