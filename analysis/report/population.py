"""All that a population's folder tells a report."""

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.report import charts, run
from analysis.report.charts import BINS, COLOURS, Legend, Segment, Trace
from analysis.report.run import EPISODES_PER_BIN
from environments import suites
from population import ancestry, decisions, scores, settings
from population.ancestry import Stretch
from population.decisions import Decision
from population.folder import PopulationFolder, name_of
from population.ranges import Range
from population.settings import Population
from run_folder import log_reader, progress
from run_folder.layout import RunFolder
from run_folder.log_reader import Log
from run_folder.settings import SettingsError

OTHERS = len(COLOURS) - 1  # a grey: of all who have no colour of their own

_POINTS, _LEAST_BINS = 4_000, 20  # of all members' scores together; of each member's


@dataclasses.dataclass(frozen=True)
class Member:
    """One member."""

    number: int  # from 0 on
    state: str  # how its run stands
    actor: Log  # the log of its actors
    score: float  # of the weights that it has; NaN where no episode has ended since it has them
    scores: Trace  # over its life, few points
    decisions: Sequence[Decision]  # its own, in order; none before its population has begun
    stretches: Sequence[Stretch]  # whom its weights descended from, in order

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
    def adoptions(self) -> list[Decision]:
        """The decisions by which it took over another's weights."""
        return [decision for decision in self.decisions if decision.adopted is not None]

    @property
    def end(self) -> float:
        """Actor steps up to which something is known of it."""
        decided = self.decisions[-1].actor_steps if self.decisions else 0
        return float(np.fmax(self.actor.last("actor_steps"), decided))  # before the first NaN


@dataclasses.dataclass(frozen=True)
class Members:
    """A population."""

    folder: PopulationFolder  # where it is now
    settings: Population  # what it is
    # The members, the best first; who has no score comes after all that have one.
    ranked: Sequence[Member]
    decisions: Sequence[Decision]  # of all, in the order of time
    colours: Mapping[int, int]  # of each ancestor that has one of its own

    @property
    def evolves(self) -> bool:
        """Whether its members learn from each other."""
        return self.settings.evolves

    @property
    def ranges(self) -> Mapping[str, Range]:
        """The ranges of the fields' first values."""
        return self.settings.ranges

    @property
    def scored(self) -> list[Member]:
        """The members that have a score, the best first."""
        return [member for member in self.ranked if not math.isnan(member.score)]

    @property
    def legend(self) -> Legend:
        """The meaning of each colour."""
        word = "from" if self.evolves else "member"
        named = [(f"{word} {name_of(number)}", colour) for number, colour in self.colours.items()]
        return named + ([("others", OTHERS)] if len(named) < len(self.ranked) else [])

    @property
    def score(self) -> str:
        """The name of a score, for the tasks that are played here."""
        tasks = suites.tasks(self.settings.env)
        if not scores.is_normalised(tasks):
            return "Return" if len(tasks) == 1 else "Mean return"
        return "Mean capped human-normalised score"

    def of_member(self, member: Member) -> list[int]:
        """The colours of a member's stretches."""
        return [self.colours.get(stretch.ancestor, OTHERS) for stretch in member.stretches]


def load(path: pathlib.Path) -> Members:
    """Reads a population.

    Raises:
      SettingsError: it holds none, or its settings or a decision are damaged.
    """
    found, folder = settings.load(path), PopulationFolder(path)
    made = decisions.every(folder, found.members)
    own: list[list[Decision]] = [[] for _ in range(found.members)]
    for decision in made:
        _check(folder, decision, found)
        own[decision.member].append(decision)
    members = [
        _member(found, folder.member(number), number, own[number], stretches)
        for number, stretches in enumerate(ancestry.trace(made, found.members))
    ]
    ranked = sorted(members, key=lambda m: math.inf if math.isnan(m.score) else -m.score)
    return Members(folder, found, ranked, made, _colours(ranked))


