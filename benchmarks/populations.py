"""Small populations and sweeps, as IMPALA's and PopArt's papers show theirs.

    python -m benchmarks.populations evolution RUNS
    python -m benchmarks.populations corrections RUNS
    python -m benchmarks.populations popart RUNS --minutes=120

trains the populations that RUNS lacks, goes on with those that were cut short, writes
docs/data/populations_<study>.csv, then draws and prints it. The first study is four members on
catch that evolve, beside the same four that do not. The second is Figure D.2 of Espeholt et al.
2018, twelve samples of each correction. The third is PopArt on four games, for the given minutes.
"""

import csv
import itertools
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.report.population import score_curve
from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from environments import suites
from population import decisions, scores, settings
from population.folder import PopulationFolder, is_population
from run_folder import checkpoints

SEEDS = range(3)
ARMS = {"all": ("evolves", "tab:red"), "none": ("does not", "tab:gray")}
MEMBERS, STEPS = 4, 160_000
SAMPLES, CORRECTIONS, SWEEP_STEPS = 12, ("vtrace", "one_step", "epsilon", "none"), 40_000
GAMES = "atari:pong,atari:breakout,atari:crazy_climber,atari:qbert"
LAST = 3  # of a member's points, whose mean is its final score

Flags = tuple[str, ...]

_CATCH: Flags = (
    *("--agent=impala", "--env=catch", "--num_actors=16", "--evaluation_episodes=0"),
    *("--impala.length=16", "--impala.forget_bias=1"),  # the local preset of then
)
_EVOLUTION: Flags = (
    *(f"--members={MEMBERS}", "--sweep=impala.learning_rate=log:5e-6:5e-3"),
    *("--annealing_frames=none", "--burn_in_frames=10000", "--ready_episodes=2000"),
    f"--max_actor_steps={STEPS}",
)
_CORRECTIONS: Flags = (
    *(f"--members={SAMPLES * len(CORRECTIONS)}", "--evolve=none", "--concurrent=2"),
    *("--impala.replay_fraction=0.5", f"--max_actor_steps={SWEEP_STEPS}"),
    *("--sweep=impala.learning_rate=log:5e-4:5e-2", "--sweep=impala.entropy_cost=log:5e-5:1e-2"),
    f"--sweep=impala.correction=grid:{','.join(CORRECTIONS)}",
)
# The paper's burn-in of 20 million frames and 5,000 episodes would outlast two hours.
_POPART: Flags = (
    *("--agent=popart", f"--env={GAMES}", f"--members={MEMBERS}", "--evaluation_episodes=0"),
    *("--burn_in_frames=2000000", "--ready_episodes=1000", "--turn_steps=400000"),
)


class Row(NamedTuple):
    """A part of a member's life."""

    population: str
    member: int
    actor_steps: float  # of the member, in the middle
    score: float  # of the episodes that ended in it
    adopted_from: str  # the last member whose weights it took over in this part; empty for none
    values: Mapping[str, str]  # at its end

    def value(self, name: str) -> float:
        """One of its values, of those that are numbers."""
        return float(self.values[name])


Rows = Sequence[Row]
Key = tuple[str, int]  # a population and a member


def has_ended(path: pathlib.Path) -> bool:
    """Tells whether all members of a population have reached a limit; without one they never do."""
    if not is_population(path):
        return False
    found, folder = settings.load(path), PopulationFolder(path)
    manifests = [checkpoints.parse(folder.member(i).checkpoints) for i in range(found.members)]
    return all(
        m is not None and found.is_at_limit(m.actor_steps, m.learner_step) for m in manifests
    )


def rows_of(path: pathlib.Path, fields: Sequence[str], points: int) -> Iterator[Row]:
    """A population's rows, member by member: `points` each, or fewer where few episodes ended."""
    found, folder = settings.load(path), PopulationFolder(path)
    tasks = suites.tasks(found.env)
    for member in range(found.members):
        curve = score_curve(scores.episodes(folder.member(member)), tasks, points)
        made = decisions.of_member(folder, member)
        before = 0.0
        for x, y in zip(curve.x, curve.y, strict=True):
            until = [decision for decision in made if decision.actor_steps <= x]
            took = [d.rival for d in until if d.adopted is not None and d.actor_steps > before]
            values = {name: str(until[-1].new[name]) for name in fields}
            yield Row(path.name, member, x, y, str(took[-1]) if took else "", values)
            before = x


