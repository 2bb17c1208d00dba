"""All that a population's folder tells a report."""

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.report import page, population_curves, summary
from analysis.report.charts import Legend
from analysis.report.curves import BINS, Curve
from analysis.report.figures import COLOURS
from environments import suites
from population import ancestry, decisions, scores, settings
from population.ancestry import Stretch
from population.decisions import Decision
from population.folder import PopulationFolder, name_of
from population.ranges import Range
from population.settings import Population
from run_folder import log_reader, progress
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError

OTHERS = len(COLOURS) - 1  # a grey: of all who have no colour of their own

_DESCENT = (
    "A colour stands for a member at the start, and for all weights that descend from that "
    "member's: who takes over another's weights takes over their colour."
)
_APART = "A colour stands for a member."
_OTHERS = " There are {} members and {} colours: {} have one each, all others are grey."
_DESCENDED_FROM, _BEST = "those from whom the best ones descend", "the best ones"
_POINTS, _LEAST_BINS = 4_000, 20  # of all members' scores together; of each member's


@dataclasses.dataclass(frozen=True)
class Member:
    """One member.

    Attributes:
      number: from 0 on.
      state: how its run stands.
      actor_steps: that it has logged; NaN before the first, as all counts.
      learner_steps: likewise.
      walltime: seconds that its turns have lasted.
      score: of the weights that it has; NaN where no episode has ended since it has them.
      scores: over its life, as a curve of few points.
      decisions: its own, in order; none before its population has begun.
      stretches: whom its weights descended from, in order.
      saved: of its updates that others took over, the actor steps that it had made then.
    """

    number: int
    state: str
    actor_steps: float
    learner_steps: float
    walltime: float
    score: float
    scores: Curve
    decisions: Sequence[Decision]
    stretches: Sequence[Stretch]
    saved: Mapping[int, float]

    @property
    def name(self) -> str:
        """As its folder is called."""
        return name_of(self.number)

    @property
    def ancestor(self) -> int:
        """The member that began with the weights from which its present ones descend."""
        return self.stretches[-1].ancestor

    @property
    def values(self) -> Mapping[str, Any]:
        """Its present values by field; none before its first decision."""
        return self.decisions[-1].new if self.decisions else {}

    @property
    def end(self) -> float:
        """Actor steps up to which something is known of it."""
        decided = self.decisions[-1].actor_steps if self.decisions else 0
        return decided if math.isnan(self.actor_steps) else max(decided, self.actor_steps)


@dataclasses.dataclass(frozen=True)
class Members:
    """A population.

    Attributes:
      folder: where it is now.
      settings: what it is.
      ranges: where the fields' first values came from.
      ranked: the members, the best first; who has no score comes after all that have one.
      decisions: of all, in the order of time.
      colours: of each ancestor that has one of its own.
    """

    folder: PopulationFolder
    settings: Population
    ranges: Mapping[str, Range]
    ranked: Sequence[Member]
    decisions: Sequence[Decision]
    colours: Mapping[int, int]

    def colour(self, ancestor: int) -> int:
        """The colour of what descends from a member."""
        return self.colours.get(ancestor, OTHERS)

    @property
    def legend(self) -> Legend:
        """What the colours mean."""
        word = "from" if self.settings.evolves else "member"
        named = [(f"{word} {name_of(number)}", colour) for number, colour in self.colours.items()]
        return named + ([("others", OTHERS)] if len(named) < len(self.ranked) else [])

    @property
    def score(self) -> str:
        """What a score is, of what is played here."""
        tasks = suites.tasks(self.settings.env)
        if not scores.is_normalised(tasks):
            return "Return" if len(tasks) == 1 else "Mean return"
        return "Mean capped human-normalised score"

    def key(self) -> str:
        """The colours with what they say."""
        said = _DESCENT if self.settings.evolves else _APART
        if len(self.colours) < len(self.ranked):
            who = _DESCENDED_FROM if self.settings.evolves else _BEST
            said += _OTHERS.format(len(self.ranked), len(COLOURS), who)
        return page.paragraph(said) + page.key(self.legend)


