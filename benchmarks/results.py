"""What the agents reach, beside whom and after how long: the trainings of docs/results.md.

    python -m benchmarks.results atari RUNS
    python -m benchmarks.results memory RUNS --peer_python=/path/to/python
    python -m benchmarks.results bsuite RUNS --peer_python=/path/to/python
    MUJOCO_GL=egl python -m benchmarks.results control RUNS
    MUJOCO_GL=disable python -m benchmarks.results real_world RUNS --peer_python=/path/to/python

trains what docs/data does not hold yet, then draws all of it and writes the page. A run is a folder
of RUNS; one that was cut short goes on. With --minutes=0 nothing is trained.

The policy of each task's first seed is kept in policies/.

`atari` has the whole machine for two hours each. The others have a core each, as many at a time as
there are cores, 16 environments and an LSTM of 64 units; beside them sb3-contrib's RecurrentPPO has
the same. `bsuite` is scored by bsuite's own rule, of the first 10,000 episodes of each task.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from analysis.playing import files, intervals
from benchmarks import figures, memory_tasks, study
from benchmarks.figures import Line, Panel
from benchmarks.study import DOCS, Episodes, Evaluation, Run
from environments import scores, suites
from run_folder import disk, launches, log_reader
from run_folder.layout import RunFolder

PAGE, POLICIES = DOCS / "results.md", DOCS.parent / "policies"
SEEDS = (1, 2, 3)
LAST = 2  # minutes whose mean is a run's final return
EPISODES = 30  # of an evaluation
BSUITE_EPISODES = 10_000  # of a task, which its score counts
BSUITE_ERRORS = 0.375  # below which a task is solved: 0.75 of a random policy's
NUM_ACTORS = 16
GREEDY = range(9, NUM_ACTORS)  # ε of R2D2's ladder is below 1 % there
RANDOM = "random"

ATARI, MEMORY, BSUITE = "atari", "memory", "bsuite"
CONTROL, REAL_WORLD = "control", "real_world"
RIVAL = "recurrent_ppo"
_MEMORY_TASKS = "benchmarks.memory_tasks"


class Minute(NamedTuple):
    """A minute of a training: the fields of its `Run`, and the number of the minute."""

    task: str
    arm: str
    seed: int
    minute: int


class Made(NamedTuple):
    """How a training came about."""

    commit: str
    machine: str
    command: str


class Arm(NamedTuple):
    """One of the agents that are compared."""

    label: str
    colour: str
    agent: str = ""  # the rival's is its own
    flags: tuple[str, ...] = ()  # of `launch.train`; by default the study's LSTM is


class Study(NamedTuple):
    """Trainings of some arms on some tasks."""

    minutes: float  # of a training, where none are asked
    runs: Sequence[Run]
    flags: tuple[str, ...] = (
        f"--num_actors={NUM_ACTORS}",
        f"--actors_per_node={NUM_ACTORS}",
        "--evaluation_episodes=0",
    )
    lstm_size: int | None = 64  # None leaves the preset's
    has_machine: bool = False  # each training the whole one; else a core
    evaluates: bool = False  # while it trains; what is evaluated at the end is then the best
    is_scored: bool = False  # by all episodes that are played, and not by an evaluation

    @property
    def checkpoint(self) -> str:
        """Whose parameters are evaluated and kept."""
        return "best" if self.evaluates else "latest"

    @property
    def tasks(self) -> list[str]:
        """Each task once."""
        return list(dict.fromkeys(run.task for run in self.runs))


ARMS = {
    "r2d2": Arm("R2D2", "tab:red", "r2d2"),
    "impala": Arm("IMPALA", "tab:blue", "impala"),
    "impala_feedforward": Arm("IMPALA, no LSTM", "tab:olive", "impala", ("--impala.lstm_size=0",)),
    "stac": Arm("STAC", "tab:purple", "stac"),
    "stacx": Arm("STACX", "tab:green", "stacx"),
    "rsac": Arm("recurrent SAC", "tab:red", "rsac"),
    "rsac_feedforward": Arm(
        "SAC, no LSTM", "tab:orange", "rsac", ("--rsac.lstm_size=0", "--rsac.burn_in=0")
    ),
    RIVAL: Arm("RecurrentPPO", "tab:gray"),
}


def _runs(tasks: Sequence[str], arms: Sequence[str], seeds: Sequence[int] = SEEDS) -> list[Run]:
    return [Run(task, arm, seed) for seed in seeds for task in tasks for arm in arms]


_GAMES = [f"atari:{game}" for game in ("pong", "boxing", "breakout", "freeway", "ms_pacman")]
_CHAIN, _CHAIN_17 = (f"{_MEMORY_TASKS}:memory_len_{n}" for n in (100, 17))
_S9, _S7 = f"{_MEMORY_TASKS}:memory_s9", "gym:minigrid:MiniGrid-MemoryS7-v0"
_POPGYM = [
    f"gym:popgym:popgym-{task}Easy-v0" for task in ("RepeatPrevious", "Autoencode", "CountRecall")
]
_SWINGUP, _FROM_PIXELS = (f"{kind}:cartpole/swingup" for kind in ("control", "control-pixels"))
_REAL_WORLD = [f"rwrl:{task}/medium" for task in ("cartpole/swingup", "walker/walk")]
LENGTHS = {f"{_MEMORY_TASKS}:memory_len_{n}": n for n in memory_tasks.LENGTHS}
SIZES = {f"{_MEMORY_TASKS}:memory_size_{n}": n for n in memory_tasks.SIZES}
STUDIES = {
    ATARI: Study(
        120.0,
        [
            *_runs(_GAMES, ["r2d2"], seeds=[1]),
            *_runs([_GAMES[0], _GAMES[2]], ["impala"], seeds=[1]),
        ],
        flags=("--evaluation_minutes=8", "--evaluation_episodes=4"),
        lstm_size=None,
        has_machine=True,
        evaluates=True,
    ),
    MEMORY: Study(
        10.0,
        [
            *_runs([*_POPGYM, _CHAIN_17, _CHAIN, _S7, _S9], ["r2d2", RIVAL]),
            *_runs([_POPGYM[0], _CHAIN], ["impala"]),
        ],
    ),
    BSUITE: Study(
        60.0,
        [
            *_runs([*LENGTHS, *SIZES], ["r2d2"]),
            *_runs([*LENGTHS, *SIZES], [RIVAL], seeds=[1]),
        ],
        is_scored=True,
    ),
    CONTROL: Study(
        25.0,
        [
            *_runs([_SWINGUP], ["impala", "stac", "stacx"], seeds=[1, 2]),
            *_runs([_REAL_WORLD[0]], ["impala", "impala_feedforward"], seeds=[1, 2]),
            *_runs([_FROM_PIXELS], ["impala"], seeds=[1]),
        ],
    ),
    REAL_WORLD: Study(20.0, _runs(_REAL_WORLD, ["rsac", "rsac_feedforward", RIVAL])),
}


def data(name: str, what: str) -> pathlib.Path:
    """The file of a study's minutes, `curves`, its evaluations, `returns`, or `Made`, `runs`."""
    return DOCS / "data" / f"{name}_{what}.csv"


