"""The figures, laid out as in the paper."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.diagnosis import discrepancy, lag, memory
from analysis.literal import literal

_HUES = {"zero": "Reds", "stored": "Blues"}
_LINE = "#1f6fb4"
_BINS = 12


@literal
def of_discrepancy(rows: Sequence[discrepancy.Row]) -> Figure:
    """Figure 1b: a group of bars for each lag; the longer the burn-in, the darker."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    figure = Figure(figsize=(9.5, 3.2 * len(tasks) + 0.7), layout="constrained")
    panels = figure.subplots(len(tasks), 2, sharey="row", squeeze=False)
    for task, (first, last) in zip(tasks, panels, strict=True):
        of_task = [row for row in rows if row.task == task]
        _bars(first, of_task, [row.first_mean for row in of_task])
        _bars(last, of_task, [row.last_mean for row in of_task])
        first.set_title(f"{task}, first trained step", loc="left", fontsize=10)
        last.set_title(f"{task}, last trained step", loc="left", fontsize=10)
        first.set_ylabel("ΔQ (mean over sequences)")
    names = panels[0, 0].get_legend_handles_labels()
    figure.legend(*names, loc="outside lower center", ncols=len(_HUES), frameon=False, fontsize=8)
    return figure


def _bars(axes: Axes, rows: Sequence[discrepancy.Row], heights: Sequence[float]) -> None:
    lags = sorted({row.parameter_lag for row in rows})
    burn_ins = sorted({row.burn_in for row in rows})
    strategies = [(start, burn_in) for start in _HUES for burn_in in burn_ins]
    width = 0.8 / len(strategies)
    for i, (start, burn_in) in enumerate(strategies):
        shade = 0.35 + 0.5 * burn_ins.index(burn_in) / max(len(burn_ins) - 1, 1)
        by_lag = {
            row.parameter_lag: height
            for row, height in zip(rows, heights, strict=True)
            if (row.start, row.burn_in) == (start, burn_in)
        }
        axes.bar(
            np.arange(len(lags)) - 0.4 + width * (i + 0.5),
            [by_lag[parameter_lag] for parameter_lag in lags],
            width,
            color=colormaps[_HUES[start]](shade),
            label=f"{start} state, burn-in {burn_in}",
        )
    axes.set_xticks(np.arange(len(lags)), [f"{parameter_lag:,}" for parameter_lag in lags])
    axes.set_xlabel("parameter lag (updates)")
    _plain(axes)


@literal
def of_lag(lags: lag.Lags) -> Figure:
    """Figure 6, left, over the whole run; and of the saved replay the distribution."""
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    over_time, of_replay = figure.subplots(1, 2)
    over_time.plot(lags.learner_steps, lags.logged, color=_LINE)
    over_time.set_title("Of the batches, as logged", loc="left", fontsize=10)
    over_time.set_xlabel("updates")
    over_time.set_ylabel("mean parameter lag (updates)")
    over_time.set_ylim(bottom=0)
    of_replay.set_title("Of the items in the saved replay", loc="left", fontsize=10)
    of_replay.set_xlabel("parameter lag (updates)")
    of_replay.set_ylabel("part of the items")
    if lags.replay is None:
        of_replay.text(0.5, 0.5, "none was saved", ha="center", transform=of_replay.transAxes)
    else:
        values, probability = lags.replay
        edges = np.linspace(0, max(values.max(), 1), _BINS + 1)
        for label, weights, colour in (
            ("as sampled", np.ones(len(values)), _LINE),
            ("all alike", 1 / probability, "#cf4b3a"),
        ):
            heights, _ = np.histogram(values, edges, weights=weights / weights.sum())
            of_replay.stairs(heights, edges, color=colour, label=label)
        of_replay.legend(frameon=False, fontsize=8)
    for axes in (over_time, of_replay):
        _plain(axes)
    return figure


@literal
def of_memory(rows: Sequence[memory.Row]) -> Figure:
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
        returns.set_title(f"{task}: mean episode return", loc="left", fontsize=10)
        match.plot(place, [100 * row.greedy_match for row in of_task], "o-", color=_LINE)
        match.set_title("% greedy action match", loc="left", fontsize=10)
        match.set_ylim(0, 105)
        difference.plot(place, [row.q_difference for row in of_task], "o-", color=_LINE)
        difference.set_title("difference of max Q", loc="left", fontsize=10)
        difference.set_ylim(bottom=0)
        names = ["∞" if row.memory_steps is None else str(row.memory_steps) for row in of_task]
        for axes in (returns, match, difference):
            axes.set_xticks(place, names)
            axes.set_xlabel("k, inputs remembered")
            _plain(axes)
    return figure


def _plain(axes: Axes) -> None:
    axes.grid(alpha=0.2)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
