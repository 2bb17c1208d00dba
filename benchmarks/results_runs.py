"""The trainings of docs/results.md: what each study trains, how, and what is kept of it.

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
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks import memory_tasks, study
from benchmarks.study import DOCS, Episodes, Evaluation, Run
from environments import scores, suites
from run_folder import disk, launches, log_reader
from run_folder.layout import RunFolder

POLICIES = DOCS.parent / "policies"
SEEDS = (1, 2, 3)
EPISODES = 30  # of an evaluation
BSUITE_EPISODES = 10_000  # of a task, which its score counts
NUM_ACTORS = 16
GREEDY = range(9, NUM_ACTORS)  # ε of R2D2's ladder is below 1 % there
RANDOM = "random"

ATARI, MEMORY, BSUITE = "atari", "memory", "bsuite"
CONTROL, REAL_WORLD = "control", "real_world"
RIVAL = "recurrent_ppo"
MEMORY_TASKS = "benchmarks.memory_tasks"


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
    "popart": Arm("PopArt", "tab:brown", "popart"),
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
_CHAIN, _CHAIN_50, _CHAIN_17 = (f"{MEMORY_TASKS}:memory_len_{n}" for n in (100, 50, 17))
_S9, _S7 = f"{MEMORY_TASKS}:memory_s9", "gym:minigrid:MiniGrid-MemoryS7-v0"
_POPGYM = [
    f"gym:popgym:popgym-{task}Easy-v0" for task in ("RepeatPrevious", "Autoencode", "CountRecall")
]
_SWINGUP, _FROM_PIXELS = (f"{kind}:cartpole/swingup" for kind in ("control", "control-pixels"))
_SUITE = [f"control:{task}" for task in ("walker/walk", "finger/spin")]
_REAL_WORLD = [f"rwrl:{task}/medium" for task in ("cartpole/swingup", "walker/walk")]
LENGTHS = {f"{MEMORY_TASKS}:memory_len_{n}": n for n in memory_tasks.LENGTHS}
SIZES = {f"{MEMORY_TASKS}:memory_size_{n}": n for n in memory_tasks.SIZES}
_OF_RIVAL = [task for task, length in LENGTHS.items() if length <= 30]  # more would take hours
STUDIES = {
    ATARI: Study(
        120.0,
        [
            *_runs(_GAMES[:1], ["r2d2", "impala"], seeds=[0]),
            *_runs(_GAMES[1:], ["r2d2"], seeds=[1]),
            *_runs(_GAMES[2:3], ["impala"], seeds=[1]),
        ],
        flags=("--evaluation_minutes=8", "--evaluation_episodes=4"),
        lstm_size=None,
        has_machine=True,
        evaluates=True,
    ),
    MEMORY: Study(
        10.0,
        [
            run
            for seed in SEEDS  # a training of each before a second one
            for run in (
                *_runs([_CHAIN_50], ["r2d2", "impala", "popart", "stac", RIVAL], [seed]),
                *_runs(_POPGYM[:1], ["impala"], [seed]),
                *_runs([*_POPGYM, _CHAIN_17, _CHAIN, _S7, _S9], ["r2d2", RIVAL], [seed]),
            )
        ],
    ),
    BSUITE: Study(
        60.0,
        [
            *_runs([*LENGTHS, *SIZES], ["r2d2"], seeds=[1]),
            *_runs([*_OF_RIVAL, *SIZES], [RIVAL], seeds=[1]),
        ],
        is_scored=True,
    ),
    CONTROL: Study(
        25.0,
        [
            *_runs([_SWINGUP], ["impala", "stac", "stacx"], seeds=[1, 2]),
            *_runs([_REAL_WORLD[0]], ["impala", "impala_feedforward"], seeds=[1, 2]),
            *_runs([_FROM_PIXELS], ["impala"], seeds=[1]),
            *_runs([_SWINGUP], ["rsac"], seeds=[1]),
            *_runs(_SUITE, ["rsac", "stacx"], seeds=[1]),
        ],
    ),
    REAL_WORLD: Study(
        20.0,
        [
            *_runs(_REAL_WORLD, ["rsac", "rsac_feedforward", RIVAL]),
            *_runs(_REAL_WORLD, ["stacx"], seeds=[1]),
        ],
    ),
}


def data(name: str, what: str) -> pathlib.Path:
    """The file of a study's minutes, `curves`, its evaluations, `returns`, or `Made`, `runs`."""
    return DOCS / "data" / f"{name}_{what}.csv"


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
        subprocess.run((*study.TIED, *python, *how), check=True)
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


def trained(name: str) -> list[Run]:
    """The trainings of a study that the files hold whole."""
    found = study.read(data(name, "runs"), Run, Made)
    return [run for run in STUDIES[name].runs if run in found]


def lacking(name: str) -> list[Run]:
    """The trainings of a study that are not made yet."""
    there = trained(name)
    return [run for run in STUDIES[name].runs if run not in there]


def check(name: str, rival_python: str) -> None:
    """Checks that what the files of a study lack can be trained here.

    Raises:
      ValueError: a sentence; a task or the rival cannot.
    """
    for task in dict.fromkeys(run.task for run in lacking(name)):
        suites.check(task)
    if any(run.arm == RIVAL for run in lacking(name)):
        try:  # its own words are printed
            subprocess.run((rival_python, "-c", "import sb3_contrib, shimmy"), check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ValueError(
                f"--peer_python={rival_python} must have what docs/results.md names: {error}"
            ) from None


def complete(runs: pathlib.Path, name: str, minutes: float | None, rival_python: str) -> None:
    """Makes the trainings that the files lack."""
    asked = STUDIES[name]
    minutes = asked.minutes if minutes is None else minutes
    curves, returns, origins = (data(name, what) for what in ("curves", "returns", "runs"))
    played = study.read(returns, Run, Evaluation)

    def make(run: Run, core: int | None) -> tuple[Made, Evaluation | None]:
        return train(runs, name, run, minutes, core, rival_python)

    for task in () if asked.is_scored else asked.tasks:
        if (run := Run(task, RANDOM, 0)) not in played and task not in scores.SCORES:
            study.extend(returns, {run: Evaluation.of(0, random_returns(task, EPISODES))})
    jobs = lacking(name)
    alone = ((run, make(run, None)) for run in jobs)
    for run, (made, evaluation) in alone if asked.has_machine else study.on_cores(jobs, make):
        # An episode may end while the run does.
        found = minutes_of(folder_of(runs, run), name, run)
        study.extend(curves, {minute: of for minute, of in found if minute.minute < minutes})
        if evaluation is not None:
            study.extend(returns, {run: evaluation})
        study.extend(origins, {run: made})  # the last: what is in there is made