def image(name: str) -> pathlib.Path:
    """A study's picture."""
    return DOCS / "images" / f"{name}_curves.png"


def folder_of(runs: pathlib.Path, run: Run) -> pathlib.Path:
    """A training's run folder, or the rival's log."""
    return runs / re.sub(r"\W+", "_", f"{run.task} {run.arm} {run.seed}")


def steps_of(task: str) -> int | None:
    """Steps in which all actors' episodes of a task are those that bsuite counts; None elsewhere.

    An episode of so many steps of remembering has one more, and one of many bits has three.
    """
    if task in LENGTHS:
        return (BSUITE_EPISODES + NUM_ACTORS) * (LENGTHS[task] + 1)
    return (BSUITE_EPISODES + NUM_ACTORS) * 3 if task in SIZES else None


def policy_of(run: Run) -> pathlib.Path:
    """Where the policy of a task's first seed is kept."""
    return folder_of(POLICIES, run).with_name(folder_of(POLICIES, run).name.removesuffix("_1"))


def train(
    runs: pathlib.Path, name: str, run: Run, minutes: float, core: int | None, rival_python: str
) -> tuple[Made, Evaluation | None]:
    """Trains; of what was trained here it evaluates and keeps the policy, or it counts episodes."""
    asked, path = STUDIES[name], folder_of(runs, run)
    alone = () if core is None else ("taskset", "--cpu-list", str(core))
    steps = steps_of(run.task) if asked.is_scored else None
    if run.arm == RIVAL:
        made = train_rival(path, run, minutes, steps, (*alone, rival_python))
        return made, counted(path, run) if asked.is_scored else None
    _, _, agent, flags = ARMS[run.arm]
    if not flags and asked.lstm_size is not None:
        flags = (f"--{agent}.lstm_size={asked.lstm_size}",)
    flags += (f"--agent={agent}", f"--env={run.task}", f"--seed={run.seed}", *asked.flags)
    if steps is not None:
        flags += (f"--max_actor_steps={steps}",)
    study.train(path, flags, minutes, alone)
    first, *_ = launches.read(path)
    made = Made(first.commit, first.processors, first.command)
    if asked.is_scored:
        return made, counted(path, run)
    found = study.evaluate(path, EPISODES, alone, asked.checkpoint)
    if run.seed == SEEDS[0] and not (kept := policy_of(run)).exists():
        how = (f"--run_dir={path}", f"--checkpoint={asked.checkpoint}", "--as_run")
        study.run(["launch.export", *how, f"--export_dir={kept}"], None)
    return made, found


