"""What `studies.populations` found: rows of a file, tables and pictures of them."""

import csv
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from analysis.report.population import score_curve
from environments import suites
from population import decisions, scores, settings
from population.folder import PopulationFolder
from run_folder.log_reader import Log
from studies.intervals import interval

LAST = 3  # of a member's points, whose mean is its final score
ARMS = {"all": ("evolves", "tab:red"), "none": ("does not", "tab:gray")}


class Row(NamedTuple):
    """A part of a member's life."""

    population: str
    member: int
    actor_steps: float  # of the member, in the middle
    score: float  # of the episodes that ended in it
    adopted_from: str  # whose weights it took over in it; of several the last, of none empty
    values: Mapping[str, str]  # at its end


Rows = Sequence[Row]
Key = tuple[str, int]  # a population and a member


def read(path: pathlib.Path, fields: Sequence[str], points: int) -> Iterator[Row]:
    """A population's rows, member by member.

    Args:
      path: of its folder.
      fields: whose values are kept.
      points: the most of a member; fewer where few episodes have ended.
    """
    found, folder = settings.load(path), PopulationFolder(path)
    tasks = suites.tasks(found.env)
    for member in range(found.members):
        log = _in_order(scores.episodes(folder.member(member)))
        curve = score_curve(log, tasks, points)
        made = decisions.of_member(folder, member)
        before = 0.0
        for x, y in zip(curve.x, curve.y, strict=True):
            until = [decision for decision in made if decision.actor_steps <= x]
            took = [d.rival for d in until if d.adopted is not None and d.actor_steps > before]
            values = {name: str(until[-1].new[name]) for name in fields}
            yield Row(path.name, member, x, y, str(took[-1]) if took else "", values)
            before = x


def _in_order(log: Log) -> Log:
    """Episodes by the steps that they and those before them took.

    The log says how many were counted when a row was written, which many rows may share.
    """
    steps = np.cumsum(log["episode_length"])
    counted = log["actor_steps"]
    if len(log):
        steps = steps * counted[-1] / steps[-1]  # with those of episodes that were undone
    return Log({**log.numbers, "actor_steps": steps}, log.texts)


def write(path: pathlib.Path, fields: Sequence[str], rows: Rows) -> None:
    """A line for each row."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Row._fields[:-1], *fields])
        for row in rows:
            values = [row.values[name] for name in fields]
            counts = [f"{row.actor_steps:.0f}", f"{row.score:.4f}", row.adopted_from]
            writer.writerow([row.population, row.member, *counts, *values])


def parse(path: pathlib.Path) -> list[Row]:
    """What `write` wrote."""
    with path.open() as file:
        return [
            Row(
                of["population"],
                int(of["member"]),
                float(of["actor_steps"]),
                float(of["score"]),
                of["adopted_from"],
                {name: text for name, text in of.items() if name not in Row._fields},
            )
            for of in csv.DictReader(file)
        ]


def by_member(rows: Rows) -> dict[Key, list[Row]]:
    """Each member's rows, in order."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault((row.population, row.member), []).append(row)
    return found


def final(rows: Rows) -> float:
    """A member's score in the last parts of its life."""
    return float(np.mean([row.score for row in rows[-LAST:]]))


def of_population(rows: Rows, of: Callable[..., Any]) -> dict[str, float]:
    """Of each population what its members' final scores come to, such as the greatest."""
    found: dict[str, list[float]] = {}
    for (population, _), own in by_member(rows).items():
        found.setdefault(population, []).append(final(own))
    return {population: float(of(each)) for population, each in found.items()}


def tell_evolution(rows: Rows) -> str:
    """A table: of both arms the final scores by seed, and how far each rate led."""
    lines = ["| | mean of the members | best member | worst member |", "|---|---|---|---|"]
    for arm, (what, _) in ARMS.items():
        own = [row for row in rows if row.population.startswith(f"{arm}-")]
        cells = [str(interval(list(of_population(own, of).values()))) for of in (np.mean, max, min)]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    lines += ["", "| seed | member | first rate | last rate | evolves | does not |"]
    lines.append("|---" * 6 + "|")
    members = by_member(rows)
    for (population, member), own in members.items():
        arm, _, seed = population.partition("-")
        if arm == "all":
            apart = members[f"none-{seed}", member]  # whose rate is what both have drawn
            rates = [f"{_values(each, 'learning_rate')[-1]:.1e}" for each in (apart, own)]
            found = [f"{final(each):.2f}" for each in (own, apart)]
            lines.append(f"| {seed} | {member} | {' | '.join([*rates, *found])} |")
    return "\n".join(lines)