def load(path: pathlib.Path) -> Members:
    """Reads a population.

    Raises:
      SettingsError: it holds none, or its settings or a decision are damaged.
    """
    found, folder = settings.load(path), PopulationFolder(path)
    ranges = found.ranges
    made = decisions.every(folder, found.members)
    for decision in made:
        _check(folder, decision, found.members, ranges)
    stretches = ancestry.trace(made, found.members)
    own: list[list[Decision]] = [[] for _ in range(found.members)]
    for decision in sorted(made, key=lambda decision: decision.number):
        own[decision.member].append(decision)
    taken: list[set[int]] = [set() for _ in range(found.members)]
    for decision in made:
        if decision.rival is not None and decision.rival_learner_step is not None:
            taken[decision.rival].add(decision.rival_learner_step)
    members = [
        _member(found, folder.member(number), number, own[number], stretches[number], taken[number])
        for number in range(found.members)
    ]
    ranked = sorted(members, key=lambda member: (_falling(member.score), member.number))
    return Members(folder, found, ranges, ranked, made, _colours(ranked))


def _check(
    folder: PopulationFolder, decision: Decision, members: int, ranges: Mapping[str, Range]
) -> None:
    """Raises SettingsError about a decision that is none of this population's."""
    which = f"Decision {decision.number} of member {name_of(decision.member)} in {folder.decisions}"
    rivals = [decision.rival] if decision.rival is not None else []
    if (decision.adopted is not None and not rivals) or any(
        not 0 <= rival < members for rival in rivals
    ):
        raise SettingsError(
            f"{which} must name a rival from 0 to {members - 1}, got {decision.rival}."
        )
    for name, given in ranges.items():
        value = decision.new.get(name)
        if name not in decision.new or (given.mutates and not isinstance(value, int | float)):
            raise SettingsError(f"{which} must have a value of {name}, got {value!r}.")


def _member(
    population: Population,
    run: RunFolder,
    number: int,
    made: Sequence[Decision],
    stretches: Sequence[Stretch],
    taken: set[int],
) -> Member:
    tasks = suites.tasks(population.env)
    episodes, actor = scores.episodes(run), log_reader.read(run.log("actor"))
    since = stretches[-1].actor_steps
    updates, steps = actor.defined("learner_steps", "actor_steps")
    bins = int(np.clip(_POINTS // population.members, _LEAST_BINS, BINS))
    return Member(
        number=number,
        state=_state(population, run, actor.last("actor_steps"), actor.last("learner_steps")),
        actor_steps=actor.last("actor_steps"),
        learner_steps=actor.last("learner_steps"),
        walltime=actor.last("walltime"),
        score=scores.of_returns(scores.recent_of(episodes, tasks, since)),
        scores=population_curves.of_scores(episodes, tasks, bins),
        decisions=made,
        stretches=stretches,
        saved={at: float(np.interp(at, updates, steps)) for at in taken if len(updates)},
    )


def _state(population: Population, run: RunFolder, actor_steps: float, learner_steps: float) -> str:
    """How a member's run stands; the end of a turn is none of the run."""
    if not run.config.exists():
        return "has not begun"
    state = summary.state(run, progress.read(run.path))
    between = state.startswith(summary.ENDED) and not population.is_at_limit(
        actor_steps, learner_steps
    )
    return "waits for its turn" if between else state


def _colours(ranked: Sequence[Member]) -> dict[int, int]:
    """A colour for each ancestor, where there are enough; else for those of the best members."""
    living = list(dict.fromkeys(member.ancestor for member in ranked))
    if len(ranked) <= len(COLOURS):
        every = dict.fromkeys([*living, *range(len(ranked))])
        return {ancestor: colour for colour, ancestor in enumerate(every)}
    return {ancestor: colour for colour, ancestor in enumerate(living[:OTHERS])}


def _falling(score: float) -> float:
    """Sorts the highest first, and NaN last."""
    return math.inf if math.isnan(score) else -score


def shown(value: Any) -> str:
    """A value of a field as it is read."""
    if isinstance(value, float):
        return page.number(value, digits=3)
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
