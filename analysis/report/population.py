"""The content of a population's folder, as its page needs it."""

import dataclasses
import itertools
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from analysis.report import charts, run
from analysis.report.charts import BINS, COLOURS, Legend, Segment, Trace
from analysis.report.run import EPISODES_PER_BIN
from environments import suites
from population import decisions, scores, settings
from population.decisions import Decision
from population.folder import PopulationFolder, name_of
from population.settings import Population
from run_folder import log_reader, progress
from run_folder.layout import RunFolder
from run_folder.log_reader import Log

OTHERS = len(COLOURS) - 1  # a grey: of all who have no colour of their own

Colour = Callable[[int], int]
"""(the member that began with some weights) -> the colour of all that descend from them."""

_POINTS, _LEAST_BINS = 4_000, 20  # of all members' scores together; of each member's


class Stretch(NamedTuple):
    """A part of a member's life in which its weights descend from one member's first ones."""

    actor_steps: int  # of the member, from which on they do
    ancestor: int  # that member


@dataclasses.dataclass(frozen=True)
class Member:
    """One member."""

    number: int  # from 0 on
    state: str  # how its run stands
    actor: Log  # the log of its actors
    score: float  # of its present weights; NaN where no episode has ended with them
    scores: Trace  # over its life, few points
    decisions: Sequence[Decision]  # its own, in order; none before its population has begun

    @property
    def name(self) -> str:
        """As its folder is called."""
        return name_of(self.number)

    @property
    def stretches(self) -> list[Stretch]:
        """The stretches of its life, in order: an adoption ends one and begins the next."""
        later = [Stretch(made.actor_steps, made.ancestor) for made in self.adoptions]
        return [Stretch(0, self.number), *later]

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
        """The last actor steps at which it logged or decided anything."""
        decided = self.decisions[-1].actor_steps if self.decisions else 0
        return float(np.fmax(self.actor.last("actor_steps"), decided))  # before the first NaN


@dataclasses.dataclass(frozen=True)
class Members:
    """A population."""

    folder: PopulationFolder  # where it is now
    settings: Population
    # The members, the best first; those without a score come last.
    ranked: Sequence[Member]
    decisions: Sequence[Decision]  # of all, in the order of time
    colours: Mapping[int, int]  # by ancestor; one that is missing has no colour of its own

    @property
    def scored(self) -> list[Member]:
        """The members that have a score, the best first."""
        return [member for member in self.ranked if not math.isnan(member.score)]

    @property
    def legend(self) -> Legend:
        """The meaning of each colour."""
        word = "from" if self.settings.evolves else "member"
        named = [(f"{word} {name_of(number)}", colour) for number, colour in self.colours.items()]
        return named + ([("others", OTHERS)] if len(named) < len(self.ranked) else [])

    @property
    def score(self) -> str:
        """The name of a score, for the tasks that are played here."""
        tasks = suites.tasks(self.settings.env)
        if not scores.is_normalised(tasks):
            return "Return" if len(tasks) == 1 else "Mean return"
        return "Mean capped human-normalised score"

    def colour(self, ancestor: int) -> int:
        """The colour of weights that descend from a member's first ones."""
        return self.colours.get(ancestor, OTHERS)


def load(path: pathlib.Path) -> Members:
    """Reads a population.

    Raises:
      SettingsError: it holds none, or its settings or a decision are damaged.
    """
    found, folder = settings.load(path), PopulationFolder(path)
    made = [decisions.checked(folder, number, found) for number in range(found.members)]
    members = [
        _member(found, folder.member(number), number, own) for number, own in enumerate(made)
    ]
    ranked = sorted(members, key=lambda m: math.inf if math.isnan(m.score) else -m.score)
    in_order = decisions.in_order(itertools.chain.from_iterable(made))
    return Members(folder, found, ranked, in_order, _colours(ranked))


