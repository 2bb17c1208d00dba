"""What the agents reach, beside whom and after how long: docs/results.md.

    python -m benchmarks.results atari RUNS
    python -m benchmarks.results memory RUNS --peer_python=/path/to/python
    python -m benchmarks.results bsuite RUNS --peer_python=/path/to/python
    MUJOCO_GL=egl python -m benchmarks.results control RUNS
    MUJOCO_GL=disable python -m benchmarks.results real_world RUNS --peer_python=/path/to/python

trains what docs/data does not hold yet (`benchmarks/results_runs.py` says what and how), then draws
all of it and writes the page and README's table. A run is a folder of RUNS; one that was cut short
goes on. With --minutes=0 nothing is trained. The policy of each task's first seed is kept in
policies/.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.playing import files, intervals
from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from benchmarks.results_runs import (
    ARMS,
    ATARI,
    BSUITE,
    BSUITE_EPISODES,
    EPISODES,
    LENGTHS,
    MEMORY,
    MEMORY_TASKS,
    POLICIES,
    RANDOM,
    REAL_WORLD,
    RIVAL,
    SIZES,
    STUDIES,
    Minute,
    check,
    complete,
    data,
    lacking,
    trained,
)
from benchmarks.study import DOCS, Episodes, Estimate, Evaluation, Run
from environments import scores

PAGE = DOCS / "results.md"
README = DOCS.parent / "README.md"
HUMAN = "human"  # as `environments.scores` has it
LAST = 2  # minutes whose mean is a run's final return
BSUITE_ERRORS = 0.375  # below which a task is solved: 0.75 of a random policy's

Points = dict[Run, list[tuple[int, Episodes]]]


def read(name: str) -> Points:
    """The minutes of each training of a study that is made, in their order."""
    found: Points = {run: [] for run in trained(name)}
    for key, episodes in study.read(data(name, "curves"), Minute, Episodes).items():
        if (run := Run(*key[:-1])) in found:
            found[run].append((key.minute, episodes))
    return {run: minutes for run, minutes in found.items() if minutes}


def image(name: str) -> pathlib.Path:
    """A study's picture."""
    return DOCS / "images" / f"{name}_curves.png"


def last_return(points: Sequence[tuple[int, Episodes]]) -> float:
    """The mean return of a training's last minutes."""
    return float(np.mean([episodes.episode_return for _, episodes in points[-LAST:]]))


def title(task: str) -> str:
    """A task's name as a picture and a table have it."""
    return task.rpartition(":")[2] if task.startswith(("gym:", MEMORY_TASKS)) else task


def draw(name: str, path: pathlib.Path) -> None:
    """Draws a study."""
    if name == BSUITE:
        draw_bsuite(path)
    else:
        draw_curves(name, path)


