"""What the members decided: a file each, made once and never changed.

A file is made whole and under its name at once, or not at all: who comes second finds it there. So
it is the lock, one that no dead process can hold. What it says is done afterwards
(`population.adoption`), and done again by whoever finds it not done.
"""

import contextlib
import dataclasses
import errno
import json
import os
import pathlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agents import fields
from agents.fields import required
from agents.requirements import NOT_NEGATIVE, or_none, whole
from population.folder import PopulationFolder, name_of
from run_folder import recorded, whole_files
from run_folder.settings import SettingsError, reading

_COUNTED = whole(0)
# What file systems without hard links say of one.
_LINKLESS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


@dataclasses.dataclass(frozen=True)
class Decision:
    """One decision of a member; its first, number 0, is what it begins with."""

    member: int = required(_COUNTED, "Who decided.")
    number: int = required(_COUNTED, "Of its decisions.")
    time: float = required(NOT_NEGATIVE, "Unix, in seconds.")
    actor_steps: int = required(_COUNTED, "That the member had made.")
    episodes: int = required(_COUNTED, "That it had ended.")
    learner_step: int = required(_COUNTED, "Of its learner, whose weights it had.")
    score: float | None = required(None, "Its own; None where it had none.")
    rival: int | None = required(or_none(_COUNTED), "Whom it looked at; None at the start.")
    rival_score: float | None = required(None, "Likewise.")
    adopted: int | None = required(
        or_none(_COUNTED),
        "The rival's decision whose values it took with the weights; None where it took none.",
    )
    rival_learner_step: int | None = required(
        or_none(_COUNTED), "The update of the rival's learner that it took."
    )
    old: dict[str, Any] = required(None, "Its values until then, by field.")
    new: dict[str, Any] = required(None, "Its values from then on.")

    @property
    def learner_step_after(self) -> int:
        """The update from which the new values hold: an adoption counts as one."""
        return self.learner_step + (self.adopted is not None)


def write(folder: PopulationFolder, decision: Decision) -> bool:
    """Makes the file of a decision; returns whether it was not there.

    Raises:
      SettingsError: it never can be written here: the file system has no hard links.
      OSError: it cannot be written. Nothing is left of it.
    """
    path = _path(folder, decision.member, decision.number)
    path.parent.mkdir(exist_ok=True)
    try:
        with _half_of(path, json.dumps(dataclasses.asdict(decision), indent=2) + "\n") as half:
            _link(half, path)
        whole_files.sync(path.parent)
    except OSError:
        if path.exists():  # who came first may have removed this half, too
            return False
        raise
    halves = path.parent.glob(f".{name_of(decision.member)}-*{whole_files.TEMPORARY}")
    _remove(half for half in halves if _whole_of(half).exists())  # others may be about to be made
    with contextlib.suppress(OSError):  # it was made, and the next one lists it
        list_all(folder)
    return True


def _link(half: pathlib.Path, path: pathlib.Path) -> None:
    """Gives a half its name at once, and to one only."""
    try:
        os.link(half, path)
    except OSError as error:
        if error.errno not in _LINKLESS:
            raise
        raise SettingsError(
            f"{path.parent} must be on a file system that has hard links, by which a decision is "
            f"made once; here making one says: {error.strerror}."
        ) from None


@contextlib.contextmanager
def _half_of(path: pathlib.Path, text: str) -> Iterator[pathlib.Path]:
    """A file that nobody else writes, to be linked or moved to a path; it does not stay."""
    half = path.with_name(f".{path.name}.{uuid.uuid4().hex}{whole_files.TEMPORARY}")
    try:
        with half.open("x") as file:
            file.write(text)
        whole_files.sync(half)
        yield half
    finally:
        half.unlink(missing_ok=True)


def _whole_of(half: pathlib.Path) -> pathlib.Path:
    """What a half was to become."""
    return half.with_name(half.name[1:].removesuffix(whole_files.TEMPORARY)).with_suffix("")


def _remove(halves: Iterable[pathlib.Path]) -> None:
    """Of who was killed while writing."""
    for half in halves:
        half.unlink(missing_ok=True)


def of_member(folder: PopulationFolder, member: int) -> list[Decision]:
    """A member's decisions, in order.

    Raises:
      SettingsError: one is missing or damaged.
    """
    paths = folder.decisions.glob(f"{name_of(member)}-*.json")
    found = [_read(path) for path in sorted(paths, key=lambda path: (len(path.name), path.name))]
    for number, decision in enumerate(found):
        if (decision.member, decision.number) != (member, number):
            raise SettingsError(
                f"{_path(folder, member, number)} is missing or holds another decision: that of "
                f"member {decision.member}, number {decision.number}."
            )
    return found


def every(folder: PopulationFolder, members: int) -> list[Decision]:
    """All decisions, in the order of time."""
    found = [decision for member in range(members) for decision in of_member(folder, member)]
    return sorted(found, key=_when)


def list_all(folder: PopulationFolder) -> None:
    """Writes population.jsonl anew: a line for each decision, in the order of time."""
    found = sorted((_read(path) for path in folder.decisions.glob("*.json")), key=_when)
    with (
        contextlib.suppress(FileNotFoundError),  # another host lists them, and tidied up
        _half_of(folder.listing, _lines(found)) as half,
    ):
        os.replace(half, folder.listing)
    _remove(folder.listing.parent.glob(f".{folder.listing.name}.*{whole_files.TEMPORARY}"))


def _when(decision: Decision) -> tuple[float, int, int]:
    return decision.time, decision.member, decision.number


def _lines(found: Sequence[Decision]) -> str:
    return "".join(json.dumps(dataclasses.asdict(decision)) + "\n" for decision in found)


def _path(folder: PopulationFolder, member: int, number: int) -> pathlib.Path:
    return folder.decisions / f"{name_of(member)}-{number:04}.json"


def _read(path: pathlib.Path) -> Decision:
    with reading(path):
        found = Decision(**recorded.fields(Decision, recorded.read(path)))
        fields.check(found)
    return found
