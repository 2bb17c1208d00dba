"""What the launching terminal shows: a live table, or plain lines where it is no terminal."""

import datetime
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from launch.local import curve
from launch.local.drawing import Drawing
from run_folder import log_reader, task_returns
from run_folder.layout import RunFolder

LINE_SECONDS = 10.0
LISTED_TASKS = 4  # as many have a row each
CURVE_COLUMNS, WIDEST_CURVE = 40, 100  # characters of a terminal that a curve takes


def earlier(folder: RunFolder) -> list[tuple[float, float]]:
    """Agent steps and return of a run's logs so far, as the curve has them."""
    suite, all_actors = log_reader.read(folder.log("tasks")), log_reader.read(folder.log("actor"))
    steps, returns = suite.defined("actor_steps", "median_normalised")
    if not len(steps):
        steps, returns = all_actors.defined("actor_steps", "episode_return")
        return list(zip(steps.tolist(), returns.tolist(), strict=True))
    return list(zip(steps.tolist(), (100 * returns).tolist(), strict=True))


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
            *_waiting(of, learner.get("waiting_for_peers")),
            (
                f"{of}evaluated return",
                f"{_evaluated(evaluation)}  at update {evaluation['learner_steps']:,}"
                if evaluation
                else "-",
            ),
        ]
    return [
        *_acting(*progress["acting"]),
        ("actor steps", f"{counts['actor_steps']:,}  ({rates['actor_steps']:,.0f}/s)"),
        ("learner updates", f"{rates['learner_steps']:.2f}/s"),
        ("replay", _replay(progress["replay_size"], progress["filling"])),
        ("replays per observation", f"{progress['replays_per_observation']:.2f}"),
        ("episodes", f"{counts['episodes']:,}"),
        *_lost(counts["environments_lost"]),
        *_left_out(progress["left_out"]),
        *_returns(progress["returns"], progress["aggregates"]),
        *of_agents,
        ("time", _duration(counts["walltime"])),
        ("ending", f"{progress['reason']}; saving")
        if progress["reason"]
        else ("time left", time_left(progress)),
    ]


def _replay(items: float, filling: dict[str, Sequence[int]]) -> str:
    """How full replay is; of tables that nobody learns from yet, how much they wait for."""
    if math.isnan(items):
        return "busy"
    if not filling:
        return f"{items:,} items"
    waiting = [
        f"{held:,} of {wanted:,} items" + f" for {table}" * (len(filling) > 1)
        for table, (held, wanted) in filling.items()
    ]
    return f"{', '.join(waiting)} before learning"


def _acting(acting: int, actors: int) -> list[tuple[str, str]]:
    """How many actors act, while a run begins."""
    return [("acting", f"{acting:,} of {actors:,} actors")] if acting < actors else []


def _waiting(of: str, share: float | None) -> list[tuple[str, str]]:
    """What several learners of one agent lose by being several."""
    return [] if share is None else [(f"{of}waiting for peers", f"{share:.0%} of the time")]


def _lost(environments: int) -> list[tuple[str, str]]:
    """Environments whose processes died, where any did."""
    return [("environments lost", f"{environments:,}, all replaced")] if environments else []


def _left_out(tasks: dict[str, int]) -> list[tuple[str, str]]:
    """Tasks that actors cannot play, where there are any."""
    few = [f"{task} by {actors:,}" for task, actors in list(tasks.items())[:LISTED_TASKS]]
    more = [f"{len(tasks) - LISTED_TASKS} more"] if len(tasks) > LISTED_TASKS else []
    return [("left out", ", ".join([*few, *more]))] if few else []


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


def _one_return(progress: dict[str, Any]) -> float:
    """The curve's one number: of several tasks the median in percent of human play, or the mean."""
    returns = [value for value in progress["returns"].values() if not math.isnan(value)]
    median = progress["aggregates"].get("median_normalised", math.nan)
    if not math.isnan(median):
        return 100 * median
    return sum(returns) / len(returns) if returns else math.nan


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


class View(Drawing):
    """Draws progress while a run lasts. A terminal that is gone ends no run.

    Args:
      title: what is drawn.
      console: where to draw; standard output by default.
      earlier: agent steps and return, of which the curve is to begin.
    """

    def __init__(
        self,
        title: str,
        console: Console | None = None,
        earlier: Iterable[tuple[float, float]] = (),
    ) -> None:
        super().__init__(title, console)
        self._returns = curve.Curve(earlier)

    def show(self, progress: dict[str, Any], restarts: int = 0) -> None:
        """Draws the newest progress; a line every ten seconds where nothing can be redrawn."""
        self._returns.add(progress["counts"]["actor_steps"], _one_return(progress))
        if self._live is not None:
            self._live.update(self.drawn(progress, restarts))
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            shown = _with_restarts(progress, restarts)
            self.tell(", ".join(f"{name} {value}" for name, value in shown))

    def drawn(self, progress: dict[str, Any], restarts: int = 0) -> RenderableType:
        """What a terminal shows of a run's progress."""
        return self._beside_curve(self._table(_with_restarts(progress, restarts)))

    def _beside_curve(self, table: Table) -> RenderableType:
        """The table, and where the terminal has room for it the returns' curve on its right."""
        room = self._console.width - self._console.measure(table).maximum
        if room < CURVE_COLUMNS or not self._returns.is_drawn:
            return table
        width = min(room, WIDEST_CURVE) - 2
        drawn = Text("\n".join(["", *self._returns.lines(width, table.row_count - 1)]))
        return Columns([table, drawn])

    def _table(self, shown: Sequence[tuple[str, str]]) -> Table:
        table = Table(title=self._title, box=box.SIMPLE, show_header=False)
        table.add_column(style="dim")
        table.add_column(min_width=30)
        for name, value in shown:
            table.add_row(name, value)
        return table


def _with_restarts(progress: dict[str, Any], restarts: int) -> list[tuple[str, str]]:
    return rows(progress) + [("restarts", f"{restarts:,}")] * bool(restarts)


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None or math.isnan(value) else f"{value:,.4g}{unit}"


def _duration(seconds: float) -> str:
    return str(datetime.timedelta(seconds=int(seconds)))
