"""The rule by which a population evolves (Espeholt et al. 2018, Appendix E, Tables C.1 and F.1).

After a burn-in a member that has collected enough episodes looks at one other, drawn at random.
When that one's score is better by a margin, the member takes its weights and values. Whether or not
it did, each value is then multiplied by a factor, or divided by it, with some probability.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from population.settings import Population


class Verdict(NamedTuple):
    """A member's decision by the rule.

    Attributes:
      rival: the other that it looked at.
      adopts: whether it takes that one's weights and values.
      values: with which it goes on.
    """

    rival: int
    adopts: bool
    values: dict[str, Any]


def is_ready(rule: Population, frames: int, episodes: int) -> bool:
    """Whether a member is to decide that has played these frames in all, episodes since it did."""
    return frames >= rule.burn_in_frames and episodes >= rule.ready_episodes


def is_better(rival: float, own: float, margin: float, *, normalised: bool) -> bool:
    """Whether a rival's score is so much higher that it is worth adopting.

    Human-normalised scores are compared as they are: 0.05 is five hundredths of the way from random
    play to a human's. Returns that nothing is known of have no such unit. Then the difference has
    to exceed that share of the greater magnitude of the two: of returns of -20 and -19 neither is
    better by 0.05, of 0 and anything positive the second is, and scaling all rewards changes
    nothing.

    Args:
      rival: its score.
      own: the member's. NaN, where it has none, loses to any score; a rival's NaN never wins.
      margin: by which the rival's has to be higher.
      normalised: whether both are human-normalised.
    """
    if math.isnan(rival):
        return False
    if math.isnan(own):
        return True
    unit = 1.0 if normalised else max(abs(rival), abs(own))
    return rival - own > margin * unit


def decide(
    rule: Population,
    member: int,
    scores: Sequence[float],
    values: Sequence[Mapping[str, Any]],
    evolving: Collection[str],
    mutable: Collection[str],
    accepts: Callable[[Mapping[str, Any]], bool],
    rng: np.random.Generator,
    *,
    normalised: bool,
) -> Verdict:
    """Decides for a member that is ready.

    Args:
      rule: the population, which has the numbers.
      member: who decides.
      scores: of every member; NaN of one that has none.
      values: of every member's fields.
      evolving: the fields that are taken over with the weights; the others stay each member's own.
      mutable: those of them that are multiplied.
      accepts: whether a member can be trained with values: what one field takes may depend on
        another's. All of `values` are accepted.
      rng: draws the rival and the mutations.
      normalised: whether scores are human-normalised.
    """
    rival = int(rng.integers(len(scores) - 1))
    rival += rival >= member
    found = dict(values[member])
    adopts = is_better(scores[rival], scores[member], rule.margin, normalised=normalised)
    if adopts:
        taken = found | {name: values[rival][name] for name in evolving}
        adopts = accepts(taken)
        found = taken if adopts else found
    for name in [name for name in found if name in mutable]:
        mutated = {**found, name: _mutated(rule, found[name], rng)}
        found = mutated if accepts(mutated) else found
    return Verdict(rival, adopts, found)


def _mutated(rule: Population, value: float, rng: np.random.Generator) -> float:
    """A value, perhaps multiplied or divided."""
    changes, up = rng.random() < rule.mutation_probability, rng.random() < 0.5
    if not changes:
        return value
    return value * rule.mutation_factor if up else value / rule.mutation_factor