def train_rival(
    path: pathlib.Path, run: Run, minutes: float, steps: int | None, python: Sequence[str]
) -> Made:
    """Trains the rival into a log, of which there is none before its end."""
    log = f"{path}{disk.TEMPORARY}"
    told = dict(env=run.task, seconds=60 * minutes, seed=run.seed, log=log, steps=steps)
    how = ("-m", "benchmarks.rivals.stable_baselines", json.dumps(told))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run((*python, *how), check=True)
        os.replace(log, path)
    machine = f"{launches.processor()}, 1 core"
    return Made(launches.commit(), machine, shlex.join(("python", *how)))


def _log(path: pathlib.Path, run: Run, log: str = "episodes") -> log_reader.Log:
    if run.arm == RIVAL:
        return log_reader.read(path)
    texts = ("task",) if log == "episodes" else ()
    return log_reader.read(RunFolder(path).log(log), texts=texts)


def counted(path: pathlib.Path, run: Run) -> Evaluation:
    """The episodes that bsuite counts: the first ones of all actors, explored in or not."""
    log = _log(path, run)
    returns = log["episode_return"][:BSUITE_EPISODES]
    return Evaluation.of(int(log["actor_steps"][len(returns) - 1]), returns)


def minutes_of(path: pathlib.Path, name: str, run: Run) -> Iterator[tuple[Minute, Episodes]]:
    """A training's episodes by the minute in which they ended."""
    evaluates = STUDIES[name].evaluates
    log = _log(path, run, "evaluator" if evaluates else "episodes")
    if run.arm == "r2d2" and not evaluates:
        log = log.where(np.isin(log["actor"], GREEDY))
    columns = log.defined("walltime", "actor_steps", "episode_return")
    for minute, episodes in study.episodes_by_minute(*columns):
        yield Minute(*run, minute), episodes


def random_returns(env: str, episodes: int) -> np.ndarray:
    """Returns `[episodes]` of actions that are drawn uniformly."""
    environments = suites.make(env, episodes, seed=0)
    environments.action_space.seed(0)
    environments.reset()
    returns, over = np.zeros(episodes), np.zeros(episodes, bool)
    while not over.all():
        _, reward, terminated, truncated, _ = environments.step(environments.action_space.sample())
        returns += np.where(over, 0.0, reward)
        over |= terminated | truncated
    environments.close()
    return returns


def complete(runs: pathlib.Path, name: str, minutes: float | None, rival_python: str) -> None:
    """Makes the trainings that the files lack."""
    asked = STUDIES[name]
    minutes = asked.minutes if minutes is None else minutes
    curves, returns, origins = (data(name, what) for what in ("curves", "returns", "runs"))
    known = study.read(origins, Run, Made)
    played = study.read(returns, Run, Evaluation)

    def make(run: Run, core: int | None) -> tuple[Made, Evaluation | None]:
        return train(runs, name, run, minutes, core, rival_python)

    lacking = [run for run in asked.runs if run not in known]
    alone = ((run, make(run, None)) for run in lacking)
    for run, (made, evaluation) in alone if asked.has_machine else study.on_cores(lacking, make):
        # An episode may end while the run does.
        found = minutes_of(folder_of(runs, run), name, run)
        study.extend(curves, {minute: of for minute, of in found if minute.minute < minutes})
        if evaluation is not None:
            study.extend(returns, {run: evaluation})
        study.extend(origins, {run: made})  # the last: what is in there is made
    for task in () if asked.is_scored else asked.tasks:
        if (run := Run(task, RANDOM, 0)) not in played and task not in scores.SCORES:
            study.extend(returns, {run: Evaluation.of(0, random_returns(task, EPISODES))})


Points = dict[Run, list[tuple[int, Episodes]]]


def read(path: pathlib.Path) -> Points:
    """The minutes of each training that a file holds, in their order."""
    found: Points = {}
    for key, episodes in study.read(path, Minute, Episodes).items():
        found.setdefault(Run(*key[:-1]), []).append((key.minute, episodes))
    return found


