"""Runs on one task of continuous control after another, then a table of their returns.

    python -m benchmarks.control --agent=impala --tasks=benchmarking --out=runs/control \\
        --max_actor_steps=1000000

Other flags go to `launch.train` as they are. Tasks are names with commas, `cartpole/swingup` or
`control-pixels:cartpole/swingup`, or `benchmarking`, `benchmarking-pixels`, `rwrl`. A folder that
holds a run goes on with it, so that the same command ends what was cut short.
"""

import pathlib
import re
import subprocess
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks import study
from environments import suites
from environments.control import tasks as control_tasks

_LISTS = {
    "benchmarking": [f"control:{task}" for task in control_tasks.BENCHMARKING],
    "benchmarking-pixels": [f"control-pixels:{task}" for task in control_tasks.BENCHMARKING],
    "rwrl": [f"rwrl:{task}" for task in control_tasks.RWRL],
}
EPISODES = 30


def names(text: str) -> list[str]:
    """The environments that a list names.

    Raises:
      ValueError: one of them cannot be played here.
    """
    found = []
    for part in text.split(","):
        found += _LISTS.get(part, [part if ":" in part else f"control:{part}"])
    for name in found:
        suites.check(name)
    return found


def commands(name: str, agent: str, run_dir: pathlib.Path, how: Sequence[str]) -> list[list[str]]:
    """The commands of one task: a training, begun or gone on with, and an evaluation."""
    evaluate = ["launch.evaluate", f"--run_dir={run_dir}", f"--episodes={EPISODES}"]
    if not (run_dir / "config.json").exists():
        train = ["launch.train", f"--agent={agent}", f"--env={name}", f"--run_dir={run_dir}", *how]
        return [train, evaluate]
    if study.has_ended(run_dir):
        return [evaluate]
    return [["launch.train", f"--run_dir={run_dir}", "--resume"], evaluate]


def table(out: pathlib.Path, tasks: Iterable[str]) -> str:
    """In Markdown: a task a row, from its newest evaluation, and their mean."""
    rows, means = [], []
    for name in tasks:
        if found := study.newest_evaluation(folder_of(out, name)):
            means.append(found.evaluated)
            numbers = (f"{found.evaluated:.1f}", f"{found.standard_error:.1f}")
            rows.append([name, f"{found.actor_steps:,}", *numbers])
    if means:
        rows.append([f"mean of {len(means)}", "", f"{np.mean(means):.1f}", ""])
    return study.markdown(["task", "actor steps", "mean return", "its standard error"], rows)


def folder_of(out: pathlib.Path, name: str) -> pathlib.Path:
    """The run folder of a task."""
    return out / re.sub(r"\W+", "_", name)


def main() -> None:
    """Runs all tasks, then prints the table."""
    parser = study.parser(__doc__)
    for required in ("--agent", "--tasks", "--out"):
        parser.add_argument(required, required=True)
    asked, how = parser.parse_known_args()
    try:
        tasks = names(asked.tasks)
    except ValueError as error:
        parser.error(str(error))
    out = pathlib.Path(asked.out)
    for name in tasks:
        for command in commands(name, asked.agent, folder_of(out, name), how):
            try:
                study.run(command, None)
            except subprocess.CalledProcessError as error:
                raise SystemExit(error.returncode) from None
    print(table(out, tasks))


if __name__ == "__main__":
    main()
