"""The launching terminal's view of a run: a live table and a curve, or plain lines elsewhere."""

import contextlib
import datetime
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from rich import box
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from run_folder import log_reader, task_returns
from run_folder.layout import RunFolder

LINE_SECONDS = 10.0
LISTED_TASKS = 4  # as many have a row each
CURVE_COLUMNS, WIDEST_CURVE = 40, 100  # characters of a terminal that a curve takes
MOST_POINTS = 400  # of a curve; twice as many are thinned out
_BLANK = 0x2800  # of Unicode: braille without dots
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a cell
_NUMBER = 8  # characters of a number beside the curve

AnyDrawing = TypeVar("AnyDrawing", bound="Drawing")
Rows = list[tuple[str, str]]


class _Output(Console):
    """Standard output. Where nobody reads it any more, rich would end the process."""

    def on_broken_pipe(self) -> None:
        """Prints into nothing from here on."""
        with contextlib.suppress(SystemExit):
            super().on_broken_pipe()


class Drawing:
    """A context manager that redraws in place, with lines that stay above.

    A terminal that is gone, or a reader, ends nothing.

    Args:
      title: what is drawn.
      console: where to draw; standard output by default.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = console or _Output()
        # In one that cannot move its cursor, as an editor's shell, rich would draw the end alone.
        redraws = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = Live(console=self._console, refresh_per_second=2) if redraws else None
        self._next_line = 0.0  # when there is one again where nothing can be redrawn

    def __enter__(self: AnyDrawing) -> AnyDrawing:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.stop()

    def tell(self, sentence: str) -> None:
        """Prints a line that stays, above what is redrawn."""
        with contextlib.suppress(OSError):
            self._console.print(sentence, soft_wrap=True, highlight=False, markup=False)


class View(Drawing):
    """Draws a run's progress; its curve begins with earlier actor steps and returns."""

    def __init__(
        self,
        title: str,
        console: Console | None = None,
        earlier: Iterable[tuple[float, float]] = (),
    ) -> None:
        super().__init__(title, console)
        self._returns = Curve(earlier)

    def show(self, progress: dict[str, Any], restarts: int = 0) -> None:
        """Draws the newest progress; a line every ten seconds where nothing can be redrawn."""
        self._returns.add(progress["counts"]["actor_steps"], _one_return(progress))
        if self._live is not None:
            self._live.update(self.drawn(progress, restarts))
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            self.tell(", ".join(f"{name} {value}" for name, value in rows(progress, restarts)))

    def drawn(self, progress: dict[str, Any], restarts: int = 0) -> RenderableType:
        """A table, and where the terminal has room for it the returns' curve on its right."""
        table = Table(title=self._title, box=box.SIMPLE, show_header=False)
        table.add_column(style="dim")
        table.add_column(min_width=30)
        for row in rows(progress, restarts):
            table.add_row(*row)
        room = self._console.width - self._console.measure(table).maximum
        if room < CURVE_COLUMNS or not self._returns.is_drawn:
            return table
        width = min(room, WIDEST_CURVE) - 2
        curve = Text("\n".join(["", *self._returns.lines(width, table.row_count - 1)]))
        return Columns([table, curve])


def earlier(folder: RunFolder) -> list[tuple[float, float]]:
    """Actor steps and return of a run's logs so far, as the curve has them."""
    suite, all_actors = (
        log_reader.read(folder.log(label), most_rows=MOST_POINTS) for label in ("tasks", "actor")
    )
    if len(suite):
        steps, returns = suite.defined("actor_steps", "median_normalised")
        return list(zip(steps.tolist(), (100 * returns).tolist(), strict=True))
    steps, returns = all_actors.defined("actor_steps", "episode_return")
    return list(zip(steps.tolist(), returns.tolist(), strict=True))


def _one_return(progress: dict[str, Any]) -> float:
    """The curve's one number: a task's return, of several the median in percent of human play.

    Tasks without human scores have no unit in common: there is none of several.
    """
    returns = list(progress["returns"].values())
    if len(returns) == 1:
        return float(returns[0])
    return 100 * float(progress["aggregates"].get("median_normalised", math.nan))


def rows(progress: dict[str, Any], restarts: int = 0) -> Rows:
    """Name and value of everything that is known."""
    counts, rates = progress["counts"], progress["rates"]
    acting, actors = progress["acting"]
    shown = [("acting", f"{acting:,} of {actors:,} actors")] * (acting < actors)
    shown += [
        ("actor steps", f"{counts['actor_steps']:,}  ({rates['actor_steps']:,.0f}/s)"),
        ("replay", _replay(progress["replay_size"], progress["filling"])),
        ("replays per observation", f"{progress['replays_per_observation']:.2f}"),
        ("episodes", f"{counts['episodes']:,}"),
    ]
    if lost := counts["environments_lost"]:
        shown.append(("environments lost", f"{lost:,}, all replaced"))
    if left_out := list(progress["left_out"].items()):
        few = [f"{task} by {actors:,}" for task, actors in left_out[:LISTED_TASKS]]
        more = [f"{len(left_out) - LISTED_TASKS} more"] * (len(left_out) > LISTED_TASKS)
        shown.append(("left out", ", ".join([*few, *more])))
    shown += _returns(progress["returns"], progress["aggregates"])
    for i, (name, learner) in enumerate(progress["learners"].items()):
        of = f"{name}: " if len(progress["learners"]) > 1 else ""
        rate = "" if i else f"  ({rates['learner_steps']:.2f}/s)"  # of the pacing learner
        shown += [(f"{of}{column}", value) for column, value in _learner(learner, rate)]
        if evaluation := progress["evaluations"].get(name):
            shown += _evaluated(f"{of}evaluated return", evaluation)
    if goal := progress["goal"]:
        shown.append(("until a return of", _goal(goal)))
    shown.append(("time", _duration(counts["walltime"])))
    if progress["reason"]:
        shown.append(("ending", f"{progress['reason']}; saving"))
    elif any(limit is not None for limit in progress["limits"].values()):
        shown.append(("time left", time_left(progress)))
    return shown + [("restarts", f"{restarts:,}")] * bool(restarts)


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


