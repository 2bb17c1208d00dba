"""How soon a run acts, and ends: python -m benchmarks.startup --agent=impala --env=catch

Starts `launch.train` and waits until every actor has acted, then interrupts it; starts it again,
kills its learner, which `--restarts=0` makes the run's end, and says how long each end takes.
"""

import pathlib
import tempfile
from collections.abc import Sequence

from absl import flags

from benchmarks import command_line
from benchmarks.report import Report, figure
from benchmarks.run import Run

flags.FLAGS.set_default("preset", "local")
_ENV = flags.DEFINE_string("env", "catch", "What is played.")
_NUM_ACTORS = flags.DEFINE_integer("num_actors", 8, "Environments.")
_ACTORS_PER_NODE = flags.DEFINE_integer("actors_per_node", 4, "Environments in one process.")
_RUNS = flags.DEFINE_integer(
    "runs", 3, "How often, each followed by the tree before.", lower_bound=1
)
_BEFORE = flags.DEFINE_string("before", None, "Another work tree of this project, by turns.")

Samples = dict[str, list[float]]


def main(_: Sequence[str]) -> None:
    measured = command_line.agent()
    settings = {
        "env": _ENV.value,
        "num_actors": _NUM_ACTORS.value,
        "actors_per_node": _ACTORS_PER_NODE.value,
        "runs": _RUNS.value,
    }
    report = Report("startup", measured.settings | settings)
    arguments = command_line.given(measured)
    found: Samples = {}
    for _turn in range(_RUNS.value):
        _measure(arguments, found)
        if _BEFORE.value:
            _measure_before(arguments, found)
    for name, samples in found.items():
        report.add(name, figure(samples, "GB" if name == "memory" else "s"))
    report.print()


def _flags(arguments: Sequence[str]) -> list[str]:
    return [
        *arguments,
        f"--env={_ENV.value}",
        f"--num_actors={_NUM_ACTORS.value}",
        f"--actors_per_node={_ACTORS_PER_NODE.value}",
    ]


def _measure(arguments: Sequence[str], found: Samples) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Run(pathlib.Path(folder) / "interrupted", _flags(arguments)) as run:
            _add(found, "first_acting_step", run.wait_for("actor_steps", 1))
            _add(found, "all_acting", run.wait_until_all_act())
            _add(found, "first_learner_step", run.wait_for("learner_steps", 1))
            _add(found, "memory", run.memory() / 1e9)
            _add(found, "end_when_interrupted", run.seconds_to_end())
        crashes = [*_flags(arguments), "--restarts=0"]
        with Run(pathlib.Path(folder) / "crashed", crashes) as run:
            run.wait_for("learner_steps", 1)
            _add(found, "end_after_a_crash", run.seconds_to_end("learner"))


def _measure_before(arguments: Sequence[str], found: Samples) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Run(pathlib.Path(folder) / "before", _flags(arguments), _before()) as run,
    ):
        _add(found, "first_acting_step_before", run.wait_for("actor_steps", 1))
        _add(found, "first_learner_step_before", run.wait_for("learner_steps", 1))
        _add(found, "end_when_interrupted_before", run.seconds_to_end())


def _before() -> str:
    return str(pathlib.Path(_BEFORE.value or "").resolve())


def _add(found: Samples, name: str, value: float) -> None:
    found.setdefault(name, []).append(value)


if __name__ == "__main__":
    command_line.run(
        main,
        ["env", "num_actors", "actors_per_node", "runs", "before"],
        by_turns=False,
    )