def draw_curves(name: str, path: pathlib.Path) -> None:
    """Draws returns against minutes, and beside that against steps; two tasks a row."""
    points, random = read(name), study.read(data(name, "returns"), Run, Evaluation)
    panels = []
    for task in (task for task in STUDIES[name].tasks if any(run.task == task for run in points)):
        by_time, by_steps, named = [], [], set()
        for run in (run for run in STUDIES[name].runs if run.task == task and run in points):
            arm = ARMS[run.arm]
            minutes, episodes = zip(*points[run], strict=True)
            steps, returns = zip(*episodes, strict=True)
            style = dict(color=arm.colour, alpha=0.8)
            label = None if run.arm in named else arm.label
            named.add(run.arm)
            by_time.append(Line(minutes, returns, label, style=style))
            by_steps.append(Line(np.divide(steps, 1e3), returns, style=style))
        levels = scores.SCORES.get(task, {})
        if found := random.get(Run(task, RANDOM, 0)):
            levels = {RANDOM: found.evaluated}
        end = max(line.x[-1] for line in by_time)
        for label, dots in ((RANDOM, ":"), (HUMAN, "--")):
            if label in levels:
                style = dict(color="black", linestyle=dots, linewidth=1)
                by_time.append(Line([0, end], [levels[label]] * 2, label, style=style))
        machine = "two cores" if STUDIES[name].has_machine else "one core"
        words = dict(title=title(task), xlabel=f"minutes of {machine}", ylabel="return")
        panels.append(Panel(by_time, words, {}))
        panels.append(Panel(by_steps, dict(xlabel="thousand actor steps")))
    columns = min(4, len(panels))
    figures.draw(panels, path, (3.4 * columns, 2.8 * -(-len(panels) // columns)), columns=columns)


def errors(arm: str, sizes: Mapping[str, int]) -> dict[int, list[float]]:
    """The share of wrong answers of each seed, by what is to be remembered."""
    found = study.read(data(BSUITE, "returns"), Run, Evaluation)
    by_size: dict[int, list[float]] = {}
    for run in STUDIES[BSUITE].runs:
        if run.arm == arm and run.task in sizes and run in found:
            by_size.setdefault(sizes[run.task], []).append((1 - found[run].evaluated) / 2)
    return by_size


def draw_bsuite(path: pathlib.Path) -> None:
    """Draws the share of wrong answers of each arm."""
    panels = []
    for sizes, what in ((LENGTHS, "steps to remember a bit"), (SIZES, "bits to remember")):
        lines = []
        for arm in dict.fromkeys(run.arm for run in STUDIES[BSUITE].runs):
            if found := errors(arm, sizes):
                label, colour, *_ = ARMS[arm]
                middle = [float(np.median(values)) for values in found.values()]
                low, high = ([pick(values) for values in found.values()] for pick in (min, max))
                style = dict(color=colour)
                lines.append(Line(list(found), middle, label, (low, high), style=style))
        style = dict(color="black", linestyle=":")
        lines.append(Line([1, max(sizes.values())], [BSUITE_ERRORS] * 2, "solved", style=style))
        words = dict(xlabel=what, ylabel=f"wrong of {BSUITE_EPISODES:,}", xscale="log")
        panels.append(Panel(lines, words, {}))
    figures.draw(panels, path, (9.0, 3.6))


class Trainings(NamedTuple):
    """The trainings of an agent on a task that are made, a seed each."""

    task: str
    arm: str
    points: Points

    @property
    def minutes(self) -> int:
        """How long the longest has episodes."""
        return max(minutes[-1][0] for minutes in self.points.values()) + 1

    @property
    def final(self) -> Estimate:
        """The return that they end with, while training."""
        return study.median([last_return(of) for of in self.points.values()])


def trainings(name: str) -> list[Trainings]:
    """What is made of a study, in its order."""
    points = read(name)
    return [
        Trainings(*pair, {run: of for run, of in points.items() if run[:2] == pair})
        for pair in dict.fromkeys(run[:2] for run in points)
    ]


def table(name: str) -> str:
    """In Markdown: an agent on a task a row, of the seeds that have been made."""
    if name == BSUITE:
        return bsuite_table()
    asked, played = STUDIES[name], study.read(data(name, "returns"), Run, Evaluation)
    rows = []
    for made in trainings(name):
        row = [f"`{title(made.task)}`", ARMS[made.arm].label, str(len(made.points))]
        steps = np.mean([of[-1][1].actor_steps for of in made.points.values()])
        row += [str(made.minutes), f"{steps:,.0f}", str(made.final)]
        row.append(_evaluated([played[run] for run in made.points if run in played]))
        if asked.has_machine:
            human = scores.human_normalised(made.task, made.final.value)
            row += [f"{human:.0%}", f"{scores.SCORES[made.task]['r2d2']:,.1f}"]
        rows.append(row)
    header = ["task", "agent", "seeds", "minutes", "actor steps", "while training"]
    header.append(f"{EPISODES} episodes {'of the best' if asked.evaluates else 'at the end'}")
    if asked.has_machine:
        header += ["of a human's", "R2D2's paper, 10 billion frames"]
    return study.markdown(header, rows)


def _evaluated(found: Sequence[Evaluation]) -> str:
    if len(found) == 1:
        return f"{study.in_words(found[0].evaluated)} ± {found[0].standard_error:.2f}"
    return str(study.median([one.evaluated for one in found])) if found else ""


def bsuite_table() -> str:
    """In Markdown: the share of bsuite's tasks that each seed solves, by bsuite's rule."""
    rows, runs = [], STUDIES[BSUITE].runs
    for experiment, sizes in (("memory_len", LENGTHS), ("memory_size", SIZES)):
        for arm in dict.fromkeys(run.arm for run in runs):
            found = errors(arm, sizes)
            asked = sum(run.arm == arm and run.task in sizes for run in runs)
            if sum(map(len, found.values())) == asked:
                solved = np.array([*found.values()]) < BSUITE_ERRORS  # [tasks, seeds]
                score = study.median(solved.mean(axis=0).tolist())
                row = [f"`{experiment}`", ARMS[arm].label, str(score)]
                longest = [max(np.array([*found])[seed], default=0) for seed in solved.T]
                rows.append([*row, f"{np.median(longest):.0f} of {max(found)}"])
    return study.markdown(["experiment", "agent", "solved", "the longest solved"], rows)


def block(name: str) -> str:
    """What the page says of a study: its table and picture, and what is not made yet."""
    asked, left = len(STUDIES[name].runs), len(lacking(name))
    parts = [f"Of its {asked} trainings {left} are not made yet."] if left else []
    if left < asked:
        parts = [table(name), f"![Returns](images/{image(name).name})", *parts]
    return "\n\n".join(parts)


def policies_table() -> str:
    """In Markdown: the policies that are kept, with what their own evaluation returned."""
    rows = []
    for config in sorted(POLICIES.glob("*/config.json")):
        folder = config.parent
        played = files.read_all(folder)
        first = played[min(played, key=len)]  # others may have played it since
        returns = np.array([row.episode_return for row in first])
        mean = study.Estimate(float(returns.mean()), intervals.of_mean(returns))
        size = sum(path.stat().st_size for path in (folder / "checkpoints").iterdir())
        rows.append([f"`{folder.name}`", str(mean), str(len(returns)), f"{size / 1e6:.2f} MB"])
    return study.markdown(["policy", "return", "episodes", "size"], rows) if rows else "None yet."


def summary() -> str:
    """In Markdown, for README: each of our agents on a task, and beside it who else is known."""
    rows = []
    for name in (ATARI, MEMORY, REAL_WORLD):
        cores = "two cores" if STUDIES[name].has_machine else "one core"
        found = trainings(name)
        beside = {of.task: f"{ARMS[RIVAL].label}: {of.final}" for of in found if of.arm == RIVAL}
        if name == ATARI:
            beside = {
                of.task: f"R2D2's paper: {scores.SCORES[of.task]['r2d2']:,.2f}" for of in found
            }
        for made in found:
            if made.arm != RIVAL and not ARMS[made.arm].flags:  # nor one without an LSTM
                row = [title(made.task), ARMS[made.arm].label, f"{made.minutes} min, {cores}"]
                rows.append([*row, str(made.final), beside.get(made.task, "")])
    return study.markdown(["task", "agent", "", "return", "beside it"], rows)


def written(page: str) -> str:
    """The page with all that is in docs/data, and the policies that are kept."""
    for name in STUDIES:
        page = study.replace_block(page, name, block(name))
    return study.replace_block(page, "policies", policies_table())


def main() -> None:
    """Trains what is missing, then draws it and writes the page."""
    parser = study.parser_of_trainings(__doc__, "runs", None, study=STUDIES)
    parser.add_argument("--peer_python", default="python", help="has sb3-contrib and the suites")
    asked = parser.parse_args()
    if asked.minutes != 0:
        try:
            check(asked.study, asked.peer_python)
        except ValueError as error:
            parser.error(str(error))
        complete(asked.runs, asked.study, asked.minutes, asked.peer_python)
    if trained(asked.study):
        draw(asked.study, image(asked.study))
    PAGE.write_text(written(PAGE.read_text()))
    README.write_text(study.replace_block(README.read_text(), "results", summary()))
    print(table(asked.study))


if __name__ == "__main__":
    main()
