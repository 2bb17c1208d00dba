"""What the terminal shows of a population: a table of its members, or lines where it is none."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich import box
from rich.table import Table

from launch.local.view import Drawing
from launch.members.state import Member
from population.decisions import Decision
from population.folder import name_of
from population.settings import Population

LINE_SECONDS = 30.0


class View(Drawing):
    """Draws the members while they are trained."""

    def tell(self, sentence: str) -> None:
        """Prints a line that stays, with the time."""
        super().tell(f"{time.strftime('%H:%M:%S')} {sentence}")

    def show(
        self,
        population: Population,
        members: Mapping[int, Member],
        playing: Mapping[int, dict[str, Any] | None],
        until_decision: Callable[[Decision, int, int], str],
    ) -> None:
        """Draws the newest; a line every half minute where nothing can be redrawn.

        Args:
          population: its settings.
          members: as they were when their last turns ended.
          playing: the progress of those whose turn it is; None before its first.
          until_decision: (its newest decision, actor steps, episodes) -> how far it is to the next.
        """
        rows = [
            row(number, member, number in playing, playing.get(number), until_decision)
            for number, member in members.items()
        ]
        if self._live is not None:
            self._live.update(self._table(population, rows))
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            for number, state, steps, score, *_ in rows:
                if number in map(name_of, playing):
                    self.tell(f"member {number} {state}, {steps} steps, score {score}")

    def _table(self, population: Population, rows: list[list[str]]) -> Table:
        table = Table(title=self._title, box=box.SIMPLE)
        for name in ("", "state", "steps", "score", *population.sweep, "decides"):
            table.add_column(name, justify="right" if name in ("steps", "score") else "left")
        for cells in rows:
            table.add_row(*cells)
        return table


def row(
    number: int,
    member: Member,
    plays: bool,
    progress: dict[str, Any] | None,
    until_decision: Callable[[Decision, int, int], str],
) -> list[str]:
    """The cells of a member."""
    steps = member.actor_steps
    episodes = member.manifest.episodes if member.manifest else 0
    if progress is not None:
        steps, episodes = progress["counts"]["actor_steps"], progress["counts"]["episodes"]
    state = "left out" if member.left_out else "playing" if plays else "waiting"
    values = map(text, member.decision.new.values())
    return [
        name_of(number),
        state,
        f"{steps:,}",
        _score(member, progress),
        *values,
        until_decision(member.decision, steps, episodes),
    ]


def text(value: Any) -> str:
    """A hyperparameter's value."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _score(member: Member, progress: dict[str, Any] | None) -> str:
    """Its score; of one that plays what it returned lately, if it did."""
    score = member.score
    if progress is not None:
        returns = [value for value in progress["returns"].values() if not math.isnan(value)]
        if progress["aggregates"]:
            score = progress["aggregates"]["mean_capped"]
        elif returns:
            score = sum(returns) / len(returns)
    return "-" if math.isnan(score) else f"{score:.4g}"