def _member(
    population: Population, folder: RunFolder, number: int, made: Sequence[Decision]
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
    returns = scores.recent_of(episodes, tasks, decisions.since_adoption(made))
    score, curve = scores.of_returns(returns), score_curve(episodes, tasks, bins)
    return Member(number, state, actor, score, curve, made)


def _colours(ranked: Sequence[Member]) -> dict[int, int]:
    """A colour for each ancestor; where there are too few, for those of the best members."""
    living = list(dict.fromkeys(member.ancestor for member in ranked))
    if len(ranked) <= len(COLOURS):
        living = list(dict.fromkeys([*living, *range(len(ranked))]))
    else:
        living = living[:OTHERS]
    return {ancestor: colour for colour, ancestor in enumerate(living)}


def score_curve(log: Log, tasks: Sequence[str], bins: int = BINS) -> Trace:
    """A member's score in each of at most `bins` parts of its life, by the log of its episodes.

    In a part in which no episode of a task ended, the task counts as in the part before. There is a
    point for each part in which an episode ended and there is a score.
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


def cut(curve: Trace, stretches: Sequence[Stretch], colour: Colour) -> list[Trace]:
    """A curve over a member's actor steps, in pieces by its stretches, which meet."""
    x = curve.x
    begins = [-np.inf, *(stretch.actor_steps for stretch in stretches[1:])]
    pieces = []
    for begin, end, stretch in zip(begins, [*begins[1:], np.inf], stretches, strict=True):
        inside = (begin < x) & (x <= end)  # as scores count
        # A line through a cut has a point there, which belongs to the pieces on both sides.
        cuts = [at for at in (begin, end) if len(x) and x[0] < at < x[-1]]
        found = np.unique(np.concatenate([x[inside], cuts]))
        if len(found) and begin < end:
            y = np.interp(found, x, curve.y)
            pieces.append(Trace(found, y, colour(stretch.ancestor)))
    return pieces


def held(made: Sequence[Decision], field: str, end: float, colour: Colour) -> list[Trace]:
    """A value in pieces, held from each of a member's decisions to the next, the last to `end`."""
    pieces = []
    ends = [*(decision.actor_steps for decision in made[1:]), end]
    for before, decision, until in zip([*made[:1], *made], made, ends, strict=False):
        begin, value = decision.actor_steps, decision.new[field]
        x = np.asarray([begin, begin, max(begin, until)], float)
        y = np.asarray([before.new[field], value, value], float)
        pieces.append(Trace(x, y, colour(decision.ancestor)))
    return pieces


def joined(pieces: Sequence[Trace]) -> list[Trace]:
    """Pieces as they are drawn: one line for each colour, the first colour above all others.

    A piece that takes no steps is also a dot.
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
    """Members sorted into families of the same ancestor, the family of the best member first."""
    families = list(dict.fromkeys(member.ancestor for member in ranked))
    return sorted(ranked, key=lambda member: families.index(member.ancestor))


def segments(members: Members, lanes: Sequence[Member]) -> list[Segment]:
    """The stretches of members, whose lanes are in this order, and a line for every adoption."""
    places = {member.number: place for place, member in enumerate(lanes)}
    found = []
    for place, member in enumerate(lanes):
        stretches = member.stretches
        ends = [*(stretch.actor_steps for stretch in stretches[1:]), member.end]
        for (begin, ancestor), end in zip(stretches, ends, strict=True):
            found.append(Segment(place, begin, place, end, members.colour(ancestor)))
        for made in member.adoptions:
            assert made.rival is not None
            rival, colour = places[made.rival], members.colour(made.ancestor)
            saved = _saved(lanes[rival], made)
            found.append(Segment(rival, saved, place, made.actor_steps, colour))
    return found


def _saved(rival: Member, adoption: Decision) -> float:
    """Actor steps of a rival at the update that was taken over.

    By its log, but between the decision that the adoption names and the rival's next one.
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
