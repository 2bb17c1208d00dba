"""Decisions of members, each in a file that is made once and never changed.

A file appears whole and under its name at once, or not at all, and whoever comes second finds it
there. So it is a lock that no dead process can hold. What it says is done afterwards
(`population.adoption`), and done again by whoever finds it not done.
"""

import contextlib
import dataclasses
import errno
import json
import math
import os
import pathlib
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from agents import fields
from agents.fields import required
from agents.requirements import NOT_NEGATIVE, or_none, whole
from environments import suites
from population import adoption, rule, scores
from population.adoption import AdoptionError
from population.folder import PopulationFolder, name_of
from population.settings import Population
from run_folder import building, checkpoints, disk, texts
from run_folder.checkpoints import Manifest
from run_folder.texts import SettingsError, reading

LABEL = "values"  # of the log in which a member says which values hold, and from which step on
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
    ancestor: int = required(
        _COUNTED, "The member that began with the weights from which its own descend from then on."
    )
    old: dict[str, Any] = required(None, "Its values until then, by field.")
    new: dict[str, Any] = required(None, "Its values from then on.")

    @property
    def learner_step_after(self) -> int:
        """The update from which the new values hold: an adoption counts as one."""
        return self.learner_step + (self.adopted is not None)


def write(folder: PopulationFolder, decision: Decision) -> bool:
    """Makes the file of a decision; returns False where there is one already.

    Raises:
      SettingsError: the file system has no hard links, so no decision can be made here.
      OSError: the file cannot be written. Nothing is left of it.
    """
    path = _path(folder, decision.member, decision.number)
    path.parent.mkdir(exist_ok=True)
    half = path.with_name(f".{path.name}.{uuid.uuid4().hex}{disk.TEMPORARY}")
    try:
        half.write_text(json.dumps(dataclasses.asdict(decision), indent=2) + "\n")
        disk.sync(half)
        os.link(half, path)  # which gives it its name at once, and to one only
        disk.sync(path.parent)
    except OSError as error:
        if path.exists():
            return False
        if error.errno not in _LINKLESS:
            raise
        raise SettingsError(
            f"{path.parent} must be on a file system that has hard links, by which a decision is "
            f"made once; here making one says: {error.strerror}."
        ) from None
    finally:
        half.unlink(missing_ok=True)
    list_all(folder)
    return True


def list_all(folder: PopulationFolder) -> None:
    """Writes population.jsonl anew: a line for each decision, in the order of time."""
    made = in_order(map(_read, folder.decisions.glob("*.json")))
    lines = (json.dumps(dataclasses.asdict(decision)) + "\n" for decision in made)
    with contextlib.suppress(OSError):  # another host lists them now, or the next decision will
        disk.write(folder.listing, "".join(lines))


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


def checked(folder: PopulationFolder, member: int, population: Population) -> list[Decision]:
    """A member's decisions, in order, each of which is one of this population's.

    Raises:
      SettingsError: one is missing, damaged, or another population's.
    """
    made = of_member(folder, member)
    for decision in made:
        try:
            population.check(decision.new)
            others: dict[str, int | None] = dict(ancestor=decision.ancestor)
            if decision.number or decision.adopted is not None:
                others["rival"] = decision.rival
            for name, other in others.items():
                if other not in range(population.members):
                    raise ValueError(
                        f"its {name} must be from 0 to {population.members - 1}, got {other}."
                    )
        except ValueError as error:
            raise SettingsError(
                f"Decision {decision.number} of member {name_of(member)} in {folder.decisions} is "
                f"none of this population's: {error}"
            ) from None
    return made


def since_adoption(made: Iterable[Decision]) -> int:
    """Actor steps of a member since which it has had the weights that it has."""
    return max((each.actor_steps for each in made if each.adopted is not None), default=0)


def in_order(made: Iterable[Decision]) -> list[Decision]:
    """Decisions of several members, in the order of time."""
    return sorted(made, key=lambda each: (each.time, each.member, each.number))


def _path(folder: PopulationFolder, member: int, number: int) -> pathlib.Path:
    return folder.decisions / f"{name_of(member)}-{number:04}.json"


def _read(path: pathlib.Path) -> Decision:
    with reading(path):
        found = Decision(**texts.fields_of(Decision, texts.read_json(path)))
        fields.check(found)
    return found


@dataclasses.dataclass
class Member:
    """A member between its turns."""

    decision: Decision  # the newest
    manifest: Manifest | None  # of the newest checkpoint; None before the first
    score: float  # of its weights; NaN where there is none
    failures: int = 0  # turns in a row that ended by an error
    left_out: str = ""  # why it has no more turns; empty while it has

    @property
    def actor_steps(self) -> int:
        """Actor steps in its newest checkpoint."""
        return self.manifest.actor_steps if self.manifest else 0


