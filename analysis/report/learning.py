"""Sections of learning: throughput, replay, the columns of learners' logs, settings."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from agents.entry import Band, Group
from analysis.report import charts
from analysis.report.charts import COLOURS, Trace, binned
from analysis.report.page import Page, number
from analysis.report.run import Line, Run
from environments import suites
from run_folder import catalogue
from run_folder import settings as run_settings
from run_folder.log_reader import COUNTERS, Log
from run_folder.settings import Settings

BINS = 40  # of the priorities' histogram

_RECENT_SECONDS = 600.0
_ELSEWHERE = (*COUNTERS, "parameter_lag")  # of a learner's columns
_NAMES_OF_RUN = ("run_dir", "preset")

# Of a group's members, where colours tell runs apart: matplotlib's sign, and the word for it.
_STYLES = (("-", "solid"), ("--", "dashed"), (":", "dotted"), ("-.", "dash-dotted"))


def throughput(page: Page, lines: Sequence[Line]) -> None:
    """The rates of acting and learning against time, and their means."""
    page.section("Throughput")
    page.text(
        "An actor step is one action of one environment, an update one step of the optimizer. "
        "Trained steps are those of all sequences that updates learned from, burn-in included."
    )
    page.key()

    def rates(log: Log, counter: str, colour: int) -> Trace:
        return charts.rates(*log.defined("walltime", counter), colour=colour)

    acted = [rates(line.run.actor, "actor_steps", line.colour) for line in lines if line.paces]
    learned = [rates(line.learner, "learner_steps", line.colour) for line in lines]
    page.grid(
        [
            *charts.curves(acted, "Actor steps per second", charts.HOURS),
            *charts.curves(learned, "Updates per second", charts.HOURS),
        ]
    )
    recently = "in the last 10 minutes"
    header = ["", "actor steps/s", recently, "updates/s", recently, "trained steps/s"]
    rows = []
    for line in lines:
        updates = mean_rate(line.learner, "learner_steps")
        values = (
            mean_rate(line.run.actor, "actor_steps"),
            mean_rate(line.run.actor, "actor_steps", _RECENT_SECONDS),
            updates,
            mean_rate(line.learner, "learner_steps", _RECENT_SECONDS),
            updates * _steps_of_update(line),
        )
        rows.append([line.label, *map(number, values)])
    page.table(header, rows)


def mean_rate(log: Log, counter: str, seconds: float = np.inf) -> float:
    """The growth of a counter per second of a log's last `seconds`; NaN of too few rows."""
    walltime, counts = log.defined("walltime", counter)
    since = walltime >= (walltime[-1] if len(walltime) else 0.0) - seconds
    walltime, counts = walltime[since], counts[since]
    if len(walltime) < 2 or walltime[-1] <= walltime[0]:
        return float("nan")
    return float((counts[-1] - counts[0]) / (walltime[-1] - walltime[0]))


def _steps_of_update(line: Line) -> float:
    """Steps of all sequences of one update, burn-in included; NaN where nobody here knows."""
    if (agent := line.made) is None:
        return float("nan")
    return sum(
        size * (table.layout.burn_in + table.layout.length)
        for size, table in zip(agent.batch_sizes, agent.tables, strict=True)
    )


class Priorities(NamedTuple):
    """The items of a prioritized table."""

    priority: np.ndarray  # [items]
    probability: np.ndarray  # [items], of being drawn
    times_sampled: np.ndarray  # [items]


