"""R2D2's returns compared: n-step ones, Watkins' and Retrace's λ-returns, Munchausen's, and MEME's.

    python -m benchmarks.returns small
    python -m benchmarks.returns pong --runs=runs/returns

`small` trains on `benchmarks.returns:cliff`, where a return that goes on through what was tried
leads over the edge. Actors and learner take turns in one process, so a run follows from its
seed. `pong` trains with the local preset on the whole machine, 20 minutes each, and evaluates.
Both train what docs/data does not hold yet, then print all of it; a run of Pong that was cut short
goes on.
"""

import functools
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import dm_env
import numpy as np
from dm_env import specs

from agents.single_process import SingleProcessAgent
from benchmarks import study, training
from benchmarks.study import DOCS, Evaluation, Run
from environments import suites
from environments.dm import make_environment_spec
from r2d2.agent import Config, make

SMALL, PONG = "small", "pong"
SEEDS = (1, 2, 3)
UPDATES = 1_500
NUM_ENVIRONMENTS = 16
STEPS = 12  # from one end of the cliff to the other
WAY = 0.1  # for each of them
MINUTES = 20.0  # of Pong
EPISODES = 30  # of an evaluation there
PONG_TASK, SMALL_TASK = "atari:pong", "benchmarks.returns:cliff"

# The arms: fields of R2D2's config. MEME's α is 2 in its reimplementations.
ARMS: dict[str, dict[str, Any]] = {
    "n_step": {},
    "one_step": dict(n_step=1),
    "watkins": dict(returns="watkins"),
    "retrace": dict(returns="retrace"),
    "munchausen": dict(munchausen_alpha=0.9, n_step=1),  # as its paper has it
    "meme": dict(returns="watkins", trust_region=2.0, normalise_td=True),
}
PONG_ARMS = ("n_step", "watkins")
CONFIG: dict[str, Any] = dict(
    torso="mlp",
    hidden_sizes=(64,),
    lstm_size=0,
    head_size=64,
    frame_stack=1,
    burn_in=0,
    length=STEPS,
    period=STEPS,
    batch_size=32,
    replay_size=5_000,
    min_replay_size=100,
    samples_per_insert=8.0,
    learning_rate=1e-3,
    adam_epsilon=1e-5,
    discount=0.99,
    target_update_period=50,
    variable_update_period=4,
    epsilon_base=0.5,  # of all: there is much to be wrong about
    epsilon_alpha=0.0,
)


class Cliff(dm_env.Environment):
    """A walk along an edge. Of four actions one, another at each step, is the way on: 0.1.

    The first ends the walk, unpaid. The others fall: -1. So it is best to walk to the end, for
    `STEPS` times 0.1; but who explores half of the time falls soon, and had better end it at once.
    """

    def __init__(self) -> None:
        self._at = 0
        self._way = np.random.default_rng(0).integers(1, 4, size=STEPS)

    def reset(self) -> dm_env.TimeStep:
        """Begins a walk."""
        self._at = 0
        return dm_env.restart(self._seen())

    def step(self, action: Any) -> dm_env.TimeStep:
        """Takes a step; the walk after an end begins anew."""
        if action == 0:
            return dm_env.termination(0.0, self._seen())
        if action != self._way[self._at]:
            return dm_env.termination(-1.0, self._seen())
        self._at += 1
        if self._at == STEPS:
            self._at = 0
            return dm_env.termination(WAY, self._seen())
        return dm_env.transition(WAY, self._seen())

    def observation_spec(self) -> specs.Array:
        """Where one is, as one-hot."""
        return specs.Array((STEPS,), np.float32)

    def action_spec(self) -> specs.DiscreteArray:
        """Four."""
        return specs.DiscreteArray(4)

    def _seen(self) -> np.ndarray:
        return np.eye(STEPS, dtype=np.float32)[self._at]


cliff = Cliff  # the task of `small`, by its name


class Result(NamedTuple):
    """The outcome of a training of `small`."""

    steps: int  # of the environments
    final_return: float  # mean of the episodes played after training, without exploring
    mean_q: float  # of the last batch, within h


RUNS = {
    SMALL: [Run(SMALL_TASK, arm, seed) for seed in SEEDS for arm in ARMS],
    PONG: [Run(PONG_TASK, arm, seed) for seed in SEEDS for arm in PONG_ARMS],
}


MEASURES = {SMALL: "final_return", PONG: "evaluated"}  # the return, by its name in the results


def data(name: str) -> pathlib.Path:
    """The file of a study's trainings."""
    return DOCS / "data" / f"returns_{name}.csv"


def train_small(run: Run) -> Result:
    """Trains and evaluates in this process."""
    made = make(Config(**CONFIG | ARMS[run.arm]))
    environments = suites.make(run.task, NUM_ENVIRONMENTS, seed=run.seed)
    spec = make_environment_spec(run.task)
    agent = SingleProcessAgent(made, spec, num_environments=NUM_ENVIRONMENTS, seed=run.seed)
    while agent.learner.learner_steps < UPDATES:
        agent.learn(environments, 1)
    final = training.final_return(made, agent.learner_update.network, run.task, run.seed)
    return Result(agent.actor_steps, final, agent.metrics()["mean_q"])


def train_pong(runs: pathlib.Path, run: Run) -> Evaluation:
    """Trains on the whole machine, and evaluates."""
    path = runs / f"pong_{run.arm}_{run.seed}"
    fields = [f"--r2d2.{name}={value}" for name, value in ARMS[run.arm].items()]
    flags = ["--agent=r2d2", f"--env={run.task}", f"--seed={run.seed}", *fields]
    study.train(path, [*flags, "--evaluation_episodes=0"], MINUTES)
    return study.evaluate(path, EPISODES)


def table(results: Mapping[Run, Any], measure: str) -> str:
    """In Markdown: means over seeds with their intervals, of the arms whose seeds are all there."""
    arms = dict.fromkeys(run.arm for run in results)
    whole = [arm for arm in arms if sum(run.arm == arm for run in results) == len(SEEDS)]
    rows = [[f"`{arm}`", str(study.over_seeds(results, measure, arm=arm))] for arm in whole]
    return study.markdown(["returns", "return"], rows)


def main() -> None:
    """Trains what is missing, then prints it."""
    parser = study.parser(__doc__)
    parser.add_argument("study", choices=RUNS)
    parser.add_argument("--runs", type=pathlib.Path, help="folder of the runs of pong")
    asked = parser.parse_args()
    found: Mapping[Run, Any]
    if asked.study == SMALL:
        found = study.complete(data(SMALL), RUNS[SMALL], train_small, Result)
    elif asked.runs is None:
        parser.error("pong takes a folder of runs, such as --runs=runs/returns.")
    else:
        train = functools.partial(train_pong, asked.runs)
        found = study.complete(data(PONG), RUNS[PONG], train, Evaluation)
    print(table(found, MEASURES[asked.study]))


if __name__ == "__main__":
    main()
