"""Starts commands as forks of one process: python -m tests.forking [modules to import first]

TensorFlow takes each new interpreter seconds to import. This one imports it, then waits on standard
input for one `tests.commands.Request` a line; each becomes a fork that runs as `python -m` would,
and is answered with that fork's process. Nothing may be computed here: threads do not survive a
fork.
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
from environments import kinds
from r2d2 import agent as r2d2  # noqa: F401
from run_folder import resuming  # noqa: F401
from tests.commands import Request
from tests.rooms import MAY_IMPORT

for word in kinds.WORDS:
    kinds.named(word)

# By the time one of these is called, everything that a command was told has been accepted.
_BEGINNINGS = (
    "agents.in_process.InProcess",
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


def _child(request: Request) -> NoReturn:
    """Runs a command; its output, and whether it began, is then in the request's folder."""
    output = pathlib.Path(request.output)
    os.setsid()
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    tempfile.tempdir = None  # or it stays what it was for the first who asked
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(output / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND), descriptor)
    code, began = _execute(request)
    sys.stdout.flush()
    sys.stderr.flush()
    (output / "end").write_text(json.dumps([began, _defined(request.module)]))
    os._exit(code)


def _start(request: Request) -> int:
    """Starts a command below a process that waits for its exit code; returns its own process."""
    told, tells = os.pipe()
    if not os.fork():
        os.close(told)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if not (pid := os.fork()):
            os.close(tells)
            _child(request)
        os.write(tells, str(pid).encode())
        os.close(tells)
        code = pathlib.Path(request.output, "code")
        code.with_suffix(".new").write_text(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
        code.with_suffix(".new").rename(code)
        os._exit(0)
    os.close(tells)
    with os.fdopen(told) as said:
        return int(said.read())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that wait need not be waited for
    for line in sys.stdin:
        print(_start(Request(**json.loads(line))), flush=True)
