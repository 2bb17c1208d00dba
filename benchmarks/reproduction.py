"""The findings of the R2D2 paper, in small: Kapturowski et al. 2019, Sections 3 and 5.

    python -m benchmarks.reproduction

trains what docs/data/reproduction.csv does not hold yet, with a row for each run that ended, then
draws the plots and writes the tables of docs/reproduction.md. A quick look goes elsewhere:

    python -m benchmarks.reproduction --study feedforward --quick=/tmp/quick
"""

import dataclasses
import itertools
import pathlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from agents.contract import Agent
from agents.environment_loop import VectorEnvironmentLoop
from agents.in_process import InProcess
from agents.single_process import pace_of
from analysis.playing import intervals
from benchmarks import figures, ripening, study, training
from benchmarks.figures import Line, Panel
from benchmarks.study import DOCS, Estimate, Run, markdown, replace_block
from environments import suites
from environments.dm import make_environment_spec
from r2d2 import agent as r2d2
from run_folder import catalogue

DATA = DOCS / "data/reproduction.csv"
PAGE = DOCS / "reproduction.md"
SEEDS = range(5)
QUICK_STEPS = 900
NUM_ENVIRONMENTS = 32
POINTS = 20  # windows of equal length that a training is cut into for its learning curve
FEEDFORWARD = "feed-forward"
# Half an item, as in the paper: so much is R2D2's burn-in.
BURN_INS = {"memory:recall": 2, "memory:cartpole": 8}
REWARDS = (ripening.NAME, "catch:large_rewards")


class Result(NamedTuple):
    """The outcome of a training."""

    steps: int  # of the environments
    updates: int
    cpu_seconds: float  # that training and evaluation took, of all threads
    final_return: float  # mean of the greedy episodes played after training
    curve: tuple[float, ...]  # mean return while training, by window; nan where no episode ended


Results = Mapping[Run, Result]


class Task(NamedTuple):
    """A task, with the agents that are compared on it."""

    steps: int  # of the environments, in each run
    changes: dict[str, Any]  # of the local preset
    arms: Mapping[str, dict[str, Any]]  # what each changes besides


class Comparison(NamedTuple):
    """One statement that the paper makes: on a task, one arm is better than another."""

    task: str
    better: str
    worse: str


def _memory(burn_in: int) -> dict[str, dict[str, Any]]:
    """From zero or from the stored state, with a burn-in or without; and without any state."""
    return {
        "zero": dict(burn_in=0, stored_state=False),
        f"zero, burn-in {burn_in}": dict(burn_in=burn_in, stored_state=False),
        "stored": dict(burn_in=0),
        f"stored, burn-in {burn_in}": dict(burn_in=burn_in),
        FEEDFORWARD: dict(burn_in=0),
    }


# What the local preset had when the runs of docs/data were made.
_OF_THEN: dict[str, Any] = dict(
    length=16, period=8, batch_size=32, samples_per_insert=4.0, n_step=5, forget_bias=1.0
)
_LONG_BURN_IN = {"zero, burn-in 4": dict(burn_in=4, stored_state=False)}
_REWARDS = {"rescaled": {}, "clipped": dict(rescale=False, reward_transform="clip")}
TASKS = {
    # Items of half an episode: none but those with the long burn-in hold both cue and query.
    "memory:recall": Task(30_000, dict(length=4, period=4), _memory(2) | _LONG_BURN_IN),
    "memory:cartpole": Task(50_000, {}, _memory(8)),
    **{task: Task(30_000, {}, _REWARDS) for task in REWARDS},
}


def _state_comparisons(task: str, burn_in: int) -> list[Comparison]:
    zero, stored = f"zero, burn-in {burn_in}", f"stored, burn-in {burn_in}"
    pairs = (("stored", "zero"), (zero, "zero"), (stored, zero), (stored, "stored"))
    return [Comparison(task, better, worse) for better, worse in pairs]


# Each a question to the paper.
STUDIES: dict[str, list[Comparison]] = {
    "state": [
        *_state_comparisons("memory:recall", 2),
        Comparison("memory:recall", "zero, burn-in 4", "zero"),
        *_state_comparisons("memory:cartpole", 8),
    ],
    "feedforward": [
        Comparison(task, f"stored, burn-in {n}", FEEDFORWARD) for task, n in BURN_INS.items()
    ],
    "rewards": [Comparison(task, "rescaled", "clipped") for task in REWARDS],
}
Arms = Mapping[str, Sequence[str]]  # by task