def draw_evolution(rows: Rows, path: pathlib.Path) -> None:
    """The members' mean score, the best one's, and the rates of those that evolve."""
    members = by_member(rows)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), constrained_layout=True)
    shown: dict[str, Callable[..., np.ndarray]] = {"mean": np.mean, "best": np.max}
    for arm, (what, colour) in ARMS.items():
        names = [population for population, _ in members if population.startswith(f"{arm}-")]
        grid, scored = _together([members[key] for key in members if key[0] in names])
        for axis, of in zip(axes, shown.values(), strict=False):
            curves = [
                of(scored[np.asarray(names) == name], axis=0) for name in dict.fromkeys(names)
            ]
            axis.plot(grid / 1e3, np.transpose(curves), color=colour, linewidth=0.7, alpha=0.6)
            axis.plot(grid / 1e3, np.mean(curves, axis=0), color=colour, linewidth=2, label=what)
    for axis, title in zip(axes, shown, strict=False):
        axis.set(title=f"{title} of the four members", ylabel="return")
        axis.legend(frameon=False)
    for (population, _), own in members.items():
        if population.startswith("all-"):
            steps = [row.actor_steps / 1e3 for row in own]
            rates = _values(own, "learning_rate")
            seed = int(population.partition("-")[2])
            axes[2].step(steps, rates, where="post", color=f"C{seed}", linewidth=1)
    axes[2].set(title="learning rates, a colour a seed", yscale="log")
    for axis in axes:
        axis.set_xlabel("actor steps of a member (thousands)")
        axis.grid(alpha=0.3)
    _save(figure, path)


def _together(members: Sequence[Rows]) -> tuple[np.ndarray, np.ndarray]:
    """Steps that all have made, `[points]`, and every member's score there, `[members, points]`."""
    first = max(own[0].actor_steps for own in members)
    last = min(own[-1].actor_steps for own in members)
    grid = np.linspace(first, last, max(map(len, members)))
    curves = [
        np.interp(grid, [row.actor_steps for row in own], [row.score for row in own])
        for own in members
    ]
    return grid, np.asarray(curves)


def sorted_scores(rows: Rows) -> dict[str, list[float]]:
    """The final scores of each correction's samples, the best one first."""
    found: dict[str, list[float]] = {}
    for own in by_member(rows).values():
        found.setdefault(own[0].values["correction"], []).append(final(own))
    return {correction: sorted(each, reverse=True) for correction, each in found.items()}


def tell_corrections(rows: Rows) -> str:
    """A table of what is drawn, by rank."""
    found = sorted_scores(rows)
    lines = ["| | best | 3rd | median | worst | mean |", "|---" * 6 + "|"]
    for correction, each in found.items():
        shown = (each[0], each[2], float(np.median(each)), each[-1], float(np.mean(each)))
        lines.append(f"| {correction} | {' | '.join(f'{value:.2f}' for value in shown)} |")
    return "\n".join(lines)


def draw_corrections(rows: Rows, path: pathlib.Path) -> None:
    """Final scores by rank, a line for each correction: Figure D.2. Then by learning rate."""
    figure, (ranks, rates) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    samples = by_member(rows).values()
    for correction, each in sorted_scores(rows).items():
        (line,) = ranks.plot(range(1, len(each) + 1), each, "o-", markersize=4, label=correction)
        own = [own for own in samples if own[0].values["correction"] == correction]
        x = [_values(each, "learning_rate")[-1] for each in own]
        rates.plot(x, [final(each) for each in own], "o", markersize=4, color=line.get_color())
    ranks.set(xlabel="samples, the best first", ylabel="return", title="sorted")
    rates.set(xlabel="learning rate", xscale="log", title="by learning rate")
    ranks.legend(frameon=False)
    for axis in (ranks, rates):
        axis.grid(alpha=0.3)
    _save(figure, path)


def tell_popart(rows: Rows) -> str:
    """A table: each member's final score and values."""
    members = by_member(rows)
    fields = list(rows[0].values)
    lines = [f"| member | steps | score | {' | '.join(fields)} |", "|---" * (3 + len(fields)) + "|"]
    for (_, member), own in members.items():
        last = [f"{value:.2g}" for value in (_values(own, name)[-1] for name in fields)]
        cells = [f"{own[-1].actor_steps:,.0f}", f"{final(own):.3f}", *last]
        lines.append(f"| {member} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw_popart(rows: Rows, path: pathlib.Path) -> None:
    """Each member's score and values over its steps; a dot where it took another's weights."""
    fields = list(rows[0].values)
    figure, axes = plt.subplots(
        1, 1 + len(fields), figsize=(3 + 2.6 * len(fields), 3.2), constrained_layout=True
    )
    for (_, member), own in by_member(rows).items():
        steps = [row.actor_steps / 1e6 for row in own]
        shown: dict[Axes, list[float]] = {axes[0]: [row.score for row in own]}
        shown |= {axis: _values(own, name) for axis, name in zip(axes[1:], fields, strict=True)}
        for axis, values in shown.items():
            axis.plot(steps, values, color=f"C{member}", linewidth=1.2, label=f"member {member}")
            took = [i for i, row in enumerate(own) if row.adopted_from]
            at, height = [steps[i] for i in took], [values[i] for i in took]
            axis.plot(at, height, "o", color=f"C{member}", markersize=4)
    for axis, title in zip(axes, ["capped human-normalised score", *fields], strict=True):
        axis.set(title=title, xlabel="actor steps (millions)")
        axis.grid(alpha=0.3)
    for axis in axes[1:]:
        axis.set_yscale("log")
    axes[0].legend(frameon=False)
    _save(figure, path)


def _values(rows: Rows, name: str) -> list[float]:
    return [float(row.values[name]) for row in rows]


def _save(figure: Any, path: pathlib.Path) -> None:
    figure.savefig(path, dpi=120)
    plt.close(figure)
