"""Each environment is made, reset and stepped once before a run begins, in a child process.

What somebody's environment does to its process, or that it never answers, is then a sentence, and
nothing of it stays in the process that all others are forked from.
"""

import contextlib
import functools
import importlib
import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any

from environments import gym, suites
from launch.local import processes

SECONDS = 60.0
_SECONDS_TO_END = 5.0  # of a child that has answered


def try_each(env: str, seconds: float | None) -> None:
    """Tries every environment that is made one at a time, for `environments.gym` to know of it.

    One that has not answered after so many seconds, by default `SECONDS`, is given up.
    """
    try:
        suites.check_names(env)
    except ValueError:  # which is said where names are checked
        return
    for task in filter(suites.made_singly, suites.tasks(env)):
        found: gym.Description | str
        try:
            (found,) = answers([functools.partial(_described, task)], seconds or SECONDS)
        except NoAnswerError as error:
            found = f"{task!r} {error}"
        gym.remember(task, found)
        if isinstance(found, gym.Description) and (module := suites.module_of(task)):
            importlib.import_module(module)  # once for all processes


class NoAnswerError(Exception):
    """A fork has given none. The text says why, as a sentence of which the fork is the subject."""


def answers(questions: Sequence[Callable[[], Any]], seconds: float) -> list[Any]:
    """What functions return, all called at once, each in a fork of its own.

    Whatever a fork starts ends with it at the latest.

    Raises:
      NoAnswerError: a fork has ended, or has not answered after so many seconds.
    """
    found: dict[int, Any] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(processes.ended_with())
        asked: dict[Any, tuple[int, BaseProcess]] = {}
        for index, question in enumerate(questions):
            ours, theirs = multiprocessing.Pipe(duplex=False)
            fork: BaseProcess = multiprocessing.get_context("fork").Process(
                target=_answer, args=(question, theirs)
            )
            fork.start()
            stack.callback(_end, fork)
            theirs.close()
            asked[ours] = index, fork
        until = time.monotonic() + seconds
        while asked:
            ready = connection.wait(list(asked), max(until - time.monotonic(), 0.0))
            if not ready:
                raise NoAnswerError(
                    f"was not made, reset and stepped once within {seconds:g} seconds; if it "
                    "takes longer, say so by --hang_seconds."
                )
            for each in ready:
                index, fork = asked.pop(each)
                found[index] = _heard(fork, each)
    return [found[index] for index in range(len(questions))]


def _heard(fork: BaseProcess, ours: Any) -> Any:
    try:
        answer = ours.recv()
        fork.join(_SECONDS_TO_END)
        return answer
    except EOFError:
        fork.join()
        raise NoAnswerError(
            f"ended its process, with code {fork.exitcode}, when it was tried."
        ) from None


def _end(fork: BaseProcess) -> None:
    fork.kill()
    fork.join()


def _answer(question: Callable[[], Any], asker: connection.Connection) -> None:
    asker.send(question())


def _described(task: str) -> gym.Description | str:
    try:
        suites.check(task)
        return gym.describe(task)
    except ValueError as error:
        return str(error)
