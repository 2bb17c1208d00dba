"""Ranges from which hyperparameters are drawn, as typed after `--sweep=<field>=`.

log:5e-5:1e-2        log-uniform
uniform:10:100       uniform
choice:0.1,0.001     one of these, each as likely
grid:vtrace,none     each of these, with each value of every other grid
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.fields import Field
from run_folder import texts

KINDS = ("log", "uniform", "choice", "grid")
_FORMS = "log:5e-5:1e-2, uniform:10:100, choice:0.1,0.001 or grid:0.1,0.001"


@dataclasses.dataclass(frozen=True)
class Range:
    """The values that a field may begin with."""

    kind: str  # one of `KINDS`
    values: tuple[Any, ...]  # the two ends of an interval, or all there are
    text: str  # as it was typed

    @property
    def mutates(self) -> bool:
        """Tells whether its values are floats, which evolution can multiply."""
        return all(isinstance(value, float) for value in self.values)


def parse(name: str, text: str, declared: Mapping[str, Field]) -> Range:
    """The range that a text, as it was typed, stands for among the fields of an agent's Config.

    Raises:
      ValueError: no such field, or no range that its Config takes.
    """
    if name not in declared:
        raise ValueError(f"{name!r} is no field here.{texts.suggest(name, declared)}")
    kind, colon, rest = text.partition(":")
    if kind not in KINDS or not colon:
        raise ValueError(f"{name} must be drawn from {_FORMS}, got {text!r}.")
    field = declared[name]
    parts = rest.split(":" if kind in ("log", "uniform") else ",")
    values = tuple(texts.value_of(name, part, field.annotation) for part in parts)
    for value in values:
        if not field.requirement.holds(value):
            raise ValueError(f"{name} must be {field.requirement.text}, got {value!r} in {text!r}.")
    if kind in ("log", "uniform"):
        _check_interval(name, kind, values, text)
    elif len(set(values)) < len(values):
        raise ValueError(f"{name} names a value twice: {text!r}.")
    return Range(kind, values, text)


def _check_interval(name: str, kind: str, values: tuple[Any, ...], text: str) -> None:
    if len(values) != 2:
        raise ValueError(f"{name} must be drawn from {kind}:<least>:<most>, got {text!r}.")
    if not all(isinstance(value, float) and math.isfinite(value) for value in values):
        raise ValueError(
            f"{name} cannot be drawn from an interval, got {text!r}: use choice: or grid:."
        )
    least, most = values
    if kind == "log" and least <= 0:
        raise ValueError(f"{name} must be positive to be drawn log-uniformly, got {text!r}.")
    if least >= most:
        raise ValueError(f"{name} must be drawn from least to most, got {text!r}, which is empty.")


def cells(ranges: Mapping[str, Range]) -> int:
    """The number of combinations of all grids' values; 1 where there is no grid."""
    return math.prod(len(found.values) for found in ranges.values() if found.kind == "grid")


def draw(ranges: Mapping[str, Range], member: int, seed: int) -> dict[str, Any]:
    """The values that a member begins with.

    Members that differ only in their place on the grids draw the same values of all other fields,
    so each cell of the grids is tried with the same draws.
    """
    sample, cell = divmod(member, cells(ranges))
    found = {}
    for i, (name, given) in enumerate(ranges.items()):
        if given.kind == "grid":
            cell, place = divmod(cell, len(given.values))
            found[name] = given.values[place]
        else:
            found[name] = _draw(given, np.random.default_rng([seed, sample, i]))
    return found


def _draw(given: Range, rng: np.random.Generator) -> Any:
    if given.kind == "choice":
        return given.values[rng.integers(len(given.values))]
    least, most = given.values
    if given.kind == "log":
        # Rounding may lead a hair beyond an end.
        drawn = math.exp(rng.uniform(math.log(least), math.log(most)))
        return min(max(drawn, least), most)
    return float(rng.uniform(least, most))
