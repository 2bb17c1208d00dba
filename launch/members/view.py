"""The members of a population on a terminal, in a table; elsewhere in lines."""

import math
import time
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from launch.local.view import Drawing
from population import rule, scores
from population.decisions import Decision, Member
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
    ) -> None:
        """Draws all members; where nothing can be redrawn, prints lines every half minute.

        `members` are as they were when their last turns ended. `playing` has the progress of each
        whose turn it is.
        """
        rows = [
            row(population, number, member, number in playing, playing.get(number))
            for number, member in members.items()
        ]
        if self._live is not None:
            table = Table(title=self._title, box=box.SIMPLE)
            for name in ("", "state", "steps", "score", *population.sweep, "decides"):
                table.add_column(name, justify="right" if name in ("steps", "score") else "left")
            for cells in rows:
                table.add_row(*cells)
            self._live.update(table)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            for number, state, steps, score, *_ in rows:
                if number in map(name_of, playing):
                    self.tell(f"member {number} {state}, {steps} steps, score {score}")


def row(
    population: Population,
    number: int,
    member: Member,
    plays: bool,
    progress: dict[str, Any] | None,
) -> list[str]:
    """The cells of a member."""
    steps, score = member.actor_steps, member.score
    episodes = member.manifest.episodes if member.manifest else 0
    if progress is not None:
        steps, episodes = progress["counts"]["actor_steps"], progress["counts"]["episodes"]
        lately = scores.of_returns(progress["returns"])
        score = score if math.isnan(lately) else lately
    return [
        name_of(number),
        "left out" if member.left_out else "playing" if plays else "waiting",
        f"{steps:,}",
        "-" if math.isnan(score) else f"{score:.4g}",
        *map(text, member.decision.new.values()),
        rule.until_decision(population, steps, episodes - member.decision.episodes) or "ready",
    ]


def text(value: Any) -> str:
    """A hyperparameter's value."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def sentence(decision: Decision) -> str:
    """A decision in words."""
    shown = ", ".join(f"{name} {text(value)}" for name, value in decision.new.items())
    score = "no score" if decision.score is None else f"{decision.score:.4g}"
    rival = "no score" if decision.rival_score is None else f"{decision.rival_score:.4g}"
    takes = "takes over" if decision.adopted is not None else "keeps its own, not"
    return (
        f"Member {name_of(decision.member)} ({score}) {takes} what member "
        f"{name_of(decision.rival or 0)} ({rival}) has; now {shown}."
    )