class State:
    """A population's members between their turns, read from its folder.

    Args:
      population: its settings.
      folder: its folder.
    """

    def __init__(self, population: Population, folder: PopulationFolder) -> None:
        self._population = population
        self._folder = folder
        self._tasks = suites.tasks(population.env)

    def begin(self, member: int) -> Member:
        """A member as it is found. A decision of its that was not carried out is carried out.

        Raises:
          SettingsError: a file is damaged, or the learner that it decided to take is gone.
          OSError: the folder cannot be written.
        """
        self._carry_out(self._made(member)[-1])
        return self.look(member)

    def look(self, member: int) -> Member:
        """A member as it is.

        Raises:
          SettingsError: a file is damaged.
        """
        made, run = self._made(member), self._folder.member(member)
        score = scores.score(run, self._tasks, since_adoption(made))
        return Member(made[-1], checkpoints.parse(run.checkpoints), score)

    def _made(self, member: int) -> list[Decision]:
        """A member's decisions; its first is made here, where nobody has trained it yet."""
        made = checked(self._folder, member, self._population)
        if not made:
            write(self._folder, _decision(member, 0, self._population.draw(member)))
            made = checked(self._folder, member, self._population)
        return made

    def decide(self, member: int, *, has_failed: bool = False) -> Decision:
        """Makes and carries out a decision of a member that has saved something and does not run.

        Args:
          member: who.
          has_failed: whether its weights lead nowhere, so that any score beats its own.

        Raises:
          SettingsError: a file is damaged, or what was decided cannot be done; `begin` does it.
          OSError: the folder cannot be written; nothing is decided.
        """
        everyone = [self.look(other) for other in range(self._population.members)]
        found = [other.score for other in everyone]
        if has_failed:
            found[member] = math.nan
        decision = self._decide(member, everyone, found, must_adopt=has_failed)
        if not write(self._folder, decision):  # another process came first
            decision = self._made(member)[-1]
        try:
            self._carry_out(decision)
        except OSError as error:
            raise SettingsError(
                f"Member {name_of(member)} has decided, but {error.filename or 'a file'} cannot be "
                f"written: {error.strerror}. With --resume, it does what it decided."
            ) from None
        return decision

    def _decide(
        self, member: int, everyone: list[Member], found: list[float], *, must_adopt: bool
    ) -> Decision:
        population, own = self._population, everyone[member]
        assert own.manifest is not None
        number, run = own.decision.number + 1, self._folder.member(member)
        while True:
            verdict = rule.decide(
                population,
                member,
                number,
                found,
                [other.decision.new for other in everyone],
                lambda values: self._takes(member, own.decision.new, values),
                must_adopt=must_adopt,
            )
            made = _decision(
                member,
                number,
                verdict.values,
                actor_steps=own.manifest.actor_steps,
                episodes=own.manifest.episodes,
                learner_step=own.manifest.learner_step,
                score=_or_none(found[member]),
                rival=verdict.rival,
                rival_score=_or_none(found[verdict.rival]),
                ancestor=own.decision.ancestor,
                old=own.decision.new,
            )
            if not verdict.adopts:
                return made
            rival, step = self._folder.member(verdict.rival), own.manifest.learner_step + 1
            try:
                taken = adoption.stage(rival, run, population.agent_name, step)
            except AdoptionError:  # it has nothing that could be taken
                found[verdict.rival] = math.nan
                continue
            return dataclasses.replace(
                made,
                # Episodes until then are none of the weights that it takes.
                actor_steps=max(made.actor_steps, scores.last_logged(run)),
                adopted=everyone[verdict.rival].decision.number,
                ancestor=everyone[verdict.rival].decision.ancestor,
                rival_learner_step=taken,
            )

    def _takes(self, member: int, own: dict[str, Any], values: Mapping[str, Any]) -> bool:
        """Tells whether a member's run could go on with these values and with its replay."""
        population = self._population
        try:
            before, after = (
                building.make_agent(
                    population.run_of(self._folder, member, each), population.agent_name
                )
                for each in (own, values)
            )
        except ValueError:
            return False
        return before.tables == after.tables

    def _carry_out(self, decision: Decision) -> None:
        run, agent = self._folder.member(decision.member), self._population.agent_name
        if decision.adopted is not None:
            adoption.publish(run, agent, decision.learner_step_after, decision.actor_steps)
        run.logs.mkdir(parents=True, exist_ok=True)
        disk.write(run.log(LABEL), _table(of_member(self._folder, decision.member)))


def _decision(member: int, number: int, new: dict[str, Any], **other: Any) -> Decision:
    """A decision that is made now; without others, that a member begins with."""
    counted = dict(actor_steps=0, episodes=0, learner_step=0, ancestor=member, old={})
    undefined = dict.fromkeys(("score", "rival", "rival_score", "adopted", "rival_learner_step"))
    now = time.time()  # noqa: TID251 (for people)
    values: dict[str, Any] = {**counted, **undefined, **other}
    return Decision(member=member, number=number, time=now, new=new, **values)


def _or_none(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _table(made: list[Decision]) -> str:
    names = list(made[0].new)
    rows = [",".join(["learner_steps", "actor_steps", "decision", "adopted_from", *names])]
    for decision in made:
        source = decision.rival if decision.adopted is not None else ""
        values = [str(decision.new[name]).replace(",", " ") for name in names]
        counts = [decision.learner_step_after, decision.actor_steps, decision.number, source]
        rows.append(",".join([*map(str, counts), *values]))
    return "\n".join(rows) + "\n"
