"""What the R2D2 paper found, in small: Kapturowski et al. 2019, Sections 3 and 5.

    python -m studies.reproduction

trains what docs/data/reproduction.csv does not hold yet, with a row for each run that ended, then
draws the plots and writes the tables of docs/reproduction.md. A quick look goes elsewhere:

    python -m studies.reproduction --study feedforward --seeds=1 --steps=900 --out=/tmp/quick
"""

import argparse
import itertools
import pathlib
import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from agents.actor import make_evaluator
from agents.environment_loop import VectorEnvironmentLoop
from agents.single_process import InProcess, pace_of
from environments import suites
from environments.dm import make_environment_spec
from studies import arguments
from studies.performance_results import replace_block
from studies.reproduction_arms import STUDIES, TASKS, make_agent, runs
from studies.reproduction_results import (
    POINTS,
    Result,
    Results,
    Run,
    append,
    cost,
    draw,
    read,
    table,
    verdicts,
)

DOCS = arguments.DOCS
DATA = DOCS / "data/reproduction.csv"
PAGE = DOCS / "reproduction.md"
SEEDS = 5
NUM_ENVIRONMENTS = 32
EVALUATION_EPISODES = 200


def train(run: Run, steps: int) -> Result:
    """Trains for so many environment steps, then evaluates. The seed does not fix all of it."""
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
    evaluator = make_evaluator(
        agent, process.network, num_environments=EVALUATION_EPISODES, seed=run.seed
    )
    environments = suites.make(run.task, EVALUATION_EPISODES, seed=SEEDS + run.seed)
    loop = VectorEnvironmentLoop(environments, evaluator, [run.task] * EVALUATION_EPISODES)
    final = loop.run_episodes()
    process.close()
    return Result(
        taken,
        process.learner.learner_steps,
        time.process_time() - began,
        final_return=float(np.mean([episode.episode_return for episode in final])),
        curve=tuple(float(np.mean(found)) if found else np.nan for found in windows),
    )


def written(text: str, results: Results) -> str:
    """The page with the tables that follow from the data."""
    text = replace_block(text, "cost", cost(results))
    for name, study in STUDIES.items():
        tables = (table(results, study.arms), verdicts(results, study.comparisons))
        text = replace_block(text, name, "\n\n".join(tables))
    return text


def image(folder: pathlib.Path, study: str) -> pathlib.Path:
    """Where a study's plot is."""
    return folder / f"images/reproduction_{study}.png"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The flags; one that cannot be ends the program with a sentence."""
    parser = argparse.ArgumentParser(prog="python -m studies.reproduction")
    parser.add_argument(
        "--study",
        nargs="+",
        choices=STUDIES,
        default=list(STUDIES),
        metavar="STUDY",
        help=f"all by default: {', '.join(STUDIES)}",
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each arm: {SEEDS}")
    parser.add_argument("--steps", type=int, help="environment steps of each run; needs --out")
    parser.add_argument("--out", type=pathlib.Path, help="folder of data and plots, not docs/")
    flags = parser.parse_args(argv)
    for name in ("seeds", "steps"):
        value = getattr(flags, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be at least 1, got {value}.")
    if flags.steps and not flags.out:
        parser.error(f"--steps={flags.steps} makes no runs of the study: give --out=<folder> too.")
    return flags


def main(argv: Sequence[str] | None = None) -> None:
    """Trains what is missing, then draws and writes everything."""
    flags = parse(argv)
    folder = flags.out or DOCS
    data = folder / DATA.relative_to(DOCS)
    for run in runs(flags.study, flags.seeds):
        if run not in read(data):  # another process may have made it meanwhile
            result = train(run, flags.steps or TASKS[run.task].steps)
            append(data, run, result)
            print(*run, *result[:4], flush=True)
    results = read(data)
    for name in flags.study:
        draw(results, STUDIES[name].arms, image(folder, name))
        print(table(results, STUDIES[name].arms))
        print(verdicts(results, STUDIES[name].comparisons))
    if not flags.out:
        PAGE.write_text(written(PAGE.read_text(), results))


if __name__ == "__main__":
    # So small networks gain nothing from a second core, which may have a study of its own.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    main()
