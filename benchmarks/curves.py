"""Learning curves of agents that have so many minutes of one core each.

    python -m benchmarks.curves memory RUNS --peer_python=/path/to/python
    MUJOCO_GL=egl python -m benchmarks.curves control RUNS
    MUJOCO_GL=disable python -m benchmarks.curves real_world RUNS --peer_python=/path/to/python

trains what docs/data does not hold yet, as many at a time as there are cores, then draws and
prints all of it. A run is a folder of RUNS; one that was cut short goes on. With --minutes=0 it
only draws.

`memory` is R2D2 on memory tasks of public suites, beside sb3-contrib's RecurrentPPO: ten minutes
and three seeds of each. Both play 16 environments, with an LSTM of 64 units. R2D2's returns come
from the actors that hardly explore, RecurrentPPO's from its policy.

`real_world` is recurrent SAC, with an LSTM and without, beside RecurrentPPO, on two tasks of the
Real-World RL suite whose sensors are late, noisy, stuck or silent: 20 minutes and three seeds each.

`control` is cartpole/swingup: 40 minutes from features, 25 elsewhere. Each run is evaluated by 30
episodes of its last parameters.
"""

import importlib
import json
import os
import pathlib
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks import figures, study
from benchmarks.figures import Line, Panel
from benchmarks.study import DOCS, Episodes, Evaluation, Run
from environments import suites
from run_folder import disk, launches, log_reader
from run_folder.layout import RunFolder

SEEDS = (1, 2, 3)
LAST = 2  # minutes whose mean is a run's final return
EPISODES = 30  # of an evaluation
NUM_ACTORS = 16
GREEDY = range(9, NUM_ACTORS)  # ε of R2D2's ladder is below 1 % there
RANDOM = "random"
FEATURES = "control:cartpole/swingup"
PIXELS = "control-pixels:cartpole/swingup"
REAL_WORLD = "rwrl:cartpole/swingup/medium"
REAL_WALKER = "rwrl:walker/walk/medium"
POPGYM, MINIGRID = "gym:popgym:popgym-RepeatPreviousEasy-v0", "gym:minigrid:MiniGrid-MemoryS7-v0"
BSUITE = "benchmarks.curves:memory_len"


def memory_len() -> Any:
    """bsuite's task of remembering for 17 steps."""
    return importlib.import_module("bsuite").load_from_id("memory_len/12")


class Minute(NamedTuple):
    """A minute of a training: the fields of its `Run`, and the number of the minute."""

    task: str
    arm: str
    seed: int
    minute: int


class Task(NamedTuple):
    """A task that is played."""

    title: str
    minutes: float  # of a training, where none are asked
    rivals_name: str = ""


class Arm(NamedTuple):
    """One of the agents that are compared."""

    label: str
    colour: str
    flags: tuple[str, ...] = ()  # of `launch.train`; none of a rival's


class Study(NamedTuple):
    """Trainings of some arms on some tasks."""

    tasks: Mapping[str, Task]
    arms: Mapping[str, Arm]
    runs: Sequence[Run]
    evaluates: bool  # what was trained here

    @property
    def is_by_task(self) -> bool:
        """Whether each arm has all seeds on each task, so that it has an interval there."""
        return len(self.runs) == len(self.tasks) * len(self.arms) * len(SEEDS)


class Made(NamedTuple):
    """How a training came about."""

    commit: str
    machine: str
    command: str


def _arm(label: str, colour: str, agent: str, lstm_size: int = 64) -> Arm:
    return Arm(label, colour, (f"--agent={agent}", f"--{agent}.lstm_size={lstm_size}"))


