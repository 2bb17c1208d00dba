"""What an agent learns of continuous control in 40 minutes of one core from features, 25 elsewhere.

    MUJOCO_GL=egl python -m studies.control_curves RUNS

trains what docs/data/control_returns.csv does not hold yet, two at a time, a core each, then draws
and prints all of it. A run is a folder of RUNS; each is evaluated by 30 episodes of its last
parameters. Returns by minute are in docs/data/control_curves.csv. With --minutes=0 it only draws.
"""

import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from analysis.playing import files
from environments import suites
from run_folder import log_reader
from run_folder.layout import RunFolder
from studies import arguments, curves, records, timed
from studies.curves import Episodes

EPISODES = 30
FEATURES = "control:cartpole/swingup"
PIXELS = "control-pixels:cartpole/swingup"
REAL_WORLD = "rwrl:cartpole/swingup/medium"
ENVS = {
    FEATURES: "cartpole/swingup from features",
    REAL_WORLD: "rwrl: cartpole/swingup/medium",
    PIXELS: "cartpole/swingup from pixels",
}
MINUTES = {FEATURES: 40.0, REAL_WORLD: 25.0, PIXELS: 25.0}  # of a training, where none are asked
RANDOM = "random"
AGENTS = {
    ("impala", 64): ("IMPALA, LSTM of 64", "tab:gray"),
    ("impala", 0): ("IMPALA, no LSTM", "tab:olive"),
    ("stac", 64): ("STAC, LSTM of 64", "tab:blue"),
    ("stacx", 64): ("STACX, LSTM of 64", "tab:red"),
}
_LINES = {1: "-", 2: "--"}


class Run(NamedTuple):
    """What tells one training from the others."""

    env: str
    agent: str
    lstm_size: int
    seed: int


class Result(NamedTuple):
    """What came of it."""

    actor_steps: int
    evaluated: float  # mean return of EPISODES
    standard_error: float  # of that


class Minute(NamedTuple):
    """A minute of a training."""

    env: str
    agent: str
    lstm_size: int
    seed: int
    minute: int


RUNS = [
    *(Run(FEATURES, agent, 64, seed) for seed in _LINES for agent in ("impala", "stac", "stacx")),
    *(Run(REAL_WORLD, "impala", size, 1) for size in (64, 0)),
    Run(PIXELS, "impala", 64, 1),
    *(Run(REAL_WORLD, "impala", size, 2) for size in (64, 0)),
]


def random_returns(env: str, episodes: int) -> np.ndarray:
    """What actions are given that are drawn uniformly within their bounds: `[episodes]`."""
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


def folder_of(runs: pathlib.Path, run: Run) -> pathlib.Path:
    """The run folder of a training."""
    return runs / re.sub(r"\W+", "_", f"{run.env} {run.agent} {run.lstm_size} {run.seed}")


def flags(run: Run) -> list[str]:
    """What `launch.train` is told, but for its folder."""
    return [
        *(f"--agent={run.agent}", f"--env={run.env}", f"--seed={run.seed}"),
        *("--num_actors=16", "--actors_per_node=16", "--evaluation_episodes=0"),
        f"--{run.agent}.lstm_size={run.lstm_size}",
    ]


def train(runs: pathlib.Path, run: Run, minutes: float, core: int) -> None:
    """Trains on one core, and evaluates."""
    path, alone = folder_of(runs, run), curves.alone(core)
    timed.train(path, flags(run), minutes, alone)
    timed.run(["launch.evaluate", f"--run_dir={path}", f"--episodes={EPISODES}"], None, alone)


def result(path: pathlib.Path) -> Result:
    """What came of the training of a run folder."""
    (rows,) = files.read_all(path).values()
    return _result(rows[0].actor_steps, np.array([row.episode_return for row in rows]))


def _result(actor_steps: int, returns: np.ndarray) -> Result:
    error = returns.std(ddof=1) / np.sqrt(len(returns))
    return Result(actor_steps, float(returns.mean()), float(error))


def minutes_of(path: pathlib.Path, run: Run) -> Iterator[tuple[Minute, Episodes]]:
    """A run's episodes by the minute in which they ended."""
    log = log_reader.read(RunFolder(path).log("episodes"), texts=("task",))
    columns = log.defined("walltime", "actor_steps", "episode_return")
    for minute, episodes in curves.by_minute(*columns):
        yield Minute(*run, minute), episodes


def complete(runs: pathlib.Path, minutes: float | None, docs: pathlib.Path) -> None:
    """Makes the trainings that are missing, a core each."""
    known = records.read(docs / "data" / "control_returns.csv", Run, Result)

    def make(run: Run, core: int) -> None:
        train(runs, run, MINUTES[run.env] if minutes is None else minutes, core)

    for run in curves.on_cores([run for run in RUNS if run not in known], make):
        path = folder_of(runs, run)
        records.extend(docs / "data" / "control_curves.csv", minutes_of(path, run))
        records.append(docs / "data" / "control_returns.csv", run, result(path))
    for env in ENVS:
        if (run := Run(env, RANDOM, 0, 0)) not in known:
            played = _result(0, random_returns(env, EPISODES))
            records.append(docs / "data" / "control_returns.csv", run, played)


def draw(docs: pathlib.Path) -> None:
    """Returns against minutes, an environment each."""
    points = records.read(docs / "data" / "control_curves.csv", Minute, Episodes)
    results = records.read(docs / "data" / "control_returns.csv", Run, Result)
    played = [env for env in ENVS if any(run.env == env for run in results)]
    figure, axes = plt.subplots(
        1, len(played), figsize=(4.4 * len(played), 3.8), constrained_layout=True, squeeze=False
    )
    for axis, env in zip(axes.flat, played, strict=True):
        for run in (run for run in results if run.env == env):
            if run.agent == RANDOM:
                axis.axhline(results[run].evaluated, color="black", linestyle=":", label="random")
                continue
            name, colour = AGENTS[run.agent, run.lstm_size]
            own = [(key.minute, value) for key, value in points.items() if key[:-1] == run]
            x, y = [minute for minute, _ in own], [value.episode_return for _, value in own]
            label = name if run.seed == min(_LINES) else None
            axis.plot(x, y, _LINES[run.seed], color=colour, label=label)
        axis.set(title=ENVS[env], xlabel="minutes of one core", ylim=(0, None))
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    axes[0, 0].set_ylabel("training return")
    figure.savefig(docs / "images" / "control_curves.png", dpi=110)


def table(docs: pathlib.Path) -> str:
    """Markdown: a training a row."""
    lines = ["| environment | agent | seed | actor steps | return |", "|---|---|---|---|---|"]
    results = records.read(docs / "data" / "control_returns.csv", Run, Result)
    for run, found in sorted(results.items()):
        name, _ = AGENTS.get((run.agent, run.lstm_size), ("uniformly random actions", ""))
        seed = "" if run.agent == RANDOM else str(run.seed)
        mean = f"{found.evaluated:.0f} ± {found.standard_error:.0f}"
        lines.append(f"| `{run.env}` | {name} | {seed} | {found.actor_steps:,} | {mean} |")
    return "\n".join(lines)


def main() -> None:
    """Trains what is missing, then draws and prints it."""
    asked = arguments.of_trainings(__doc__, "runs", None).parse_args()
    arguments.make_folders(asked.docs)
    if asked.minutes != 0:
        complete(asked.runs, asked.minutes, asked.docs)
    draw(asked.docs)
    print(table(asked.docs))


if __name__ == "__main__":
    main()
