"""Starts commands as forks of one process: python -m tests.launch.starter

A whole run spends a third of its time in a test on importing TensorFlow. This process has imported
all that a run imports; each line of its standard input, what a `python -m` is told in JSON, becomes
one, and is answered with that one's process. How it ended is then in a file.
"""

import json
import os
import runpy
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

from launch import starting  # noqa: F401
from launch.local import supervisor  # noqa: F401
from launch.members import loop  # noqa: F401


def _run(request: Mapping[str, Any]) -> NoReturn:
    """Is a command."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    own = os.environ.get("PYTHONPATH", "")
    sys.path[:1] = [request["folder"], *filter(None, own.split(os.pathsep))]
    tempfile.tempdir = None  # or it stays what it was for the first who asked
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(request[name], os.O_CREAT | os.O_WRONLY | os.O_APPEND), descriptor)
    sys.argv = ["", *request["arguments"]]
    code: Any = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _start(request: Mapping[str, Any]) -> int:
    """Starts a command below a process that waits for it; returns the command's process."""
    told, tells = os.pipe()
    if not os.fork():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if not (pid := os.fork()):
            _run(request)
        os.write(tells, str(pid).encode())
        os.close(tells)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with open(f"{request['code']}.new", "w") as file:
            file.write(str(code))
        os.replace(f"{request['code']}.new", request["code"])
        os._exit(0)
    os.close(tells)
    pid = int(os.read(told, 32))
    os.close(told)
    return pid


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that wait need not be waited for
    for line in sys.stdin:
        print(_start(json.loads(line)), flush=True)
