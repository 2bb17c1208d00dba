"""The kinds of environments: what the word before the colon of a name stands for.

Each kind is a record in `KINDS` of the module that makes its environments. That module is imported
when a name asks for it, so that a run of Atari imports nothing of DeepMind Lab.
"""

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gymnasium import spaces
from gymnasium.vector import VectorEnv

OWN = "own"
"""A kind that no word names: what a user's own module makes."""

_MODULES = {  # of the kinds, `KINDS`, by the words that these have in it
    **dict.fromkeys(("catch", "memory"), "environments.small_tasks"),
    "atari": "environments.atari",
    "dmlab": "environments.dmlab.environment",
    **dict.fromkeys(("control", "control-pixels", "rwrl"), "environments.control.environment"),
    **dict.fromkeys(("gym", OWN), "environments.gym"),
}
WORDS = tuple(word for word in _MODULES if word != OWN)
"""The words that begin a name. Any other one is a module of a user's own."""


class Task(NamedTuple):
    """One environment's name, parsed."""

    name: str  # the whole, for example `atari:pong`
    word: str  # the part before the first colon
    rest: str  # the part after it, or nothing

    @property
    def kind(self) -> str:
        """`atari`, `dmlab`, `gym`, ...; `own` for a user's."""
        return self.word if self.word in WORDS else OWN

    @property
    def is_made_singly(self) -> bool:
        """True where copies are made one at a time, by `environments.gym`."""
        return of(self).describe is not None


class Options(NamedTuple):
    """How environments are made, where their kind has a choice."""

    full_action_space: bool = True  # as for `suites.make_each`
    full_rendering: bool = False  # the same
    drawing: bool = False  # whether `render()` will be called


class Description(NamedTuple):
    """An environment that was made and tried."""

    observations: spaces.Space  # of one copy: a Box, or a Dict of them
    actions: spaces.Space  # of one copy
    frames_per_second: int  # its steps a second, for people
    draws: bool  # whether it can draw itself, as an array of pixels


Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of environment.

    Attributes:
      form: of its names, for whoever has mistyped one.
      make: (task, number of copies, options) -> the copies.
      tasks: the known ones, by what follows the colon.
      knows: whether a task may exist; None asks `tasks`.
      advice: ends a sentence about a task that does not exist; None says what is near.
      check: raises ValueError, a sentence, for a task that cannot be made here.
      check_drawing: the same for one that cannot be drawn here.
      frames_per_step: for which an action is repeated.
      is_continuous: whether actions are vectors.
      images: the shapes of the images that are seen, [H, W] or [H, W, C].
      describe: the name of an environment -> what it is like, found out by making it; None where
        copies are not made one at a time. It raises ValueError where it cannot be made.
      remember: tells `describe` what another process has found, a description or a sentence.
    """

    form: str
    make: Callable[[Task, int, Options], VectorEnv]
    tasks: Callable[[], Sequence[str]] = dataclasses.field(default=lambda: ())
    knows: Callable[[Task], bool] | None = None
    advice: Callable[[Task], str] | None = None
    check: Callable[[Task], None] = dataclasses.field(default=lambda task: None)
    check_drawing: Callable[[Task], None] = dataclasses.field(default=lambda task: None)
    frames_per_step: int = 1
    is_continuous: Callable[[Task], bool] = dataclasses.field(default=lambda task: False)
    images: Callable[[Task], list[Shape]] = dataclasses.field(default=lambda task: [])
    describe: Callable[[str], Description] | None = None
    remember: Callable[[str, Description | str], None] = dataclasses.field(
        default=lambda name, found: None
    )


def named(word: str) -> Kind:
    """The kind of one of `WORDS`, or `own`."""
    found: Kind = importlib.import_module(_MODULES[word]).KINDS[word]
    return found


def of(task: Task) -> Kind:
    """The kind of a task."""
    return named(task.kind)
