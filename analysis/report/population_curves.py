"""A member's score and values over its life, cut where the ancestors of its weights change."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from analysis.report.curves import BINS, Curve
from analysis.report.figures import Trace
from analysis.report.returns import EPISODES_PER_BIN
from population import scores
from population.ancestry import Stretch
from population.decisions import Decision
from run_folder.log_reader import Log


class Piece(NamedTuple):
    """A part of a member's line that has one colour."""

    ancestor: int
    x: np.ndarray  # [points]
    y: np.ndarray  # [points]


def of_scores(log: Log, tasks: Sequence[str], bins: int = BINS) -> Curve:
    """What the mean returns of the episodes in each part of a member's life amount to.

    A task of which no episode ended in a part counts there as in the part before.

    Args:
      log: of the member's episodes, a row each.
      tasks: that it plays.
      bins: the most parts there may be; of few episodes there are fewer.

    Returns:
      A point for each part in which an episode ended and there is a score.
    """
    steps, returns = log["actor_steps"], log["episode_return"]
    kept = np.isfinite(steps) & np.isfinite(returns)
    if not kept.any():
        return _exact(np.empty(0), np.empty(0))
    steps, returns, played = steps[kept], returns[kept], log.texts["task"][kept]
    bins = int(np.clip(len(steps) // (EPISODES_PER_BIN * len(tasks)), 1, bins))
    edges = np.linspace(steps.min(), steps.max(), bins + 1)
    place = np.clip(np.searchsorted(edges, steps, side="right") - 1, 0, bins - 1)
    means = {}
    for task in tasks:
        mine = played == task
        means[task] = _held(_means(place[mine], returns[mine], bins))
    x = _means(place, steps, bins)
    y = np.asarray(
        [scores.of_returns({task: means[task][i] for task in tasks}) for i in range(bins)]
    )
    defined = np.isfinite(x) & np.isfinite(y)
    return _exact(x[defined], y[defined])


def _means(place: np.ndarray, values: np.ndarray, bins: int) -> np.ndarray:
    """The mean of the values at each place, `[bins]`; NaN where there are none."""
    counts = np.bincount(place, minlength=bins)
    sums = np.bincount(place, values, minlength=bins)
    return np.divide(sums, counts, out=np.full(bins, np.nan), where=counts > 0)


def _held(values: np.ndarray) -> np.ndarray:
    """What is NaN is as the last before it that is not."""
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(len(values))))
    return values[last]


def cut(curve: Curve, stretches: Sequence[Stretch]) -> list[Piece]:
    """A curve in pieces that meet where an adoption was made.

    Args:
      curve: over a member's actor steps.
      stretches: of the member.
    """
    x, y = curve.x, curve.mean
    if not len(x):
        return []
    begins = [-np.inf, *(stretch.actor_steps for stretch in stretches[1:])]
    ends = [*begins[1:], np.inf]
    pieces = []
    for stretch, begin, end in zip(stretches, begins, ends, strict=True):
        inside = (begin < x) & (x <= end)  # as scores count
        # A line through a cut has a point there, which belongs to the pieces on both sides.
        cuts = [at for at in (begin, end) if x[0] < at < x[-1]]
        found = np.unique(np.concatenate([x[inside], cuts]))
        if len(found) and begin < end:
            pieces.append(Piece(stretch.ancestor, found, np.interp(found, x, y)))
    return pieces


def steps(
    made: Sequence[Decision], stretches: Sequence[Stretch], field: str, end: float
) -> list[Piece]:
    """A value, held from each decision to the next, in pieces.

    Args:
      made: a member's decisions, in order.
      stretches: of the member.
      field: of the values; one that is a number.
      end: actor steps up to which the last value has been held.
    """
    begins = [decision.actor_steps for decision in made]
    adoptions = iter(stretches[1:])
    ancestor = stretches[0].ancestor
    pieces = []
    for i, decision in enumerate(made):
        if decision.adopted is not None:
            ancestor = next(adoptions).ancestor
        value = decision.new[field]
        before = made[i - 1].new[field] if i else value
        until = begins[i + 1] if i + 1 < len(made) else max(end, begins[i])
        x, y = [begins[i], begins[i], until], [before, value, value]
        pieces.append(Piece(ancestor, np.asarray(x, float), np.asarray(y, float)))
    return pieces


def traces(pieces: Iterable[tuple[int, Piece]]) -> list[Trace]:
    """Pieces as they are drawn: those of one colour together, which takes less than each alone.

    Args:
      pieces: each with its colour.

    Returns:
      The colour of the lowest number last, above all others. What takes no steps is a dot, too.
    """
    lines: dict[int, list[Piece]] = {}
    dots: dict[int, list[Piece]] = {}
    for colour, piece in pieces:
        if len(piece.x) > 1:
            lines.setdefault(colour, []).append(piece)
        if piece.x[0] == piece.x[-1]:
            dots.setdefault(colour, []).append(piece)
    found = []
    for colour in sorted({*lines, *dots}, reverse=True):
        if colour in lines:
            x = np.concatenate([np.append(piece.x, np.nan) for piece in lines[colour]])
            y = np.concatenate([np.append(piece.y, np.nan) for piece in lines[colour]])
            found.append(Trace(_exact(x, y), colour))
        if colour in dots:
            x = np.asarray([piece.x[-1] for piece in dots[colour]])
            y = np.asarray([piece.y[-1] for piece in dots[colour]])
            found.append(Trace(_exact(x, y), colour, "o"))
    return found


def _exact(x: np.ndarray, y: np.ndarray) -> Curve:
    """A curve that is no mean of anything: nothing around it is shaded."""
    return Curve(x, y, y, y)
