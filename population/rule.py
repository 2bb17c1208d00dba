"""The rule by which a population evolves (Espeholt et al. 2018, Appendix E, Tables C.1 and F.1).

After a burn-in a member that has collected enough episodes looks at one other, drawn at random.
When that one's score is better by a margin, the member takes its weights and values. Whether or not
it did, each value is then multiplied by a factor, or divided by it, with some probability.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from environments import suites
from population.scores import is_normalised
from population.settings import Population

_DECIDES = 1  # so that a decision draws nothing again that `ranges.draw` has drawn


class Verdict(NamedTuple):
    """A member's decision by the rule."""

    rival: int  # the other member that it looked at
    adopts: bool  # whether it takes the rival's weights and values
    values: dict[str, Any]  # the values with which it goes on


def until_decision(population: Population, actor_steps: int, episodes: int) -> str:
    """How far a member is from its next decision, in words; nothing where it is ready.

    Args:
      population: its settings.
      actor_steps: that the member has made in all.
      episodes: that have ended since it decided last.
    """
    frames = actor_steps * suites.frames_per_step(population.env)
    if not population.evolves:
        return "never"
    if frames < population.burn_in_frames:
        return f"burn-in, {frames:,} of {population.burn_in_frames:,} frames"
    left = population.ready_episodes - episodes
    return f"after {left:,} episodes" if left > 0 else ""


def is_better(rival: float, own: float, margin: float, *, normalised: bool) -> bool:
    """Tells whether a rival's score is higher than a member's own by the margin.

    Human-normalised scores are compared as they are: 0.05 is five hundredths of the way from random
    to human play. Plain returns have no such unit. There the difference must exceed the margin's
    share of the greater magnitude of the two. So neither of -20 and -19 is better by 0.05, anything
    positive is better than 0, and scaling all rewards changes nothing.

    Args:
      rival: the rival's score. NaN, where it has none, never wins.
      own: the member's score. NaN loses to any score.
      margin: the least difference, exclusive.
      normalised: whether both scores are human-normalised.
    """
    if math.isnan(rival):
        return False
    if math.isnan(own):
        return True
    unit = 1.0 if normalised else max(abs(rival), abs(own))
    return rival - own > margin * unit


def decide(
    population: Population,
    member: int,
    number: int,
    scores: Sequence[float],
    values: Sequence[Mapping[str, Any]],
    accepts: Callable[[Mapping[str, Any]], bool],
    *,
    must_adopt: bool = False,
) -> Verdict:
    """Decides for a member that is ready.

    All that is drawn, the rival and the mutations, follows from the population's seed, the member
    and the number.

    Args:
      population: its settings, with the rule's numbers.
      member: the member that decides.
      number: of this decision among the member's, from 1.
      scores: of every member; NaN where it has none.
      values: every member's values, by field.
      accepts: tells whether a member can be trained with values: what one field takes may depend on
        another's. All of `values` are accepted.
      must_adopt: whether its weights lead nowhere; then it looks at one that has a score.
    """
    rng = np.random.default_rng([population.seed, member, number, _DECIDES])
    normalised = is_normalised(suites.tasks(population.env))
    others = [other for other in range(len(scores)) if other != member]
    scored = [other for other in others if not math.isnan(scores[other])]
    others = (scored if must_adopt else []) or others
    rival = others[int(rng.integers(len(others)))]
    found = dict(values[member])
    adopts = is_better(scores[rival], scores[member], population.margin, normalised=normalised)
    if adopts:
        taken = found | {name: values[rival][name] for name in population.evolving}
        adopts = accepts(taken)
        found = taken if adopts else found
    for name in [name for name in found if name in population.mutable]:
        mutated = {**found, name: _mutated(population, found[name], rng)}
        found = mutated if accepts(mutated) else found
    return Verdict(rival, adopts, found)


def _mutated(population: Population, value: float, rng: np.random.Generator) -> float:
    """A value, perhaps multiplied or divided."""
    changes, up = rng.random() < population.mutation_probability, rng.random() < 0.5
    if not changes:
        return value
    return value * population.mutation_factor if up else value / population.mutation_factor