def replay(page: Page, lines: Sequence[Line]) -> None:
    """The data that learners were given: how often, how old, with which priorities."""
    page.section("Replay")
    page.text(
        "Replays per observation: how many times each step was learned from. Parameter lag: "
        "updates between the parameters that acted and those that learn. The priorities are those "
        "of all items in the newest checkpoint of the replay, the share in each bin; dashed, "
        "of what is drawn by them."
    )
    page.key()
    actors = [(line.run.actor, line.colour) for line in lines if line.paces]
    learners = [(line.learner, line.colour) for line in lines]
    drawn = []
    for logs, column, title in (
        (actors, "replays_per_observation", "Replays per observation"),
        (actors, "replay_size", "Items in replay"),
        (learners, "parameter_lag", "Parameter lag, updates"),
    ):
        traces = [
            binned(*log.defined("actor_steps", column), colour=colour) for log, colour in logs
        ]
        drawn += charts.curves(traces, title, "actor steps")
    found = [(line, held) for line in lines if (held := priorities(line)) is not None]
    page.grid([*drawn, *_histogram(found)])
    if not found:
        page.text("No checkpoint holds a prioritized replay.")
        return
    header = ["priorities", "items", "median", "99th percentile", "largest"]
    header += ["samples that go to the highest tenth", "times an item was sampled"]
    rows = []
    for line, (priority, probability, times_sampled) in found:
        tenth = np.sort(probability)[-max(1, len(probability) // 10) :]
        rows.append(
            [
                line.label,
                f"{len(priority):,}",
                *map(number, np.percentile(priority, (50, 99, 100))),
                f"{tenth.sum():.0%}",
                number(float(times_sampled.mean())),
            ]
        )
    page.table(header, rows)


def priorities(line: Line) -> Priorities | None:
    """An agent's items in the newest checkpoint; None where its table has no priorities."""
    if (agent := line.made) is None:
        return None
    table = agent.tables[0]
    held = line.run.replay.get(table.name)
    if held is None or table.kind != "prioritized":
        return None
    # As Reverb's selector: an item without priority is never drawn, unless none has any.
    scaled = np.where(held.priority > 0, held.priority**table.priority_exponent, 0.0)
    if not scaled.any():
        scaled = np.ones_like(scaled)
    return Priorities(held.priority, scaled / scaled.sum(), held.times_sampled)


def bins(found: Sequence[Priorities]) -> np.ndarray:
    """Edges `[BINS + 1]`, of equal ratios, around all priorities but 0; none where all are 0."""
    positive = np.concatenate([held.priority[held.priority > 0] for held in found])
    if not len(positive):
        return positive
    low, high = positive.min(), positive.max()
    return np.geomspace(low, high if high > low else 2 * low, BINS + 1)


def shares(held: Priorities, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares of all items, and of all samples, in each bin of the priority: `[BINS]` each.

    Items of priority 0 are in no bin, but count in the total.
    """
    items = np.histogram(held.priority, edges)[0] / len(held.priority)
    return items, np.histogram(held.priority, edges, weights=held.probability)[0]


def _histogram(found: Sequence[tuple[Line, Priorities]]) -> list[Figure]:
    edges = bins([held for _, held in found]) if found else np.empty(0)
    if not len(edges):
        return []
    traces = []
    for line, held in found:
        for heights, style in zip(shares(held, edges), ("-", "--"), strict=True):
            y = np.concatenate([[0], np.repeat(100 * heights, 2), [0]])
            traces.append(Trace(np.repeat(edges, 2), y, line.colour, style))
    return charts.curves(traces, "Priorities in replay, %", "priority", log="x")


def bands(page: Page, lines: Sequence[Line]) -> None:
    """A section for each band that an agent has, such as PopArt's μ and σ of each task."""
    of_agents = (line.run.settings.entry(line.agent).bands for line in lines)
    for band in dict.fromkeys(itertools.chain.from_iterable(of_agents)):
        prefix = f"{band.mean}/"
        names = dict.fromkeys(name for line in lines for name in line.learner.numbers)
        if tasks := [name.removeprefix(prefix) for name in names if name.startswith(prefix)]:
            _band(page, lines, band, tasks)


def _band(page: Page, lines: Sequence[Line], band: Band, tasks: Sequence[str]) -> None:
    """Mean ± deviation of each task, and the table of the last ones."""
    page.section(band.title)
    page.text(band.note)
    page.key()
    drawn = []
    for task in tasks:
        traces = []
        for line in lines:
            names = (f"{band.mean}/{task}", f"{band.deviation}/{task}")
            steps, mu, sigma = line.learner.defined("actor_steps", *names)
            mean, deviation = binned(steps, mu, colour=line.colour), binned(steps, sigma).y
            traces.append(mean._replace(low=mean.y - deviation, high=mean.y + deviation))
        title = f"{band.title}: {' ± '.join(band.letters)} of {task}"
        drawn += charts.curves(traces, title, "actor steps")
    header, columns = ["task"], [list(tasks)]
    for line in lines:
        if any(f"{band.mean}/{task}" in line.learner.numbers for task in tasks):
            for name, letter in zip((band.mean, band.deviation), band.letters, strict=True):
                header.append(f"{line.label}: {letter}")
                columns.append([number(line.learner.last(f"{name}/{task}")) for task in tasks])
    with page.folded(len(tasks), "tasks"):
        page.grid(drawn)
        page.table(header, zip(*columns, strict=True))


def groups(page: Page, lines: Sequence[Line]) -> None:
    """A section for each group that an agent has, such as STACX's metaparameters by head."""
    of_agents = {line.label: line.run.settings.entry(line.agent).groups for line in lines}
    found = {group.title: group for given in of_agents.values() for group in given}
    for group in found.values():
        mine = [line for line in lines if group in of_agents[line.label]]
        names = [name for name in group.names if any(_members(line.learner, name) for line in mine)]
        if names:
            _group(page, mine, group, names)


def _group(page: Page, lines: Sequence[Line], group: Group, names: Sequence[str]) -> None:
    """A chart for each name, then the returns of the runs.

    Members have a colour each in a page of one run. In a page of several runs, whose colours tell
    the runs apart, members have a style each.
    """
    page.section(group.title)
    page.text(group.note)
    members = sorted({m for line in lines for name in names for m in _members(line.learner, name)})
    colours = {member: (member - 1) % len(COLOURS) for member in members}
    styles = {member: _STYLES[(member - 1) % len(_STYLES)] for member in members}
    alone = len(lines) == 1
    legend = page.legend
    if alone:
        legend = [(f"{group.member} {member}", colours[member]) for member in members]
    page.key(legend)
    if not alone and len(members) > 1:
        said = (f"{group.member} {member} {styles[member][1]}" for member in members)
        page.text(f"Lines: {', '.join(said)}.")
    drawn = []
    for name in names:
        traces = []
        for line in lines:
            for member in _members(line.learner, name):
                x, y = line.learner.defined("actor_steps", f"{name}/{member}")
                if alone:
                    traces.append(binned(x, y, colour=colours[member], band=True))
                else:
                    traces.append(binned(x, y, colour=line.colour, style=styles[member][0]))
        drawn += charts.curves(traces, name, "actor steps")
    page.grid(drawn, legend)
    page.table(("column", "what it is"), [(name, group.names[name]) for name in names])
    page.grid(_ablations(group, lines), ())


def _members(log: Log, name: str) -> list[int]:
    """The members of which a log has a column of that name."""
    found = (column.partition("/") for column in log.numbers)
    return sorted(int(member) for of, _, member in found if of == name and member.isdecimal())


def _ablations(group: Group, lines: Sequence[Line]) -> list[Figure]:
    """A bar for each choice of names that the runs made: the mean of their recent returns."""
    returns: dict[str, list[float]] = {}
    for line in lines:
        chosen = getattr(line.run.settings.configs[line.agent], group.field)
        if np.isfinite(returned := line.run.recent_return()):
            returns.setdefault("{" + ", ".join(chosen) + "}", []).append(returned)
    if len(returns) < 2:
        return []
    labels = sorted(returns, key=lambda label: (label.count(","), label))
    means = [float(np.mean(returns[label])) for label in labels]
    return [charts.bars(labels, [(means, 0)], f"Return by {group.field}", "recent training return")]


def metrics(page: Page, lines: Sequence[Line]) -> None:
    """Every other column of the learners' logs."""
    page.section("Learner")
    logged = dict.fromkeys(name for line in lines for name in line.learner.numbers)
    names = [name for name in logged if "/" not in name and name not in _ELSEWHERE]
    if not names:
        page.text("No update has been logged yet.")
        return
    page.key()
    drawn = []
    for name in names:
        found = [(line.learner.defined("learner_steps", name), line.colour) for line in lines]
        traces = [binned(*columns, colour=colour, band=True) for columns, colour in found]
        drawn += charts.curves(traces, name, "updates")
    page.grid(drawn)
    said: dict[str, str] = {}
    for line in lines:
        said |= line.run.settings.entry(line.agent).columns
    if rows := [(name, said[name]) for name in names if name in said]:
        page.table(("column", "what it is"), rows)


def settings(page: Page, runs: Sequence[Run]) -> None:
    """The settings that differ: between runs, or of a single one from its paper's preset."""
    page.section("Settings")
    columns = [(run.name, flat(run.settings)) for run in runs]  # one may be named `paper`
    if len(runs) == 1:
        columns = [("paper", flat(as_in_paper(runs[0].settings))), *columns]
        page.text("What this run sets otherwise than its paper.")
    else:
        page.text("What differs between the runs. All else is the same.")
    if rows := differing([values for _, values in columns]):
        page.table(["setting", *(name for name, _ in columns)], rows)
    else:
        page.text("Nothing.")


def differing(columns: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """A row for each field whose value is not the same everywhere: its name, then its values."""
    fields = dict.fromkeys(field for column in columns for field in column)
    rows = [[field, *(column.get(field, "–") for column in columns)] for field in fields]
    return [row for row in rows if len(set(row[1:])) > 1]


def flat(run: Settings) -> dict[str, str]:
    """Every setting of a run as text.

    The fields of a single agent are named without it: so `r2d2` can be compared with
    `r2d2_feedforward`.
    """
    values = dataclasses.asdict(run)
    configs = values.pop("configs")
    for agent, config in configs.items():
        for field, value in config.items():
            values[field if len(configs) == 1 else f"{agent}.{field}"] = value
    return {
        name: ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        for name, value in values.items()
        if name not in _NAMES_OF_RUN
    }


def as_in_paper(run: Settings) -> Settings:
    """The settings of `--preset=paper` for the same agents on the same tasks.

    Which agents act, and where, is no matter of papers and stays. So does an environment that
    cannot be played here: its engine may be on another machine.
    """
    agents = catalogue.named(run.agent)
    values, made = run_settings.of_preset("paper", run.env, agents, run.acting, {})
    if suites.made_singly(run.tasks[0]):
        made = {name: _nearest(run, name, config) for name, config in made.items()}
    return dataclasses.replace(run, **values, configs=made)


def _nearest(run: Settings, agent: str, paper: Any) -> Any:
    """The one of an agent's papers that a run is most like; its environment is not made for that.

    Args:
      run: the settings of the run.
      agent: the agent's name.
      paper: the Config that follows from the environment's name alone.
    """
    entry, own = run.entry(agent), run.configs[agent]
    if entry is catalogue.NOT_IMPORTED:
        return own
    papers = [each for each in (paper, entry.control, entry.control_image) if each is not None]
    said = dataclasses.asdict(own).items()
    return max(papers, key=lambda each: sum(getattr(each, name) == value for name, value in said))
