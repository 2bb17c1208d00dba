"""Measures a run as R2D2's paper does, and writes the results: a table, a file, a figure.

*Discrepancy* (Figure 1): the error of action values where training has to find the recurrent state
of a sequence. Actors play with the parameters of each of the newest snapshots, and the learner's
newest parameters look back at their sequences: `r2d2.diagnosis`. The lag tells which of the
snapshots is as old as the experience that the learner sees.

*Lag* (Figure 6): how many updates old the parameters are whose experience is replayed.

*Memory* (Figure 5): what a policy loses when it remembers its last k inputs only.
"""

import contextlib
import csv
import dataclasses
import itertools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from agents.actor import Writer, make_actor
from agents.contract import Policy
from agents.environment_loop import VectorEnvironmentLoop
from agents.limited_memory import limit_memory
from analysis import saved_replay
from analysis.playing import evaluation, intervals
from analysis.playing.evaluation import Player
from r2d2.diagnosis import (
    Means,
    Played,
    Recorder,
    Strategy,
    cut_sequences,
    make_limited_policy,
    q_discrepancies,
)
from replay.layout import Layout
from replay.structures import Nest
from run_folder import building, checkpoints, log_reader, places
from run_folder.checkpoints import CheckpointError
from run_folder.layout import learner_label
from run_folder.settings import Settings, SettingsError

_MOST_SNAPSHOTS = 4
_ENVIRONMENTS = 8  # in which actors play for the discrepancy
_WINDOWS = 25  # rows of each of them, in units of burn-in and trained steps
_HUES = {"zero": "Reds", "stored": "Blues"}
_LINE, _OTHER_LINE = "#1f6fb4", "#cf4b3a"
_BINS = 12  # of the lags' histogram
_WIDTH = 80  # of a table, where nobody says how wide the lines may be
_literal = matplotlib.rc_context({"text.parse_math": False})  # a task's name is none

Tell = Callable[[str], None]  # shows which part comes next


class Wanted(NamedTuple):
    """The measurements to make; an empty sequence stands for all that make sense."""

    run: Settings
    agent: str
    analyses: Sequence[str]
    burn_ins: Sequence[int]
    sequences: int
    replay_samples: int
    memories: Sequence[int]
    memory_episodes: int
    seed: int


class Measured(NamedTuple):
    """The outcome of one analysis."""

    title: str
    rows: Sequence[Any]  # dataclasses of one type
    figure: Figure


def diagnose(wanted: Wanted, console: Console) -> None:
    """Does one analysis after the other; prints and writes the results of each.

    Raises:
      SettingsError: the run lacks what an analysis needs. Of an analysis that nobody named this is
        printed instead.
    """
    all_or_nothing = bool(wanted.analyses)
    wanted = _completed(wanted)
    folder = wanted.run.folder.diagnostics
    paths = {analysis: folder / f"{analysis}-{wanted.agent}" for analysis in wanted.analyses}
    files = [path.with_suffix(suffix) for path in paths.values() for suffix in (".csv", ".png")]
    places.refuse_links(folder, *files)
    folder.mkdir(exist_ok=True)  # or it is told now, and not after minutes
    for analysis, path in paths.items():
        try:
            with Console(stderr=True).status(analysis) as status:
                measured = _MEASURES[analysis](wanted, status.update)
        except SettingsError as error:
            if all_or_nothing or isinstance(error, CheckpointError):
                raise
            console.print(f"{analysis}: {error}\n", soft_wrap=True, highlight=False, markup=False)
            continue
        _write(path.with_suffix(".csv"), measured.rows)
        measured.figure.savefig(path.with_suffix(".png"), dpi=130)
        show(console, measured.title, measured.rows)
        console.print(f"{path}.csv and .png\n", soft_wrap=True, highlight=False, markup=False)


def _completed(wanted: Wanted) -> Wanted:
    """The same, with the analyses and burn-ins that suit the agent where none were named.

    Raises:
      SettingsError: a named analysis does not suit the agent.
    """
    run, name = wanted.run, wanted.agent
    evaluation.check_agent(run, name)
    agent, obstacle = building.make_agent(run, name), ""
    if not agent.has_action_values:
        obstacle = f"compares action values, and {name} learns none"
    elif not agent.is_recurrent:
        obstacle = f"looks at a recurrent state, and {name} is feed-forward"
    for analysis in wanted.analyses:
        if obstacle and analysis != "lag":
            raise SettingsError(f"--analyses={analysis} {obstacle}.")
    return wanted._replace(
        analyses=wanted.analyses or (["lag"] if obstacle else list(_MEASURES)),
        burn_ins=wanted.burn_ins or default_burn_ins(agent.tables[0].layout),
    )