MEMORY, CONTROL, REAL = "memory", "control", "real_world"
_STYLES = {1: "-", 2: "--"}
_MEMORY = {
    POPGYM: Task("popgym-RepeatPreviousEasy-v0", 10.0, POPGYM),
    MINIGRID: Task("MiniGrid-MemoryS7-v0", 10.0, MINIGRID),
    BSUITE: Task("memory_len", 10.0, "bsuite:memory_len/12"),
}
_CONTROL = {
    FEATURES: Task("cartpole/swingup from features", 40.0),
    REAL_WORLD: Task("rwrl: cartpole/swingup/medium", 25.0),
    PIXELS: Task("cartpole/swingup from pixels", 25.0),
}
_REAL = {name: Task(name.replace(":", ": "), 20.0, name) for name in (REAL_WORLD, REAL_WALKER)}
RIVAL = "recurrent_ppo"
_SAC, _SAC_FEEDFORWARD = "rsac", "rsac_feedforward"
STUDIES = {
    MEMORY: Study(
        _MEMORY,
        {"r2d2": _arm("R2D2", "tab:red", "r2d2"), RIVAL: Arm("RecurrentPPO", "tab:gray")},
        [Run(task, arm, seed) for task in _MEMORY for seed in SEEDS for arm in ("r2d2", RIVAL)],
        evaluates=False,
    ),
    REAL: Study(
        _REAL,
        {
            _SAC: _arm("recurrent SAC", "tab:red", "rsac"),
            _SAC_FEEDFORWARD: Arm(
                "SAC, no LSTM",
                "tab:orange",
                ("--agent=rsac", "--rsac.lstm_size=0", "--rsac.burn_in=0"),
            ),
            RIVAL: Arm("RecurrentPPO", "tab:gray"),
        },
        [
            Run(task, arm, seed)
            for seed in SEEDS
            for task in _REAL
            for arm in (_SAC, _SAC_FEEDFORWARD, RIVAL)
        ],
        evaluates=True,
    ),
    CONTROL: Study(
        _CONTROL,
        {
            "impala": _arm("IMPALA, LSTM of 64", "tab:gray", "impala"),
            "impala_feedforward": _arm("IMPALA, no LSTM", "tab:olive", "impala", 0),
            "stac": _arm("STAC, LSTM of 64", "tab:blue", "stac"),
            "stacx": _arm("STACX, LSTM of 64", "tab:red", "stacx"),
        },
        [
            *(Run(FEATURES, arm, i) for i in (1, 2) for arm in ("impala", "stac", "stacx")),
            *(Run(REAL_WORLD, arm, 1) for arm in ("impala", "impala_feedforward")),
            Run(PIXELS, "impala", 1),
            *(Run(REAL_WORLD, arm, 2) for arm in ("impala", "impala_feedforward")),
        ],
        evaluates=True,
    ),
}


def data(name: str, what: str) -> pathlib.Path:
    """The file of a study's minutes, `curves`, its evaluations, `returns`, or `Made`, `runs`."""
    return DOCS / "data" / f"{name}_{what}.csv"


def folder_of(runs: pathlib.Path, run: Run) -> pathlib.Path:
    """A training's run folder, or the rival's log."""
    return runs / re.sub(r"\W+", "_", f"{run.task} {run.arm} {run.seed}")


def train(
    runs: pathlib.Path, name: str, run: Run, minutes: float | None, core: int, rival_python: str
) -> tuple[Made, Evaluation | None]:
    """Trains on one core; evaluates what was trained here, where the study does."""
    path, alone = folder_of(runs, run), ("taskset", "--cpu-list", str(core))
    task, arm = STUDIES[name].tasks[run.task], STUDIES[name].arms[run.arm]
    minutes = task.minutes if minutes is None else minutes
    if not arm.flags:
        runs.mkdir(parents=True, exist_ok=True)
        log = f"{path}{disk.TEMPORARY}"
        told = dict(env=task.rivals_name, seconds=60 * minutes, seed=run.seed, log=log)
        rival = ("-m", "benchmarks.rivals.stable_baselines", json.dumps(told))
        if not path.exists():
            subprocess.run((*alone, rival_python, *rival), check=True)
            os.replace(log, path)
        machine = f"{launches.processor()}, 1 core"
        return Made(launches.commit(), machine, shlex.join(("python", *rival))), None
    flags = (
        *(*arm.flags, f"--env={run.task}", f"--seed={run.seed}", "--evaluation_episodes=0"),
        *(f"--num_actors={NUM_ACTORS}", f"--actors_per_node={NUM_ACTORS}"),
    )
    study.train(path, flags, minutes, alone)
    found = study.evaluate(path, EPISODES, alone) if STUDIES[name].evaluates else None
    first, *_ = launches.read(path)
    return Made(first.commit, first.processors, first.command), found


def minutes_of(path: pathlib.Path, run: Run) -> Iterator[tuple[Minute, Episodes]]:
    """A training's episodes by the minute in which they ended."""
    if run.arm == RIVAL:
        log = log_reader.read(path)
    else:
        log = log_reader.read(RunFolder(path).log("episodes"), texts=("task",))
    if run.arm == "r2d2":
        log = log.where(np.isin(log["actor"], GREEDY))
    columns = log.defined("walltime", "actor_steps", "episode_return")
    for minute, episodes in study.episodes_by_minute(*columns):
        yield Minute(*run, minute), episodes