def write(path: pathlib.Path, fields: Sequence[str], rows: Rows) -> None:
    """A line for each row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Row._fields[:-1], *fields])
        for row in rows:
            counts = [f"{row.actor_steps:.0f}", f"{row.score:.4f}", row.adopted_from]
            values = [row.values[name] for name in fields]
            writer.writerow([row.population, row.member, *counts, *values])


def parse(path: pathlib.Path) -> list[Row]:
    """The rows that `write` wrote."""
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


def tell_evolution(rows: Rows) -> str:
    """Tables: the final scores of both arms, and each member's learning rates and final scores."""
    members = by_member(rows)
    arms = []
    for arm, (what, _) in ARMS.items():
        found: dict[str, list[float]] = {}
        for (population, _member), own in members.items():
            if population.startswith(f"{arm}-"):
                found.setdefault(population, []).append(final(own))
        shown = ([float(of(each)) for each in found.values()] for of in (np.mean, max, min))
        arms.append([what, *(str(study.interval(values)) for values in shown)])
    rates = []
    for (population, member), own in members.items():
        arm, _, seed = population.partition("-")
        if arm == "all":
            apart = members[f"none-{seed}", member]  # whose rate is what both have drawn
            led = [f"{each[-1].value('learning_rate'):.1e}" for each in (apart, own)]
            rates.append(
                [seed, str(member), *led, *(f"{final(each):.2f}" for each in (own, apart))]
            )
    header = ["", "mean of the members", "best member", "worst member"]
    header_of_rates = ["seed", "member", "first rate", "last rate", "evolves", "does not"]
    return f"{study.markdown(header, arms)}\n\n{study.markdown(header_of_rates, rates)}"


def draw_evolution(rows: Rows, path: pathlib.Path) -> None:
    """The members' mean score, the best one's, and the rates of those that evolve."""
    members = by_member(rows)
    mean, best = list[Line](), list[Line]()
    for arm, (what, colour) in ARMS.items():
        names = [population for population, _ in members if population.startswith(f"{arm}-")]
        grid, scored = _together([own for (name, _), own in members.items() if name in names])
        for lines, of in ((mean, np.mean), (best, np.max)):
            curves = [
                of(scored[np.asarray(names) == name], axis=0) for name in dict.fromkeys(names)
            ]
            thin = dict(color=colour, linewidth=0.7, alpha=0.6)
            lines += [Line(grid / 1e3, curve, style=thin) for curve in curves]
            style = dict(color=colour, linewidth=2)
            lines.append(Line(grid / 1e3, np.mean(curves, axis=0), what, style=style))
    rates = []
    for (population, _), own in members.items():
        arm, _, seed = population.partition("-")
        if arm == "all":
            x = [row.actor_steps / 1e3 for row in own]
            y = [row.value("learning_rate") for row in own]
            rates.append(Line(x, y, style=dict(color=f"C{seed}", drawstyle="steps-post")))
    panels = [
        Panel(mean, dict(title="mean of the four members", ylabel="return"), {}),
        Panel(best, dict(title="best of the four members", ylabel="return"), {}),
        Panel(rates, dict(title="learning rates, a colour a seed", yscale="log")),
    ]
    for panel in panels:
        panel.words["xlabel"] = "actor steps of a member (thousands)"
    figures.draw(panels, path, (12, 3.4), dpi=120)


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


def _samples(rows: Rows) -> dict[str, list[list[Row]]]:
    """The samples of each correction, the best one first."""
    found: dict[str, list[list[Row]]] = {}
    for own in sorted(by_member(rows).values(), key=final, reverse=True):
        found.setdefault(own[0].values["correction"], []).append(own)
    return {name: found[name] for name in CORRECTIONS if name in found}


def tell_corrections(rows: Rows) -> str:
    """A table of the final scores, by rank."""
    lines = []
    for correction, samples in _samples(rows).items():
        each = [final(own) for own in samples]
        shown = (each[0], each[2], float(np.median(each)), each[-1], float(np.mean(each)))
        lines.append([correction, *(f"{value:.2f}" for value in shown)])
    return study.markdown(["", "best", "3rd", "median", "worst", "mean"], lines)


