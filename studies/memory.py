"""R2D2 on memory tasks of public suites, beside sb3-contrib's RecurrentPPO.

    python -m studies.memory RUNS --peer_python=/path/to/python

trains what docs/data/memory.csv does not hold yet: ten minutes each, a core each, three seeds. Both
play 16 environments, with an LSTM of 64 units. R2D2's returns are those of the actors that hardly
explore, RecurrentPPO's those of its policy. With --minutes=0 it only draws and prints.
"""

import importlib
import json
import pathlib
import re
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from run_folder import log_reader
from run_folder.layout import RunFolder
from studies import arguments, curves, records, timed
from studies.curves import Episodes
from studies.intervals import interval

SEEDS = (1, 2, 3)
MINUTES = 10.0
LAST = 2  # minutes whose mean is a run's final return
NUM_ACTORS = 16
GREEDY = range(9, NUM_ACTORS)  # ε of the ladder is below 1 % there
R2D2, PPO = "r2d2", "recurrent_ppo"
AGENTS = {R2D2: ("R2D2", "tab:red"), PPO: ("RecurrentPPO", "tab:gray")}
# The name here, and what the peer calls it.
TASKS = {
    "gym:popgym:popgym-RepeatPreviousEasy-v0": "gym:popgym:popgym-RepeatPreviousEasy-v0",
    "gym:minigrid:MiniGrid-MemoryS7-v0": "gym:minigrid:MiniGrid-MemoryS7-v0",
    "studies.memory:memory_len": "bsuite:memory_len/12",
}


class Run(NamedTuple):
    """What tells one training from the others."""

    task: str
    agent: str
    seed: int


class Minute(NamedTuple):
    """A minute of a training."""

    task: str
    agent: str
    seed: int
    minute: int


RUNS = [Run(task, agent, seed) for task in TASKS for seed in SEEDS for agent in AGENTS]


def memory_len() -> Any:
    """bsuite's task of remembering for 17 steps."""
    return importlib.import_module("bsuite").load_from_id("memory_len/12")


def folder_of(runs: pathlib.Path, run: Run) -> pathlib.Path:
    """A training's run folder, or the peer's log."""
    return runs / re.sub(r"\W+", "_", f"{run.task} {run.agent} {run.seed}")


def flags(run: Run) -> list[str]:
    """What `launch.train` is told, but for its folder."""
    return [
        *(f"--agent={R2D2}", f"--env={run.task}", f"--seed={run.seed}", "--evaluation_episodes=0"),
        *(f"--num_actors={NUM_ACTORS}", f"--actors_per_node={NUM_ACTORS}"),
    ]


def train(runs: pathlib.Path, run: Run, minutes: float, core: int, peer_python: str) -> None:
    """Trains on one core."""
    path, alone = folder_of(runs, run), curves.alone(core)
    if run.agent == R2D2:
        timed.train(path, flags(run), minutes, alone)
        return
    runs.mkdir(parents=True, exist_ok=True)
    told = dict(env=TASKS[run.task], seconds=60 * minutes, seed=run.seed, log=str(path))
    command = (*alone, peer_python, "-m", "benchmarks.peers.recurrent_ppo", json.dumps(told))
    subprocess.run(command, check=True)


def minutes_of(path: pathlib.Path, run: Run) -> Iterator[tuple[Minute, Episodes]]:
    """A training's episodes by the minute in which they ended."""
    if run.agent == R2D2:
        log = log_reader.read(RunFolder(path).log("episodes"), texts=("task",))
        walltime, steps, returns, actor = log.defined(
            "walltime", "actor_steps", "episode_return", "actor"
        )
        greedy = np.isin(actor, GREEDY)
        walltime, steps, returns = walltime[greedy], steps[greedy], returns[greedy]
    else:
        log = log_reader.read(path)
        walltime, steps, returns = log.defined("walltime", "actor_steps", "episode_return")
    for minute, episodes in curves.by_minute(walltime, steps, returns):
        yield Minute(*run, minute), episodes


def complete(runs: pathlib.Path, minutes: float, peer_python: str, path: pathlib.Path) -> None:
    """Makes the trainings that a file lacks, a core each."""
    known = {Run(*key[:-1]) for key in records.read(path, Minute, Episodes)}

    def make(run: Run, core: int) -> None:
        train(runs, run, minutes, core, peer_python)

    for run in curves.on_cores([run for run in RUNS if run not in known], make):
        found = minutes_of(folder_of(runs, run), run)
        # An episode may end while the run does.
        records.extend(path, ((m, episodes) for m, episodes in found if m.minute < minutes))


Points = dict[Run, list[tuple[int, Episodes]]]


def read(path: pathlib.Path) -> Points:
    """The minutes of each training that a file holds, in their order."""
    found: Points = {}
    for key, episodes in records.read(path, Minute, Episodes).items():
        found.setdefault(Run(*key[:-1]), []).append((key.minute, episodes))
    return found


def draw(points: Points, path: pathlib.Path) -> None:
    """Returns against minutes above, against steps below; a task a column."""
    tasks = [task for task in TASKS if any(run.task == task for run in points)]
    figure, axes = plt.subplots(
        2, len(tasks), figsize=(4.4 * len(tasks), 6.5), constrained_layout=True, squeeze=False
    )
    for column, task in enumerate(tasks):
        by_time, by_steps = axes[:, column]
        for run, own in points.items():
            if run.task != task:
                continue
            name, colour = AGENTS[run.agent]
            label = name if run.seed == SEEDS[0] else None
            returns = [episodes.episode_return for _, episodes in own]
            by_time.plot([minute for minute, _ in own], returns, color=colour, label=label)
            by_steps.plot([episodes.actor_steps for _, episodes in own], returns, color=colour)
        by_time.set(title=task.rpartition(":")[2], xlabel="minutes of one core")
        by_steps.set(xlabel="actor steps")
        for axis in (by_time, by_steps):
            axis.grid(alpha=0.3)
    axes[0, 0].legend(frameon=False)
    for axis in axes[:, 0]:
        axis.set_ylabel("return")
    figure.savefig(path, dpi=110)


def table(points: Points) -> str:
    """Markdown: a task a row."""
    names = [name for name, _ in AGENTS.values()]
    header = [f"{name}, {what}" for name in names for what in ("return", "actor steps")]
    lines = [f"| task | {' | '.join(header)} |", "|---" * (1 + len(header)) + "|"]
    for task in TASKS:
        cells = []
        for agent in AGENTS:
            own = [found for run, found in points.items() if (run.task, run.agent) == (task, agent)]
            if len(own) < len(SEEDS):
                break
            last = [np.mean([e.episode_return for _, e in found[-LAST:]]) for found in own]
            steps = np.mean([found[-1][1].actor_steps for found in own])
            cells += [str(interval([float(mean) for mean in last])), f"{steps:,.0f}"]
        else:
            lines.append(f"| `{task}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Trains what is missing, then draws and prints it."""
    parser = arguments.of_trainings(__doc__, "runs", MINUTES)
    parser.add_argument("--peer_python", default="python", help="has sb3-contrib and the suites")
    asked = parser.parse_args()
    arguments.make_folders(asked.docs)
    data = asked.docs / "data" / "memory.csv"
    if asked.minutes:
        complete(asked.runs, asked.minutes, asked.peer_python, data)
    points = read(data)
    draw(points, asked.docs / "images" / "memory.png")
    print(table(points))


if __name__ == "__main__":
    main()