def random_returns(env: str, episodes: int) -> np.ndarray:
    """Returns `[episodes]` of actions that are drawn uniformly within their bounds."""
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
    """Makes the trainings that the files lack, a core each."""
    asked = STUDIES[name]
    curves, returns, origins = (data(name, what) for what in ("curves", "returns", "runs"))
    known = study.read(origins, Run, Made)
    played = study.read(returns, Run, Evaluation)

    def make(run: Run, core: int) -> tuple[Made, Evaluation | None]:
        return train(runs, name, run, minutes, core, rival_python)

    lacking = [run for run in asked.runs if run not in known]
    for run, (made, evaluation) in study.on_cores(lacking, make):
        path = folder_of(runs, run)
        end = asked.tasks[run.task].minutes if minutes is None else minutes
        # An episode may end while the run does.
        found = {minute: of for minute, of in minutes_of(path, run) if minute.minute < end}
        study.extend(curves, found)
        if evaluation is not None:
            study.extend(returns, {run: evaluation})
        study.extend(origins, {run: made})  # the last: what is in there is made
    for task in asked.tasks if asked.evaluates else ():
        if (run := Run(task, RANDOM, 0)) not in played:
            study.extend(returns, {run: Evaluation.of(0, random_returns(task, EPISODES))})


Points = dict[Run, list[tuple[int, Episodes]]]


def read(path: pathlib.Path) -> Points:
    """The minutes of each training that a file holds, in their order."""
    found: Points = {}
    for key, episodes in study.read(path, Minute, Episodes).items():
        found.setdefault(Run(*key[:-1]), []).append((key.minute, episodes))
    return found


def draw(name: str, path: pathlib.Path) -> None:
    """Returns against minutes above, against steps below; a task a column."""
    asked, points = STUDIES[name], read(data(name, "curves"))
    random = study.read(data(name, "returns"), Run, Evaluation)
    above, below = [], []
    for task in (task for task in asked.tasks if any(run.task == task for run in points)):
        by_time, by_steps = [], []
        for run in (run for run in asked.runs if run.task == task and run in points):
            arm = asked.arms[run.arm]
            minutes, episodes = zip(*points[run], strict=True)
            steps, returns = zip(*episodes, strict=True)
            style = dict(color=arm.colour, linestyle=_STYLES.get(run.seed, "-."))
            label = arm.label if run.seed == SEEDS[0] else None
            by_time.append(Line(minutes, returns, label, style=style))
            by_steps.append(Line(steps, returns, style=style))
        if found := random.get(Run(task, RANDOM, 0)):
            style = dict(color="black", linestyle=":")
            end = max(line.x[-1] for line in by_time)
            by_time.append(Line([0, end], [found.evaluated] * 2, RANDOM, style=style))
        title = asked.tasks[task].title
        above.append(Panel(by_time, dict(title=title, xlabel="minutes of one core"), {}))
        below.append(Panel(by_steps, dict(xlabel="actor steps")))
    for panels in (above, below):
        panels[0].words["ylabel"] = "return while training"
    figures.draw(above + below, path, (4.4 * len(above), 6.5), columns=len(above))


def table(name: str) -> str:
    """In Markdown: a task a row with an interval for each arm, or an evaluation a row."""
    asked = STUDIES[name]
    rows = []
    if not asked.is_by_task:
        results = study.read(data(name, "returns"), Run, Evaluation)
        for run, found in sorted(results.items()):
            arm = asked.arms[run.arm].label if run.arm in asked.arms else "uniformly random actions"
            seed = "" if run.arm == RANDOM else str(run.seed)
            mean = f"{found.evaluated:.0f} ± {found.standard_error:.0f}"
            rows.append([f"`{run.task}`", arm, seed, f"{found.actor_steps:,}", mean])
        return study.markdown(["environment", "agent", "seed", "actor steps", "return"], rows)
    points = read(data(name, "curves"))
    labels = [arm.label for arm in asked.arms.values()]
    header = [f"{label}, {what}" for label in labels for what in ("return", "actor steps")]
    for task in asked.tasks:
        cells = []
        for arm in asked.arms:
            own = [found for run, found in points.items() if run[:2] == (task, arm)]
            if len(own) == len(SEEDS):
                last = [float(np.mean([e.episode_return for _, e in of[-LAST:]])) for of in own]
                steps = np.mean([of[-1][1].actor_steps for of in own])
                cells += [str(study.interval(last)), f"{steps:,.0f}"]
        if len(cells) == len(header):
            rows.append([f"`{task}`", *cells])
    return study.markdown(["task", *header], rows)


def main() -> None:
    """Trains what is missing, then draws and prints it."""
    parser = study.parser_of_trainings(__doc__, "runs", None, study=STUDIES)
    parser.add_argument("--peer_python", default="python", help="has sb3-contrib and the suites")
    asked = parser.parse_args()
    if asked.minutes != 0:
        complete(asked.runs, asked.study, asked.minutes, asked.peer_python)
    draw(asked.study, DOCS / "images" / f"{asked.study}_curves.png")
    print(table(asked.study))


if __name__ == "__main__":
    main()
