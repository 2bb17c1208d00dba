"""What the launching terminal shows: a live table, or plain lines where it is no terminal."""

import contextlib
import datetime
import math
import time
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.table import Table

from run_folder import task_returns

LINE_SECONDS = 10.0
LISTED_TASKS = 4  # as many have a row each


def rows(progress: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of everything the view shows."""
    counts, rates = progress["counts"], progress["rates"]
    learners, evaluations = progress["learners"], progress["evaluations"]
    of_agents = []
    for name, learner in learners.items():
        of = f"{name}: " if len(learners) > 1 else ""
        evaluation = evaluations.get(name)
        of_agents += [
            (f"{of}updates", f"{learner['learner_steps']:,}"),
            (f"{of}parameter lag", _number(learner.get("parameter_lag"), " updates")),
            (f"{of}loss", _number(learner.get("loss"))),
            (
                f"{of}evaluated return",
                f"{_evaluated(evaluation)}  at update {evaluation['learner_steps']:,}"
                if evaluation
                else "-",
            ),
        ]
    return [
        ("actor steps", f"{counts['actor_steps']:,}  ({rates['actor_steps']:,.0f}/s)"),
        ("learner updates", f"{rates['learner_steps']:.2f}/s"),
        (
            "replay",
            "busy" if math.isnan(progress["replay_size"]) else f"{progress['replay_size']:,} items",
        ),
        ("replays per observation", f"{progress['replays_per_observation']:.2f}"),
        ("episodes", f"{counts['episodes']:,}"),
        *_lost(counts["environments_lost"]),
        *_returns(progress["returns"], progress["aggregates"]),
        *of_agents,
        ("time", _duration(counts["walltime"])),
        ("ending", f"{progress['reason']}; saving")
        if progress["reason"]
        else ("time left", time_left(progress)),
    ]


def _lost(environments: int) -> list[tuple[str, str]]:
    """Environments whose processes died, where any did."""
    return [("environments lost", f"{environments:,}, all replaced")] if environments else []


def _returns(returns: dict[str, float], aggregates: dict[str, float]) -> list[tuple[str, str]]:
    """What was returned lately: one task's, or what the tasks' amount to."""
    if len(returns) == 1:
        return [("recent return", _number(value)) for value in returns.values()]
    played = sum(not math.isnan(value) for value in returns.values())
    shown = [("tasks", f"{len(returns)}, an episode has ended in {played}")]
    if aggregates:
        shown.append(("human-normalised", task_returns.percent(aggregates)))
    if len(returns) <= LISTED_TASKS:
        shown += [(f"recent return, {task}", _number(value)) for task, value in returns.items()]
    return shown


def _evaluated(evaluation: dict[str, float]) -> str:
    if "median_normalised" in evaluation:
        return task_returns.percent(evaluation)
    return f"{evaluation['episode_return']:,.4g}"


def time_left(progress: dict[str, Any]) -> str:
    """Until the first limit is reached at the present rate."""
    seconds = [
        (limit - progress["counts"][name]) / progress["rates"][name]
        for name, limit in progress["limits"].items()
        if limit is not None and progress["rates"][name] > 0
    ]
    return _duration(max(min(seconds), 0)) if seconds else "-"


class View:
    """Draws progress while a run lasts. A context manager. A terminal that is gone ends no run.

    Args:
      title: what is being run.
      console: where to draw; standard output by default.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = console or Console()
        self._live = (
            Live(console=self._console, refresh_per_second=2) if self._console.is_terminal else None
        )
        self._next_line = 0.0

    def __enter__(self) -> "View":
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.stop()

    def show(self, progress: dict[str, Any], restarts: int = 0) -> None:
        """Draws the newest progress; a line every ten seconds where nothing can be redrawn."""
        shown = rows(progress)
        if restarts:
            shown.append(("restarts", f"{restarts:,}"))
        if self._live is not None:
            self._live.update(self._table(shown))
        elif time.time() >= self._next_line:
            self._next_line = time.time() + LINE_SECONDS
            self.tell(", ".join(f"{name} {value}" for name, value in shown))

    def tell(self, sentence: str) -> None:
        """Prints a line that stays, above what is redrawn."""
        with contextlib.suppress(OSError):
            self._console.print(sentence, soft_wrap=True, highlight=False, markup=False)

    def _table(self, shown: Sequence[tuple[str, str]]) -> Table:
        table = Table(title=self._title, box=box.SIMPLE, show_header=False)
        table.add_column(style="dim")
        table.add_column(min_width=30)
        for name, value in shown:
            table.add_row(name, value)
        return table


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None or math.isnan(value) else f"{value:,.4g}{unit}"


def _duration(seconds: float) -> str:
    return str(datetime.timedelta(seconds=int(seconds)))