def default_burn_ins(layout: Layout) -> list[int]:
    """0, the paper's 20 and 40 in proportion to its 80 trained steps, and the run's own."""
    return sorted({0, layout.length // 4, layout.length // 2, layout.burn_in})


def _write(path: pathlib.Path, rows: Sequence[Any]) -> None:
    """Writes dataclasses of one type as CSV, a column for each field; None is an empty cell."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(field.name for field in dataclasses.fields(rows[0]))
        writer.writerows(map(dataclasses.astuple, rows))


def show(console: Console, title: str, rows: Sequence[Any]) -> None:
    """Prints rows, numbers to four digits, in a table for each task where they have tasks.

    A terminal of 80 columns has no room for the task as another column.
    """
    for task, found in itertools.groupby(rows, lambda row: getattr(row, "task", None)):
        of_task = [dataclasses.asdict(row) for row in found]
        heading = f"{title}, {task}" if task else title
        table = Table(title=Text(heading), title_justify="left", box=None, header_style="bold")
        names = [name for name in of_task[0] if name != "task"]
        for name in names:
            is_text = isinstance(of_task[0][name], str)
            justify: JustifyMethod = "left" if is_text else "right"
            table.add_column(name.replace("_", "\n"), justify=justify, overflow="fold")
        for row in of_task:
            table.add_row(*(_text(row[name]) for name in names))
        console.print(table, width=None if console.is_terminal else _WIDTH)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return "all" if value is None else str(value)


@contextlib.contextmanager
def _acting(
    player: Player, task: str, policy: Policy, writer: Writer, count: int, state: Nest = None
) -> Iterator[VectorEnvironmentLoop]:
    """So many environments of a task in which a policy acts; its state is as for `make_actor`."""
    how: dict[str, Any] = dict(num_environments=count, writer=writer, initial_state=state)
    actor = make_actor(player.agent, player.network, policy, **how)
    with contextlib.closing(player.environments(task, count)) as environments:
        yield VectorEnvironmentLoop(environments, actor, [task] * count)


@dataclasses.dataclass(frozen=True)
class Discrepancy:
    """ΔQ of many sequences: a bar in each panel of the figure."""

    task: str
    parameter_lag: int  # updates between the parameters that acted and those that look back
    start: str  # the state that the unroll begins with: `zero` or `stored`
    burn_in: int  # steps that are unrolled before the first trained one
    first_mean: float  # at the first trained step, over the sequences
    first_median: float  # the same; a sequence whose values are all near 0 weighs little in it
    last_mean: float  # at the last trained step
    last_median: float  # the same
    sequences: int  # how many there were


def _measure_discrepancy(wanted: Wanted, tell: Tell) -> Measured:
    """ΔQ for each task, snapshot and strategy.

    Raises:
      SettingsError: the tasks' episodes are too short.
      CheckpointError: nothing was saved, or it is damaged.
    """
    run, name, seed = wanted.run, wanted.agent, wanted.seed
    learner = evaluation.load(run, name)
    newest = learner.played.learner_steps
    older = [s for s in checkpoints.kept_steps(run.folder.checkpoints, name) if s < newest]
    older = sorted(older, reverse=True)[: _MOST_SNAPSHOTS - 1]
    actors = [learner, *(evaluation.load(run, name, checkpoint=step) for step in older)]
    strategies = [Strategy(stored, n) for stored in (False, True) for n in wanted.burn_ins]
    layout = dataclasses.replace(learner.agent.tables[0].layout, burn_in=max(wanted.burn_ins))
    rows = []
    for task, actor in itertools.product(run.tasks, actors):
        lag = newest - actor.played.learner_steps
        tell(f"{task}: acting with the parameters of {lag:,} updates ago")
        played = _record(actor, task, _WINDOWS * (layout.burn_in + layout.length), seed)
        try:
            cuts = cut_sequences(played, layout, wanted.sequences, seed)
        except ValueError as error:
            raise SettingsError(f"{task}: {error}") from None
        tell(f"{task}, lag {lag:,}: looking back at {len(cuts.trained):,} sequences")
        found = q_discrepancies(learner.network, played, cuts, strategies, layout.frame_stack)
        for (stored, burn_in), (first, last) in found.items():
            row = Discrepancy(
                task=task,
                parameter_lag=lag,
                start="stored" if stored else "zero",
                burn_in=burn_in,
                first_mean=float(np.mean(first)),
                first_median=float(np.median(first)),
                last_mean=float(np.mean(last)),
                last_median=float(np.median(last)),
                sequences=len(cuts.trained),
            )
            rows.append(row)
    return Measured("Q-value discrepancy (Figure 1)", rows, draw_discrepancy(rows))


def _record(player: Player, task: str, rows: int, seed: int) -> Played:
    """Plays with a player's parameters and with epsilons from all over the run's ladder."""
    agent, network, num_actors = player.agent, player.network, player.run.num_actors
    ranks = np.linspace(0, num_actors - 1, _ENVIRONMENTS).round().astype(int)
    policy, recorder = agent.make_policy(network, ranks, num_actors, seed), Recorder()
    with _acting(player, task, policy, recorder, _ENVIRONMENTS) as loop:
        for _ in range(rows):
            loop.step()
    return recorder.played(resets_on_life_loss=agent.resets_on_life_loss)


@_literal
def draw_discrepancy(rows: Sequence[Discrepancy]) -> Figure:
    """Figure 1b: a group of bars for each lag; the longer the burn-in, the darker."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    figure = Figure(figsize=(9.5, 3.2 * len(tasks) + 0.7), layout="constrained")
    panels = figure.subplots(len(tasks), 2, sharey="row", squeeze=False)
    for task, (first, last) in zip(tasks, panels, strict=True):
        of_task = [row for row in rows if row.task == task]
        _draw_bars(first, of_task, [row.first_mean for row in of_task])
        _draw_bars(last, of_task, [row.last_mean for row in of_task])
        _label(first, f"{task}, first trained step", "parameter lag (updates)")
        _label(last, f"{task}, last trained step", "parameter lag (updates)")
        first.set_ylabel("ΔQ (mean over sequences)")
    names = panels[0, 0].get_legend_handles_labels()
    figure.legend(*names, loc="outside lower center", ncols=len(_HUES), frameon=False, fontsize=8)
    return figure


def _draw_bars(axes: Axes, rows: Sequence[Discrepancy], heights: Sequence[float]) -> None:
    lags = sorted({row.parameter_lag for row in rows})
    burn_ins = sorted({row.burn_in for row in rows})
    by_row = {(r.start, r.burn_in, r.parameter_lag): h for r, h in zip(rows, heights, strict=True)}
    strategies = list(itertools.product(_HUES, burn_ins))
    width = 0.8 / len(strategies)
    for i, (start, burn_in) in enumerate(strategies):
        shade = 0.35 + 0.5 * burn_ins.index(burn_in) / max(len(burn_ins) - 1, 1)
        axes.bar(
            np.arange(len(lags)) - 0.4 + width * (i + 0.5),
            [by_row[start, burn_in, lag] for lag in lags],
            width,
            color=colormaps[_HUES[start]](shade),
            label=f"{start} state, burn-in {burn_in}",
        )
    axes.set_xticks(np.arange(len(lags)), [f"{lag:,}" for lag in lags])


@dataclasses.dataclass(frozen=True)
class Lag:
    """One distribution of parameter lags, in updates."""

    of: str  # `logged`: of batches; `sampled` from the saved replay; `stored`: its items alike
    mean: float  # of the lags
    p10: float  # a tenth of them are smaller
    median: float  # half of them are
    p90: float  # nine tenths are
    count: int  # rows of the log, or samples


class Lags(NamedTuple):
    """A run's parameter lag, over time and in its saved replay."""

    learner_steps: np.ndarray  # [rows] of the log
    logged: np.ndarray  # [rows] mean lag of the batches since the row before
    replay: saved_replay.Sampled | None  # None where no replay was saved

    def rows(self) -> list[Lag]:
        """The distributions in figures."""
        found = []
        if len(self.logged):
            found.append(_distribution("logged", self.logged, np.ones(len(self.logged))))
        if self.replay is not None:
            lag, probability = self.replay
            found.append(_distribution("sampled", lag, np.ones(len(lag))))
            found.append(_distribution("stored", lag, 1 / probability))
        return found


def _distribution(of: str, lag: np.ndarray, weights: np.ndarray) -> Lag:
    p10, median, p90 = (weighted_quantile(lag, weights, q) for q in (0.1, 0.5, 0.9))
    return Lag(of, float(np.average(lag, weights=weights)), p10, median, p90, len(lag))


def weighted_quantile(values: np.ndarray, weights: np.ndarray, quantile: float) -> float:
    """The least of values `[M]` with at least that part, 0 to 1, of the weights `[M]` up to it."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, quantile * below[-1])])


def read_lags(run: Settings, name: str, samples: int) -> Lags:
    """Reads an agent's log, and draws at most so many samples of its saved replay.

    Raises:
      SettingsError: nothing was logged yet, and no replay was saved.
      CheckpointError: the checkpoint is damaged.
    """
    path = run.folder.log(learner_label(name))
    steps, logged = log_reader.read(path).defined("learner_steps", "parameter_lag")
    lags = Lags(steps, logged, saved_replay.sample(run, name, samples))
    if not lags.rows():
        raise SettingsError(
            f"{run.path} has neither logged a parameter lag nor saved a replay: {path} has none."
        )
    return lags


def _measure_lag(wanted: Wanted, tell: Tell) -> Measured:
    lags = read_lags(wanted.run, wanted.agent, wanted.replay_samples)
    return Measured("Parameter lag, updates (Figure 6)", lags.rows(), draw_lags(lags))


@_literal
def draw_lags(lags: Lags) -> Figure:
    """Figure 6, left, over the whole run; beside it the distribution in the saved replay."""
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    over_time, of_replay = figure.subplots(1, 2)
    over_time.plot(lags.learner_steps, lags.logged, color=_LINE)
    _label(over_time, "Of the batches, as logged", "updates")
    over_time.set_ylabel("mean parameter lag (updates)")
    over_time.set_ylim(bottom=0)
    _label(of_replay, "Of the items in the saved replay", "parameter lag (updates)")
    of_replay.set_ylabel("part of the items")
    if lags.replay is None:
        of_replay.text(0.5, 0.5, "none was saved", ha="center", transform=of_replay.transAxes)
        return figure
    values, probability = lags.replay
    edges = np.linspace(0, max(values.max(), 1), _BINS + 1)
    for label, weights, colour in (
        ("as sampled", np.ones(len(values)), _LINE),
        ("all alike", 1 / probability, _OTHER_LINE),
    ):
        heights, _ = np.histogram(values, edges, weights=weights / weights.sum())
        of_replay.stairs(heights, edges, color=colour, label=label)
    of_replay.legend(frameon=False, fontsize=8)
    return figure


@dataclasses.dataclass(frozen=True)
class Memory:
    """The greedy policy with one length of memory: a point in each panel of the figure."""

    task: str
    memory_steps: int | None  # k, inputs remembered; None for all
    episode_return: float  # mean over the episodes, undiscounted and unclipped
    low: float  # of the mean's 95% interval
    high: float  # of it
    greedy_match: float  # part of the steps at which the unlimited policy would act alike
    # Mean of |max_a Q_k(a) − max_a Q_∞(a)|, in the units of the network's outputs.
    q_difference: float
    episodes: int  # how many were played


def _measure_memory(wanted: Wanted, tell: Tell) -> Measured:
    """Plays each task with each memory, and without a limit.

    Raises:
      CheckpointError: nothing was saved, or it is damaged.
    """
    player = evaluation.load(wanted.run, wanted.agent, seed=wanted.seed)
    rows = []
    for task in player.tasks:
        for k in (*sorted(wanted.memories), None):
            tell(f"{task}: remembering {'all' if k is None else f'{k:,} inputs'}")
            rows.append(_remembering(player, task, k, wanted.memory_episodes))
    return Measured("Limited memory (Figure 5)", rows, draw_memory(rows))


def _remembering(player: Player, task: str, memory_steps: int | None, episodes: int) -> Memory:
    network, values = player.network, Means()
    limited = network if memory_steps is None else limit_memory(network, memory_steps)
    policy = make_limited_policy(limited, network)
    state = limited.initial_state(episodes), network.initial_state(episodes)
    with _acting(player, task, policy, values, episodes, state) as loop:
        returns = np.array([episode.episode_return for episode in loop.run_episodes()])
    low, high = intervals.of_mean(returns)
    mean = float(returns.mean())
    return Memory(task, memory_steps, mean, low, high, episodes=episodes, **values.means())


@_literal
def draw_memory(rows: Sequence[Memory]) -> Figure:
    """Figure 5: a row of panels for each task; memory shrinks to the right, as in the paper."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    figure = Figure(figsize=(11.0, 3.2 * len(tasks)), layout="constrained")
    panels = figure.subplots(len(tasks), 3, squeeze=False)
    for task, (returns, match, difference) in zip(tasks, panels, strict=True):
        of_task = [row for row in rows if row.task == task][::-1]  # without a limit first
        place = np.arange(len(of_task))
        mean = np.array([row.episode_return for row in of_task])
        ends = np.array([(row.low, row.high) for row in of_task]).T
        returns.errorbar(place, mean, np.abs(ends - mean), fmt="o-", color=_LINE, capsize=3)
        match.plot(place, [100 * row.greedy_match for row in of_task], "o-", color=_LINE)
        match.set_ylim(0, 105)
        difference.plot(place, [row.q_difference for row in of_task], "o-", color=_LINE)
        difference.set_ylim(bottom=0)
        names = ["∞" if row.memory_steps is None else str(row.memory_steps) for row in of_task]
        titles = (f"{task}: mean episode return", "% greedy action match", "difference of max Q")
        for axes, title in zip((returns, match, difference), titles, strict=True):
            axes.set_xticks(place, names)
            _label(axes, title, "k, inputs remembered")
    return figure


def _label(axes: Axes, title: str, x_label: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x_label)
    axes.grid(alpha=0.2)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


_MEASURES: dict[str, Callable[[Wanted, Tell], Measured]] = {
    "discrepancy": _measure_discrepancy,
    "lag": _measure_lag,
    "memory": _measure_memory,
}