def draw_corrections(rows: Rows, path: pathlib.Path) -> None:
    """Final scores by rank, a line for each correction: Figure D.2. Then by learning rate."""
    ranks, rates = [], []
    for i, (correction, samples) in enumerate(_samples(rows).items()):
        scored = [final(own) for own in samples]
        style = dict(color=f"C{i}", marker="o", markersize=4)
        ranks.append(Line(range(1, len(samples) + 1), scored, correction, style=style))
        x = [own[-1].value("learning_rate") for own in samples]
        rates.append(Line(x, scored, style=style | dict(linestyle="")))
    panels = [
        Panel(ranks, dict(xlabel="samples, the best first", ylabel="return", title="sorted"), {}),
        Panel(rates, dict(xlabel="learning rate", xscale="log", title="by learning rate")),
    ]
    figures.draw(panels, path, (9, 3.6), dpi=120)


def tell_popart(rows: Rows) -> str:
    """A table: each member's final score and values."""
    fields = list(rows[0].values)
    lines = [
        [
            *(str(member), f"{own[-1].actor_steps:,.0f}", f"{final(own):.3f}"),
            *(f"{own[-1].value(name):.2g}" for name in fields),
        ]
        for (_, member), own in by_member(rows).items()
    ]
    return study.markdown(["member", "steps", "score", *fields], lines)


def draw_popart(rows: Rows, path: pathlib.Path) -> None:
    """Each member's score and values over its steps; a dot where it took another's weights."""
    panels = []
    for name in (None, *rows[0].values):
        lines = []
        for (_, member), own in by_member(rows).items():
            x = [row.actor_steps / 1e6 for row in own]
            y = [row.value(name) if name else row.score for row in own]
            took = [i for i, row in enumerate(own) if row.adopted_from]
            dots = dict(marker="o", markersize=4, markevery=took)
            style = dict(color=f"C{member}", linewidth=1.2) | dots
            lines.append(Line(x, y, f"member {member}", style=style))
        words = dict(title=name or "capped human-normalised score", xlabel="actor steps (millions)")
        words["yscale"] = "log" if name else "linear"
        panels.append(Panel(lines, words, None if name else {}))
    figures.draw(panels, path, (0.4 + 2.6 * len(panels), 3.2), dpi=120)


class Study(NamedTuple):
    """Populations, and how they are shown."""

    populations: Mapping[str, Flags]  # by name, the flags with which each begins
    fields: tuple[str, ...]  # those whose values are written
    points: int  # of each member's score
    draw: Callable[[Rows, pathlib.Path], None]
    tell: Callable[[Rows], str]


STUDIES = {
    "evolution": Study(
        {
            f"{arm}-{seed}": (*_CATCH, *_EVOLUTION, f"--evolve={arm}", f"--seed={seed}")
            for seed, arm in itertools.product(SEEDS, ARMS)
        },
        ("learning_rate",),
        20,
        draw_evolution,
        tell_evolution,
    ),
    "corrections": Study(
        {"corrections": (*_CATCH, *_CORRECTIONS)},
        ("correction", "learning_rate", "entropy_cost"),
        10,
        draw_corrections,
        tell_corrections,
    ),
    "popart": Study(
        {"popart": _POPART},
        ("learning_rate", "entropy_cost", "rmsprop_epsilon", "max_gradient_norm"),
        40,
        draw_popart,
        tell_popart,
    ),
}


def data(name: str) -> pathlib.Path:
    """The file of a study's rows."""
    return study.DOCS / "data" / f"populations_{name}.csv"


def main() -> None:
    """Trains what is missing, then writes, draws and prints it."""
    parser = study.parser_of_trainings(__doc__, "populations", None, study=STUDIES)
    asked = parser.parse_args()
    chosen = STUDIES[asked.study]
    for name, flags in chosen.populations.items():
        if asked.minutes is None and not any(flag.startswith("--max_") for flag in flags):
            parser.error(f"{asked.study} has no end of its own: add --minutes=120")
        path = asked.runs / name
        if asked.minutes != 0 and not has_ended(path):
            how = ("--resume",) if is_population(path) else flags
            study.run(["launch.population", f"--run_dir={path}", *how], asked.minutes)
    rows = [
        row
        for name in chosen.populations
        for row in rows_of(asked.runs / name, chosen.fields, chosen.points)
    ]
    write(data(asked.study), chosen.fields, rows)
    chosen.draw(rows, study.DOCS / "images" / f"populations_{asked.study}.png")
    print(chosen.tell(rows))


if __name__ == "__main__":
    main()