def last_return(points: Sequence[tuple[int, Episodes]]) -> float:
    """The mean return of a training's last minutes."""
    return float(np.mean([episodes.episode_return for _, episodes in points[-LAST:]]))


def title(task: str) -> str:
    """A task's name as a picture and a table have it."""
    return task.rpartition(":")[2] if task.startswith(("gym:", _MEMORY_TASKS)) else task


def draw(name: str, path: pathlib.Path) -> None:
    """Draws a study."""
    if name == BSUITE:
        draw_bsuite(path)
    else:
        draw_curves(name, path)


def draw_curves(name: str, path: pathlib.Path) -> None:
    """Draws returns against minutes above, against steps below; a task a column."""
    points, random = read(data(name, "curves")), study.read(data(name, "returns"), Run, Evaluation)
    above, below = [], []
    for task in (task for task in STUDIES[name].tasks if any(run.task == task for run in points)):
        by_time, by_steps = [], []
        for run in (run for run in STUDIES[name].runs if run.task == task and run in points):
            arm = ARMS[run.arm]
            minutes, episodes = zip(*points[run], strict=True)
            steps, returns = zip(*episodes, strict=True)
            style = dict(color=arm.colour, alpha=0.8)
            label = arm.label if run.seed == SEEDS[0] else None
            by_time.append(Line(minutes, returns, label, style=style))
            by_steps.append(Line(steps, returns, style=style))
        if found := random.get(Run(task, RANDOM, 0)):
            style = dict(color="black", linestyle=":")
            end = max(line.x[-1] for line in by_time)
            by_time.append(Line([0, end], [found.evaluated] * 2, RANDOM, style=style))
        machine = "two cores" if STUDIES[name].has_machine else "one core"
        words = dict(title=title(task), xlabel=f"minutes of {machine}")
        above.append(Panel(by_time, words, {}))
        below.append(Panel(by_steps, dict(xlabel="actor steps")))
    for panels in (above, below):
        panels[0].words["ylabel"] = "return"
    figures.draw(above + below, path, (4.4 * len(above), 6.5), columns=len(above))


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


def table(name: str) -> str:
    """In Markdown: an agent on a task a row, of the seeds that have been made."""
    if name == BSUITE:
        return bsuite_table()
    points, played = read(data(name, "curves")), study.read(data(name, "returns"), Run, Evaluation)
    asked, rows = STUDIES[name], []
    for task, arm in dict.fromkeys((run.task, run.arm) for run in asked.runs):
        runs = [run for run in asked.runs if run[:2] == (task, arm) and run in points]
        if not runs:
            continue
        own = [points[run] for run in runs]
        minutes = max(of[-1][0] for of in own) + 1
        steps = np.mean([of[-1][1].actor_steps for of in own])
        row = [f"`{title(task)}`", ARMS[arm].label, f"{len(runs)}", f"{minutes}", f"{steps:,.0f}"]
        row.append(str(study.median([last_return(of) for of in own])))
        found = [played[run] for run in runs if run in played]
        row.append(_evaluated(found))
        if asked.has_machine:
            human = scores.human_normalised(task, found[0].evaluated)
            published = scores.SCORES[task]["r2d2"]
            row += [f"{human:.0%}", f"{published:,.1f}"]
        rows.append(row)
    header = ["task", "agent", "seeds", "minutes", "actor steps", "while training"]
    header.append(f"{EPISODES} episodes at the end")
    if asked.has_machine:
        header += ["of a human's", "R2D2's paper, 10 billion frames"]
    return study.markdown(header, rows)


def _evaluated(found: Sequence[Evaluation]) -> str:
    if len(found) == 1:
        return f"{found[0].evaluated:.2f} ± {found[0].standard_error:.2f}"
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
    made, asked = study.read(data(name, "runs"), Run, Made), STUDIES[name].runs
    parts = []
    if lacking := sum(run not in made for run in asked):
        parts.append(f"Of its {len(asked)} trainings {lacking} are not made yet.")
    if made:
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
        low, high = intervals.of_mean(returns)
        size = sum(path.stat().st_size for path in (folder / "checkpoints").iterdir())
        mean = f"{returns.mean():,.2f} [{low:,.2f}, {high:,.2f}]"
        rows.append([f"`{folder.name}`", mean, str(len(returns)), f"{size / 1e6:.2f} MB"])
    return study.markdown(["policy", "return", "episodes", "size"], rows) if rows else "None yet."


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
        complete(asked.runs, asked.study, asked.minutes, asked.peer_python)
    draw(asked.study, image(asked.study))
    PAGE.write_text(written(PAGE.read_text()))
    print(table(asked.study))


if __name__ == "__main__":
    main()
