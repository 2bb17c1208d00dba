"""Measures how soon a run acts and ends: python -m benchmarks.startup --agent=impala --env=catch

Starts `launch.train` and waits until every actor has acted, then interrupts it; starts it again,
kills its learner, which ends a run with `--restarts=0`, and says how long each end takes.
"""

import pathlib
import tempfile

from absl import flags

from benchmarks import measuring
from benchmarks.measuring import Report, figure
from benchmarks.run import Run
from benchmarks.subject import Subject

_ENV = flags.DEFINE_string("env", "catch", "What is played.")
_NUM_ACTORS = flags.DEFINE_integer("num_actors", 8, "Environments.")
_ACTORS_PER_NODE = flags.DEFINE_integer("actors_per_node", 4, "Environments in one process.")
_RUNS = flags.DEFINE_integer(
    "runs", 3, "How often, each followed by the tree before.", lower_bound=1
)
_BEFORE = flags.DEFINE_string("before", None, "Another work tree of this project, by turns.")


def main(measured: Subject, report: Report) -> None:
    arguments = measuring.given(measured, _ENV, _NUM_ACTORS, _ACTORS_PER_NODE)
    turns = [_measure(arguments) for _ in range(_RUNS.value)]
    for name in turns[0]:
        unit = "GB" if name == "memory" else "s"
        report.add(name, figure([turn[name] for turn in turns], unit))


def _measure(arguments: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with Run(folder / "interrupted", arguments) as run:
            found["first_acting_step"] = run.wait_for("actor_steps", 1)
            found["all_acting"] = run.wait_until_all_act()
            found["first_learner_step"] = run.wait_for("learner_steps", 1)
            found["memory"] = run.memory() / 1e9
            found["end_when_interrupted"] = run.seconds_to_end()
        with Run(folder / "crashed", [*arguments, "--restarts=0"]) as run:
            run.wait_for("learner_steps", 1)
            found["end_after_a_crash"] = run.seconds_to_end("learner")
        if _BEFORE.value:
            tree = str(pathlib.Path(_BEFORE.value).resolve())
            with Run(folder / "before", arguments, tree) as run:
                found["first_acting_step_before"] = run.wait_for("actor_steps", 1)
                found["first_learner_step_before"] = run.wait_for("learner_steps", 1)
                found["end_when_interrupted_before"] = run.seconds_to_end()
    return found


if __name__ == "__main__":
    measured = ["env", "num_actors", "actors_per_node", "runs", "before"]
    measuring.run(main, measured, preset="local", by_turns=False)