def _returns(returns: dict[str, float], aggregates: dict[str, float]) -> Rows:
    """The latest returns: one task's, or what the tasks' amount to."""
    if len(returns) == 1:
        return [("recent return", _number(value)) for value in returns.values()]
    played = sum(not math.isnan(value) for value in returns.values())
    shown = [("tasks", f"{len(returns)}, an episode has ended in {played}")]
    if aggregates:
        shown.append(("human-normalised", task_returns.percent(aggregates)))
    if len(returns) <= LISTED_TASKS:
        shown += [(f"recent return, {task}", _number(value)) for task, value in returns.items()]
    return shown


def _learner(learner: dict[str, float], rate: str) -> Rows:
    """Columns of a learner's log, once there are any; not every agent logs all."""
    known = {name: value for name, value in learner.items() if not math.isnan(value)}
    shown = [("updates", f"{learner['learner_steps']:,}{rate}")]
    if "parameter_lag" in known:
        shown.append(("parameter lag", f"{_number(known['parameter_lag'])} updates"))
    if "loss" in known:
        shown.append(("loss", _number(known["loss"])))
    if "waiting_for_peers" in known:
        shown.append(("waiting for peers", f"{known['waiting_for_peers']:.0%} of the time"))
    return shown


def _evaluated(name: str, evaluation: dict[str, float]) -> Rows:
    """The newest evaluation: as `_one_return`, else each of a few tasks."""
    at = f"  at update {evaluation['learner_steps']:,}"
    of_tasks = task_returns.of_columns(evaluation)
    if "median_normalised" in evaluation:
        return [(name, f"{task_returns.percent(evaluation)}{at}")]
    if not of_tasks:
        return [(name, f"{_number(evaluation['episode_return'])}{at}")]
    few = list(of_tasks.items()) if len(of_tasks) <= LISTED_TASKS else []
    return [(f"{name}, {task}", f"{_number(value)}{at}") for task, value in few]


def _goal(goal: dict[str, Any]) -> str:
    """A return, and of several evaluations how many in a row have reached it."""
    wanted, so_far = goal["evaluations"], goal["in_a_row"]
    counted = f"  in {so_far:,} of {wanted:,} evaluations in a row" * (wanted > 1)
    return f"{_number(goal['until_return'])}{counted}"


def time_left(progress: dict[str, Any]) -> str:
    """Until the first limit is reached at the present rate."""
    rates = progress["rates"] | {"walltime": 1.0}
    seconds = [
        (limit - progress["counts"][name]) / rates[name]
        for name, limit in progress["limits"].items()
        if limit is not None and rates[name] > 0
    ]
    return _duration(max(min(seconds), 0)) if seconds else "-"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.4g}"


def _duration(seconds: float) -> str:
    return str(datetime.timedelta(seconds=int(seconds)))


class Curve:
    """A curve in braille, of points (x, y) as they come, x never falling."""

    def __init__(self, points: Iterable[tuple[float, float]] = ()) -> None:
        self._points: list[tuple[float, float]] = []
        for x, y in points:
            self.add(x, y)

    @property
    def is_drawn(self) -> bool:
        """Whether there is enough to be drawn."""
        return len(self._points) > 1

    def add(self, x: float, y: float) -> None:
        """Adds a point, unless y is NaN; those that are not before it go."""
        if math.isnan(y):
            return
        while self._points and self._points[-1][0] >= x:
            self._points.pop()  # a run that went back draws from there on
        self._points.append((x, y))
        if len(self._points) > 2 * MOST_POINTS:
            self._points = self._points[::2] + self._points[-1:] * (len(self._points) % 2 == 0)

    def lines(self, width: int, height: int) -> list[str]:
        """So many lines: its greatest and least y are on the left, its last x is below."""
        columns, rows = width - _NUMBER - 1, max(1, height - 1)
        x, y = np.array(self._points).T
        cells = [[0] * columns for _ in range(rows)]
        for column, dots in enumerate(_dots(x, y, 2 * columns, 4 * rows)):
            for row in dots:
                cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
        sides = [_side(y.max()), *[""] * (rows - 2), *([_side(y.min())] if rows > 1 else [])]
        drawn = [
            f"{side:>{_NUMBER}} {''.join(chr(_BLANK + cell) for cell in line)}"
            for side, line in zip(sides, cells, strict=True)
        ]
        below = f"{x[0]:,.0f} to {x[-1]:,.0f} steps: recent return"
        return [*drawn, f"{'':{_NUMBER}} {below[:columns]}"]


def _dots(x: np.ndarray, y: np.ndarray, columns: int, rows: int) -> Iterator[range]:
    """The rows of dots that each column of them has: from the one before on, without a gap."""
    values = np.interp(np.linspace(x[0], x[-1], columns), x, y)
    low, high = y.min(), y.max()
    shares = (values - low) / (high - low) if high > low else np.full(columns, 0.5)
    found = np.rint((1 - shares) * (rows - 1)).astype(int).tolist()
    for before, row in zip([found[0], *found], found, strict=False):
        yield range(min(before, row), max(before, row) + 1)


def _side(value: float) -> str:
    text = f"{value:.4g}"
    return text if len(text) <= _NUMBER else f"{value:.1e}"