def arms(name: str) -> Arms:
    """The arms that a study compares."""
    found: dict[str, list[str]] = {}
    for task, *pair in STUDIES[name]:
        named = {*found.get(task, ()), *pair}
        found[task] = [arm for arm in TASKS[task].arms if arm in named]
    return found


def runs(studies: Iterable[str], seeds: Iterable[int]) -> list[Run]:
    """The trainings of some studies, all arms of a seed before the next seed."""
    found = [
        Run(task, arm, seed)
        for seed in seeds
        for name in studies
        for task, compared in arms(name).items()
        for arm in compared
    ]
    return list(dict.fromkeys(found))  # two studies may share an arm


def make_agent(run: Run) -> Agent:
    """The agent of a run: the local preset of then, with what its task and arm change."""
    task, name = TASKS[run.task], "r2d2_feedforward" if run.arm == FEEDFORWARD else "r2d2"
    values = catalogue.preset_config("local", catalogue.entry(name), run.task)
    changes = values | _OF_THEN | task.changes | task.arms[run.arm]
    return r2d2.make(dataclasses.replace(r2d2.VARIANTS[name], **changes), name)


def train(run: Run, steps: int) -> Result:
    """Trains for so many environment steps, then evaluates."""
    began, agent = time.process_time(), make_agent(run)
    spec = make_environment_spec(run.task)
    process = InProcess(agent, spec, tasks=np.zeros(NUM_ENVIRONMENTS, np.int64), seed=run.seed)
    environments = suites.make(run.task, NUM_ENVIRONMENTS, seed=run.seed)
    loop = VectorEnvironmentLoop(environments, process.actor, [run.task] * NUM_ENVIRONMENTS)
    pace, taken = pace_of(agent), 0
    windows: list[list[float]] = [[] for _ in range(POINTS)]
    for rows in itertools.count(NUM_ENVIRONMENTS, NUM_ENVIRONMENTS):
        made, episodes = loop.step()
        windows[taken * POINTS // steps] += [episode.episode_return for episode in episodes]
        while process.learner.learner_steps < pace.learner_steps(rows):
            process.learner.step()
        taken += made
        if taken >= steps:
            break
    final = training.final_return(agent, process.update.network, run.task, run.seed)
    return Result(
        taken,
        process.learner.learner_steps,
        time.process_time() - began,
        final,
        curve=tuple(float(np.mean(found)) if found else np.nan for found in windows),
    )


def mean(values: Sequence[float]) -> Estimate:
    """Estimates a mean, with the percentile bootstrap's interval.

    For five values that is too short: it holds a normal distribution's mean 83 times in 100.
    """
    return Estimate(float(np.mean(values)), intervals.of_mean(values))


def difference(values: Sequence[float], others: Sequence[float]) -> Estimate:
    """Estimates mean(values) − mean(others)."""
    found = float(np.mean(values) - np.mean(others))
    return Estimate(found, intervals.of_difference(values, others))


def returns(results: Results, task: str, arm: str) -> tuple[list[float], list[float]]:
    """For each seed of an arm: the evaluation's return, and the return of training's last quarter.

    One evaluation meets a learner in a good moment or in a bad one.
    """
    found = [result for run, result in results.items() if (run.task, run.arm) == (task, arm)]
    late = [float(np.mean(result.curve[-POINTS // 4 :])) for result in found]
    return [result.final_return for result in found], late


def table(results: Results, arms: Arms) -> str:
    """In Markdown: a row for each arm of each task that was run."""
    rows = []
    for task, arm in ((task, arm) for task, names in arms.items() for arm in names):
        final, late = returns(results, task, arm)
        if final:
            rows.append([task, arm, str(mean(final)), str(mean(late)), str(len(final))])
    return markdown(["task", "arm", "final return", "in the last quarter", "seeds"], rows)


def verdicts(results: Results, comparisons: Sequence[Comparison]) -> str:
    """In Markdown: the differences between arms, and whether they agree with the paper."""
    rows = []
    for task, better, worse in comparisons:
        pairs = zip(returns(results, task, better), returns(results, task, worse), strict=True)
        found = [difference(*pair) for pair in pairs if all(pair)]
        if found:
            cells = [text for x in found for text in (str(x), _verdict(x))]
            rows.append([task, f"{better} > {worse}", *cells])
    header = ["task", "the paper's direction", "final return", "", "in the last quarter", ""]
    return markdown(header, rows)


def _verdict(found: Estimate) -> str:
    if found.interval.low > 0:
        return "yes"
    return "no, the opposite" if found.interval.high < 0 else "undecided"


def shown(results: Results, arms: Arms) -> list[tuple[Run, Result]]:
    """The runs that a plot is drawn from, in order; it carries their fingerprint."""
    return sorted(
        (run, result) for run, result in results.items() if run.arm in arms.get(run.task, ())
    )


def draw(results: Results, arms: Arms, path: pathlib.Path) -> None:
    """Learning curves with intervals and, at their right, the final returns of all seeds."""
    panels = []
    for task, names in arms.items():
        curves, finals = [], []
        for i, arm in enumerate(names):
            found = [r for run, r in results.items() if (run.task, run.arm) == (task, arm)]
            if found:
                curves.append(_curve(found, arm, f"C{i}"))
                finals += _finals([result.final_return for result in found], i)
        words = dict(title=task, xlabel="environment steps", ylabel="return while training")
        panels.append(Panel(curves, words, dict(fontsize=7)))
        panels.append(
            Panel(finals, dict(title="at the end", xticks=[], xlim=(-0.7, len(names) - 0.3)))
        )
    figures.draw(
        panels,
        path,
        (5.5 * len(arms), 3.8),
        width_ratios=[3, 1] * len(arms),
        drawn_of=shown(results, arms),
    )


def _curve(runs: Sequence[Result], label: str, color: str) -> Line:
    steps = np.mean([run.steps for run in runs]) * (np.arange(POINTS) + 0.5) / POINTS
    means = [mean(values) for values in zip(*(run.curve for run in runs), strict=True)]
    low, high = zip(*(found.interval for found in means), strict=True)
    return Line(
        steps, [found.value for found in means], label, (low, high), None, dict(color=color)
    )


def _finals(values: Sequence[float], column: int) -> list[Line]:
    """A dash for each seed, and the mean with its interval."""
    color = f"C{column}"
    centre, (low, high) = mean(values)
    return [
        Line([column], [centre], margin=[[centre - low], [high - centre]], style=dict(color=color)),
        Line(
            [column] * len(values),
            values,
            style=dict(color=color, marker="_", markersize=9, linestyle=""),
        ),
    ]


def written(text: str, results: Results) -> str:
    """The page with the tables that follow from the data."""
    hours = sum(result.cpu_seconds for result in results.values()) / 3600
    text = replace_block(text, "cost", f"{len(results)} runs, {hours:.1f} hours of one core.")
    for name, comparisons in STUDIES.items():
        tables = (table(results, arms(name)), verdicts(results, comparisons))
        text = replace_block(text, name, "\n\n".join(tables))
    return text


def image(folder: pathlib.Path, name: str) -> pathlib.Path:
    """The file of a study's plot."""
    return folder / f"images/reproduction_{name}.png"


def main(argv: Sequence[str] | None = None) -> None:
    """Trains what is missing, then draws and writes everything."""
    parser = study.parser(__doc__)
    parser.add_argument(
        "--study",
        nargs="+",
        choices=STUDIES,
        default=list(STUDIES),
        metavar="STUDY",
        help=f"all by default: {', '.join(STUDIES)}",
    )
    parser.add_argument(
        "--quick",
        type=pathlib.Path,
        metavar="FOLDER",
        help=f"trains one seed for {QUICK_STEPS} steps; data and plots go into the folder",
    )
    flags = parser.parse_args(argv)
    folder = flags.quick or DOCS

    def make(run: Run) -> Result:
        return train(run, QUICK_STEPS if flags.quick else TASKS[run.task].steps)

    data = folder / DATA.relative_to(DOCS)
    asked = runs(flags.study, SEEDS[:1] if flags.quick else SEEDS)
    results = study.complete(data, asked, make, Result)
    for name in flags.study:
        draw(results, arms(name), image(folder, name))
        print(table(results, arms(name)))
        print(verdicts(results, STUDIES[name]))
    if not flags.quick:
        PAGE.write_text(written(PAGE.read_text(), results))


if __name__ == "__main__":
    # So small networks gain nothing from a second core, which may have a study of its own.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    main()
