"""Measuring several things by turns, so that whatever else the machine does meets them all."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from absl import flags

_ROUNDS = flags.DEFINE_integer("rounds", 6, "Rounds, in each of which everything has its turn.")
_TURN_SECONDS = flags.DEFINE_float("turn_seconds", 3.0, "How long a turn is, at least one step.")


def arguments() -> list[str]:
    """The flags of this module as they are set, for another benchmark."""
    return [f"--rounds={_ROUNDS.value}", f"--turn_seconds={_TURN_SECONDS.value}"]


class Contestant(NamedTuple):
    """Something to measure."""

    run: Callable[[int], float]  # makes so many steps and returns the seconds they took
    work: float  # of one step, in whatever unit the rates are to have


def timed(step: Callable[[], object]) -> Callable[[int], float]:
    """The `run` of a function that makes one step and returns when that is done."""

    def run(steps: int) -> float:
        started = time.perf_counter()
        for _ in range(steps):
            step()
        return time.perf_counter() - started

    return run


def alternate(contestants: Mapping[str, Contestant]) -> dict[str, list[float]]:
    """Measures all of them by turns.

    Each first makes steps that do not count: caches fill, what was ready beforehand is used up, and
    the last of them show how many steps fit into a turn.

    Returns:
      For each its work per second, one number for each round.
    """
    steps = {name: _steps_per_turn(contestant) for name, contestant in contestants.items()}
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(_ROUNDS.value):
        for name, contestant in contestants.items():
            seconds = contestant.run(steps[name])
            rates[name].append(steps[name] * contestant.work / seconds)
    return rates


def ratios(numerators: list[float], denominators: list[float]) -> list[float]:
    """Ratios round by round: both met the same machine."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def _steps_per_turn(contestant: Contestant) -> int:
    turn = _TURN_SECONDS.value
    contestant.run(1)
    steps, seconds = 1, contestant.run(1)
    while seconds < turn / 4:  # a few steps may have been waiting, ready
        steps *= 2
        seconds = contestant.run(steps)
    return max(1, round(steps * turn / seconds))
