"""What is known of each member between its turns, read from the population's folder."""

import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from environments import suites
from launch.members import turn
from population import adoption, decisions, ranges, rule, scores
from population.adoption import AdoptionError
from population.decisions import Decision
from population.folder import PopulationFolder, name_of
from population.settings import Population
from run_folder import building, checkpoints, whole_files
from run_folder.checkpoints import CheckpointError, Manifest
from run_folder.settings import SettingsError


@dataclasses.dataclass
class Member:
    """A member between its turns.

    Attributes:
      decision: its newest.
      manifest: of what it saved last; None before that.
      score: of its weights; NaN without any.
      failures: turns in a row that ended by an error.
      left_out: why it has no more turns; empty while it has.
    """

    decision: Decision
    manifest: Manifest | None
    score: float
    failures: int = 0
    left_out: str = ""

    @property
    def actor_steps(self) -> int:
        """Actor steps that it has saved."""
        return self.manifest.actor_steps if self.manifest else 0


class State:
    """A population's members.

    Args:
      population: its settings.
      folder: its folder.
    """

    def __init__(self, population: Population, folder: PopulationFolder) -> None:
        self._population = population
        self._folder = folder
        self._tasks = suites.tasks(population.env)
        self.is_normalised = scores.is_normalised(self._tasks)

    def begin(self, member: int) -> Member:
        """A member as it is found; what it had decided and was kept from doing is done.

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
        try:
            manifest = checkpoints.parse(run.checkpoints)
        except CheckpointError as error:
            raise SettingsError(str(error)) from None
        return Member(made[-1], manifest, scores.score(run, self._tasks, _since(made)))

    def _made(self, member: int) -> list[Decision]:
        """A member's decisions; its first is made here, where nobody has trained it yet."""
        made = decisions.of_member(self._folder, member)
        if not made:
            drawn = ranges.draw(self._population.ranges, member, self._population.seed)
            decisions.write(self._folder, _first(member, drawn))
            made = decisions.of_member(self._folder, member)
        for decision in made:
            try:
                self._population.check(decision.new)
            except ValueError as error:
                raise SettingsError(
                    f"Decision {decision.number} of member {name_of(member)} in "
                    f"{self._folder.decisions} is none of this population's: {error}"
                ) from None
        return made

    def frames(self, actor_steps: int) -> int:
        """Frames of so many actor steps."""
        return actor_steps * suites.frames_per_step(self._population.env)

    def is_ready(self, decision: Decision, actor_steps: int, episodes: int) -> bool:
        """Whether a member that has counted this much since it began is to decide."""
        return self._population.evolves and rule.is_ready(
            self._population, self.frames(actor_steps), episodes - decision.episodes
        )

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
        decision = self._decide(member, everyone, found)
        if not decisions.write(self._folder, decision):  # another process came first
            decision = self._made(member)[-1]
        try:
            self._carry_out(decision)
        except OSError as error:
            raise SettingsError(
                f"Member {name_of(member)} has decided, but {error.filename or 'a file'} cannot be "
                f"written: {error.strerror}. With --resume, it does what it decided."
            ) from None
        return decision

    def _decide(self, member: int, everyone: list[Member], found: list[float]) -> Decision:
        own = everyone[member]
        assert own.manifest is not None
        number = own.decision.number + 1
        step = own.manifest.learner_step
        while True:
            verdict = rule.decide(
                self._population,
                member,
                found,
                [other.decision.new for other in everyone],
                self._population.evolving,
                self._population.mutable,
                lambda values: self._takes(member, own.decision.new, values),
                np.random.default_rng([self._population.seed, member, number, _DECIDES]),
                normalised=self.is_normalised,
            )
            taken = None
            if verdict.adopts:
                try:
                    taken = adoption.stage(
                        self._folder.member(verdict.rival),
                        self._folder.member(member),
                        self._population.agent_name,
                        step + 1,
                    )
                except AdoptionError:  # it has nothing that could be taken
                    found[verdict.rival] = math.nan
                    continue
            rival, actor_steps = everyone[verdict.rival], own.manifest.actor_steps
            if verdict.adopts:  # episodes until then are none of the weights that it takes
                actor_steps = max(actor_steps, scores.last_logged(self._folder.member(member)))
            return Decision(
                member=member,
                number=number,
                time=time.time(),  # noqa: TID251 (for people)
                actor_steps=actor_steps,
                episodes=own.manifest.episodes,
                learner_step=step,
                score=_or_none(found[member]),
                rival=verdict.rival,
                rival_score=_or_none(found[verdict.rival]),
                adopted=rival.decision.number if verdict.adopts else None,
                rival_learner_step=taken,
                old=own.decision.new,
                new=verdict.values,
            )

    def _takes(self, member: int, own: dict[str, Any], values: Mapping[str, Any]) -> bool:
        """Whether a member's run could go on with these values, and the replay that it has."""
        agent = self._population.agent_name
        try:
            before, after = (
                building.make_agent(
                    turn.settings_of(self._population, self._folder, member, each), agent
                )
                for each in (own, values)
            )
        except ValueError:
            return False
        return before.tables == after.tables

    def _carry_out(self, decision: Decision) -> None:
        run = self._folder.member(decision.member)
        if decision.adopted is not None:
            try:
                adoption.publish(
                    run,
                    self._population.agent_name,
                    decision.learner_step_after,
                    decision.actor_steps,
                )
            except AdoptionError as error:
                raise SettingsError(str(error)) from None
        made = decisions.of_member(self._folder, decision.member)
        run.logs.mkdir(parents=True, exist_ok=True)
        whole_files.write(run.log(LABEL), _table(made))


_DECIDES = 1  # so that a decision draws nothing again that `ranges.draw` has drawn
LABEL = "values"  # of the log in which a member says which values hold, and from which step on


def _first(member: int, drawn: dict[str, Any]) -> Decision:
    return Decision(
        member=member,
        number=0,
        time=time.time(),  # noqa: TID251 (for people)
        actor_steps=0,
        episodes=0,
        learner_step=0,
        score=None,
        rival=None,
        rival_score=None,
        adopted=None,
        rival_learner_step=None,
        old={},
        new=drawn,
    )


def _since(made: list[Decision]) -> int:
    """Actor steps at which a member got the weights that it has."""
    adoptions = [decision.actor_steps for decision in made if decision.adopted is not None]
    return adoptions[-1] if adoptions else 0


def _or_none(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _table(made: list[Decision]) -> str:
    fields = list(made[0].new)
    rows = [",".join(["learner_steps", "actor_steps", "decision", "adopted_from", *fields])]
    for decision in made:
        source = decision.rival if decision.adopted is not None else ""
        values = [str(decision.new[name]).replace(",", " ") for name in fields]
        counts = [decision.learner_step_after, decision.actor_steps, decision.number, source]
        rows.append(",".join([*map(str, counts), *values]))
    return "\n".join(rows) + "\n"
