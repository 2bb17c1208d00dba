"""Each environment is made, reset and stepped once before a run begins, in a child process.

What somebody's environment does to its process, or that it never answers, is then a sentence, and
nothing of it stays in the process that all others are forked from.
"""

import importlib
import multiprocessing
import signal
from multiprocessing import connection

from environments import kinds, suites
from environments.kinds import Description, Task
from launch.local import processes

SECONDS = 60.0
_SECONDS_TO_END = 5.0  # of a child that has answered


def try_each(env: str, seconds: float | None) -> None:
    """Tries every environment that is made one at a time, for its kind to know of it.

    One that has not answered after so many seconds, by default `SECONDS`, is given up.
    """
    try:
        suites.check_names(env)
    except ValueError:  # which is said where names are checked
        return
    for task in suites.parse(env):
        if not task.is_made_singly:
            continue
        with processes.ended_with():
            found = _tried(task, seconds or SECONDS)
        kinds.of(task).remember(task.name, found)
        if isinstance(found, Description) and (module := suites.module_of(task.name)):
            importlib.import_module(module)  # once for all processes


def _tried(task: Task, seconds: float) -> Description | str:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_answer, args=(task, theirs))
    child.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            return (
                f"{task.name!r} was not made, reset and stepped once within {seconds:g} seconds; "
                "if it takes longer, say so by --hang_seconds."
            )
        found: Description | str = ours.recv()
        child.join(_SECONDS_TO_END)
        return found
    except EOFError:
        child.join()
        return f"{task.name!r} ended its process, with code {child.exitcode}, when it was tried."
    finally:
        child.kill()
        child.join()


def _answer(task: Task, launcher: connection.Connection) -> None:
    processes.end_with_parent(signal.SIGKILL)  # else what hangs here outlives a kill of it
    describe = kinds.of(task).describe
    assert describe is not None
    try:
        suites.check(task.name)
        launcher.send(describe(task.name))
    except ValueError as error:
        launcher.send(str(error))