def _check(folder: PopulationFolder, decision: Decision, found: Population) -> None:
    """Raises SettingsError about a decision that is none of this population's."""
    which = f"Decision {decision.number} of member {name_of(decision.member)} in {folder.decisions}"
    adopts = decision.adopted is not None
    if decision.rival not in range(found.members) and (adopts or decision.rival is not None):
        raise SettingsError(
            f"{which} must name a rival from 0 to {found.members - 1}, got {decision.rival}."
        )
    for name, given in found.ranges.items():
        value = decision.new.get(name)
        if name not in decision.new or (given.mutates and not isinstance(value, int | float)):
            raise SettingsError(f"{which} must have a value of {name}, got {value!r}.")


def _member(
    population: Population,
    folder: RunFolder,
    number: int,
    made: Sequence[Decision],
    stretches: Sequence[Stretch],
) -> Member:
    tasks = suites.tasks(population.env)
    episodes, actor = scores.episodes(folder), log_reader.read(folder.log("actor"))
    bins = int(np.clip(_POINTS // population.members, _LEAST_BINS, BINS))
    state = "has not begun"
    if folder.config.exists():
        state = run.state(folder, progress.read(folder.path))
        counts = actor.last("actor_steps"), actor.last("learner_steps")
        if state.startswith(run.ENDED) and not population.is_at_limit(*counts):
            state = "waits for its turn"  # the end of a turn is none of the run
    return Member(
        number,
        state,
        actor,
        score=scores.of_returns(scores.recent_of(episodes, tasks, stretches[-1].actor_steps)),
        scores=score_curve(episodes, tasks, bins),
        decisions=sorted(made, key=lambda decision: decision.number),
        stretches=stretches,
    )


def _colours(ranked: Sequence[Member]) -> dict[int, int]:
    """A colour for each ancestor, where there are enough; else for those of the best members."""
    living = list(dict.fromkeys(member.ancestor for member in ranked))
    if len(ranked) <= len(COLOURS):
        living = list(dict.fromkeys([*living, *range(len(ranked))]))
    else:
        living = living[:OTHERS]
    return {ancestor: colour for colour, ancestor in enumerate(living)}


def score_curve(log: Log, tasks: Sequence[str], bins: int = BINS) -> Trace:
    """A member's score in each of at most `bins` parts of its life, by the log of its episodes.

    A task of which no episode ended in a part counts there as in the part before. There is a point
    for each part in which an episode ended and there is a score.
    """
    kept = np.isfinite(log["actor_steps"]) & np.isfinite(log["episode_return"])
    if not kept.any():
        return Trace(np.empty(0), np.empty(0))
    steps, returns = log["actor_steps"][kept], log["episode_return"][kept]
    played = log.texts["task"][kept]
    bins = int(np.clip(len(steps) // (EPISODES_PER_BIN * len(tasks)), 1, bins))
    places = charts.bin_places(steps, bins)
    means = {}
    for task in tasks:
        mine = played == task
        values = _means(places[mine], returns[mine], bins)
        last = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(bins)))
        means[task] = values[last]
    x = _means(places, steps, bins)
    y = np.asarray(
        [scores.of_returns({task: means[task][i] for task in tasks}) for i in range(bins)]
    )
    defined = np.isfinite(x) & np.isfinite(y)
    return Trace(x[defined], y[defined])


def _means(places: np.ndarray, values: np.ndarray, bins: int) -> np.ndarray:
    """The mean of the values at each place, `[bins]`; NaN where there are none."""
    counts = np.bincount(places, minlength=bins)
    sums = np.bincount(places, values, minlength=bins)
    return np.divide(sums, counts, out=np.full(bins, np.nan), where=counts > 0)


def cut(curve: Trace, begins: Sequence[float], colours: Sequence[int]) -> list[Trace]:
    """A curve over a member's actor steps, in pieces by the member's stretches, which meet."""
    x = curve.x
    begins = [-np.inf, *begins[1:]]
    pieces = []
    for begin, end, colour in zip(begins, [*begins[1:], np.inf], colours, strict=True):
        inside = (begin < x) & (x <= end)  # as scores count
        # A line through a cut has a point there, which belongs to the pieces on both sides.
        cuts = [at for at in (begin, end) if len(x) and x[0] < at < x[-1]]
        found = np.unique(np.concatenate([x[inside], cuts]))
        if len(found) and begin < end:
            pieces.append(Trace(found, np.interp(found, x, curve.y), colour))
    return pieces


def held(made: Sequence[Decision], colours: Sequence[int], field: str, end: float) -> list[Trace]:
    """A value in pieces, held from each of a member's decisions to the next, the last to `end`.

    The colours are those of the member's stretches, of which each adoption begins one.
    """
    pieces, adoptions = [], 0
    ends = [*(decision.actor_steps for decision in made[1:]), end]
    for i, (decision, until) in enumerate(zip(made, ends, strict=False)):
        adoptions += decision.adopted is not None
        begin, value = decision.actor_steps, decision.new[field]
        x = [begin, begin, max(begin, until)]
        y = [made[max(i - 1, 0)].new[field], value, value]
        pieces.append(Trace(np.asarray(x, float), np.asarray(y, float), colours[adoptions]))
    return pieces


def joined(pieces: Sequence[Trace]) -> list[Trace]:
    """Pieces as they are drawn: those of one colour in one line, the first colour above all others.

    A piece that takes no steps is a dot, too.
    """
    found = []
    for colour in sorted({piece.colour for piece in pieces}, reverse=True):
        mine = [piece for piece in pieces if piece.colour == colour]
        lines = [piece for piece in mine if len(piece.x) > 1]
        dots = [piece for piece in mine if piece.x[0] == piece.x[-1]]
        if lines:
            x = np.concatenate([np.append(piece.x, np.nan) for piece in lines])
            y = np.concatenate([np.append(piece.y, np.nan) for piece in lines])
            found.append(Trace(x, y, colour))
        if dots:
            x = np.asarray([piece.x[-1] for piece in dots])
            y = np.asarray([piece.y[-1] for piece in dots])
            found.append(Trace(x, y, colour, "o"))
    return found


def by_family(ranked: Sequence[Member]) -> list[Member]:
    """Members with those of the same ancestor together, the family of the best member first."""
    families = list(dict.fromkeys(member.ancestor for member in ranked))
    return sorted(ranked, key=lambda member: families.index(member.ancestor))


def segments(members: Members, lanes: Sequence[Member]) -> list[Segment]:
    """The stretches of members, whose lanes are in this order, and a line for every adoption."""
    places = {member.number: place for place, member in enumerate(lanes)}
    found = []
    for place, member in enumerate(lanes):
        colours = members.of_member(member)
        begins = [stretch.actor_steps for stretch in member.stretches]
        ends = [*begins[1:], member.end]
        for begin, end, colour in zip(begins, ends, colours, strict=True):
            found.append(Segment(place, begin, place, end, colour))
        for decision, colour in zip(member.adoptions, colours[1:], strict=True):
            assert decision.rival is not None
            rival = places[decision.rival]
            saved = _saved(lanes[rival], decision)
            found.append(Segment(rival, saved, place, decision.actor_steps, colour))
    return found


def _saved(rival: Member, adoption: Decision) -> float:
    """Actor steps of a rival at the update that was taken over.

    It is after one of its decisions, before the next.
    """
    number, learner_step = adoption.adopted, adoption.rival_learner_step
    assert number is not None
    decided = [decision.actor_steps for decision in rival.decisions]
    least = float(decided[min(number, len(decided) - 1)] if decided else 0)
    most = float(decided[number + 1]) if number + 1 < len(decided) else max(rival.end, least)
    updates, steps = rival.actor.defined("learner_steps", "actor_steps")
    if learner_step is None or not len(updates):
        return least
    return float(np.clip(np.interp(learner_step, updates, steps), least, most))
