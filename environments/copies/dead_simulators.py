"""Simulators that die: how they are reported, and when their task is given up.

A simulator is the code or process that plays one copy of an environment. One that dies is replaced,
its episode is lost, and `infos["lost"]` counts it.
"""

import traceback
from collections import Counter
from collections.abc import Callable, Hashable

from absl import logging

MAX_DEATHS = 3  # of one copy's simulators, without a step in between
FIRST_EPISODES = 20  # of a task in one process; where all are lost, none will end


class CannotPlayError(RuntimeError):
    """A task cannot be played here.

    Attributes:
      task: its name, where one environment plays several.
    """

    task: str | None = None


on_wait: Callable[[], None] = lambda: None  # noqa: E731
"""A hook, called each second of waiting for a simulator, since one may load for a minute. The
process that plays may replace it."""

on_new_kind: Callable[[str, str], None] = lambda sentence, kind: None  # noqa: E731
"""A hook, called at the first death of each kind. The process that plays may replace it."""

_told = set[str]()  # kinds: an exception's type and place


def first_line(error: BaseException) -> str:
    """An exception's type and the first line of its message, if it has one."""
    kind, words = type(error).__name__, str(error).strip()
    return f"{kind}: {words.splitlines()[0]}" if words else f"{kind}."


def raised(error: BaseException) -> str:
    """Continues a sentence about an exception: its type, message and place."""
    return f"raised {first_line(error).removesuffix('.')} ({_place(error)})"


class Deaths:
    """Counts the simulators of one task that died.

    Args:
      what: a plural that names them.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._in_a_row = Counter[Hashable]()
        self._of_the_first = 0
        self._has_ended = False

    def step(self, copy: Hashable, *, ended: bool) -> None:
        """A copy's simulator made a step, with which its episode ended or did not."""
        self._in_a_row[copy] = 0
        self._has_ended |= ended

    def add(self, copy: Hashable, said: str, cause: BaseException) -> None:
        """A copy's simulator died, and its episode is lost with it.

        Args:
          copy: the copy whose simulator died.
          said: a clause about the death.
          cause: the exception.

        Raises:
          CannotPlayError: it was the copy's third in a row, or of the task's first episodes all
            were lost.
        """
        self._tell(said, cause)
        self._in_a_row[copy] += 1
        self._of_the_first += not self._has_ended
        if self._in_a_row[copy] == MAX_DEATHS:
            lost = f"{MAX_DEATHS} {self._what} in a row were lost before a step was made"
        elif not self._has_ended and self._of_the_first == FIRST_EPISODES:
            lost = f"The first {FIRST_EPISODES} episodes were all lost, with {self._what}"
        else:
            return
        raise CannotPlayError(f"{lost}. The last one {said}") from cause

    def _tell(self, said: str, cause: BaseException) -> None:
        """Logs a death, the first of its kind with the traceback."""
        kind = f"{type(cause).__name__} {_place(cause)}"
        is_new = kind not in _told
        _told.add(kind)
        logging.warning("One of the %s %s", self._what, said, exc_info=cause if is_new else None)
        if is_new:
            on_new_kind(
                f"One of the {self._what} {said}. It is replaced and its episode lost; others that "
                "are lost so are only counted.",
                kind,
            )


def _place(error: BaseException) -> str:
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{last.filename}:{last.lineno}, in {last.name}"
