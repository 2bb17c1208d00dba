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
    """Actor steps and return of a run's logs so far, as the curve has them."""
    suite, all_actors = (
        log_reader.read(folder.log(label), most_rows=curve.MOST_POINTS)
        for label in ("tasks", "actor")
    )
    if len(suite):
        steps, returns = suite.defined("actor_steps", "median_normalised")
        return list(zip(steps.tolist(), (100 * returns).tolist(), strict=True))
    steps, returns = all_actors.defined("actor_steps", "episode_return")
    return list(zip(steps.tolist(), returns.tolist(), strict=True))


def rows(progress: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of everything that is known."""
    counts, rates = progress["counts"], progress["rates"]
    learners, evaluations = progress["learners"], progress["evaluations"]
    of_agents = []
    for i, (name, learner) in enumerate(learners.items()):
        of = f"{name}: " if len(learners) > 1 else ""
        rate = (
            "" if i else f"  ({rates['learner_steps']:.2f}/s)"
        )  # of the one that paces the actors
        of_agents += [
            (f"{of}updates", f"{learner['learner_steps']:,}{rate}"),
            *_known(f"{of}parameter lag", learner.get("parameter_lag"), " updates"),
            *_known(f"{of}loss", learner.get("loss")),
            *_waiting(of, learner.get("waiting_for_peers")),
            *_evaluated(f"{of}evaluated return", evaluations.get(name)),
        ]
    return [
        *_acting(*progress["acting"]),
        ("actor steps", f"{counts['actor_steps']:,}  ({rates['actor_steps']:,.0f}/s)"),
        ("replay", _replay(progress["replay_size"], progress["filling"])),
        ("replays per observation", f"{progress['replays_per_observation']:.2f}"),
        ("episodes", f"{counts['episodes']:,}"),
        *_lost(counts["environments_lost"]),
        *_left_out(progress["left_out"]),
        *_returns(progress["returns"], progress["aggregates"]),
        *of_agents,
        ("time", _duration(counts["walltime"])),
        *_end(progress),
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


def _known(name: str, value: float | None, unit: str = "") -> list[tuple[str, str]]:
    """What an agent's learner logs, once it did; not every agent logs all."""
    return [] if value is None or math.isnan(value) else [(name, _number(value, unit))]


def _end(progress: dict[str, Any]) -> list[tuple[str, str]]:
    """Why the run is ending, or when it will, if it has a limit."""
    if progress["reason"]:
        return [("ending", f"{progress['reason']}; saving")]
    has_limit = any(limit is not None for limit in progress["limits"].values())
    return [("time left", time_left(progress))] if has_limit else []


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
    """The curve's one number: a task's return, of several the median in percent of human play.

    Tasks without human scores have no unit in common: there is none of several.
    """
    returns = list(progress["returns"].values())
    if len(returns) == 1:
        return float(returns[0])
    return 100 * float(progress["aggregates"].get("median_normalised", math.nan))


def _evaluated(name: str, evaluation: dict[str, float] | None) -> list[tuple[str, str]]:
    """The newest evaluation, if there is any: as `_one_return`, else each of a few tasks."""
    if evaluation is None:
        return []
    at = f"  at update {evaluation['learner_steps']:,}"
    of_tasks = {c.partition("/")[2]: v for c, v in evaluation.items() if c.startswith("return/")}
    if "median_normalised" in evaluation:
        return [(name, f"{task_returns.percent(evaluation)}{at}")]
    if not of_tasks:
        return [(name, f"{_number(evaluation['episode_return'])}{at}")]
    few = list(of_tasks.items()) if len(of_tasks) <= LISTED_TASKS else []
    return [(f"{name}, {task}", f"{_number(value)}{at}") for task, value in few]


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
      earlier: actor steps and return, of which the curve is to begin.
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
