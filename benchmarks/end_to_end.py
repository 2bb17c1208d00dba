"""A whole run: python -m benchmarks.end_to_end --agent=impala [--peer=sample_factory]

Starts `launch.train` on Pong and watches it for a minute from its first update on. `parts` is what
environments, inference and learner make of the same steps when each has the machine to itself, one
after the other: the other two commands measure them first.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from absl import app, flags

from benchmarks import command_line, peer, timing
from benchmarks.report import Report, single
from benchmarks.run import Moment, Run
from benchmarks.subject import GAME, Subject

flags.FLAGS.set_default("preset", "local")
_SECONDS = flags.DEFINE_float("seconds", 60.0, "To watch, from the first update on.")
_NUM_ACTORS = flags.DEFINE_integer("num_actors", 32, "Environments.")
_ACTORS_PER_NODE = flags.DEFINE_integer("actors_per_node", 32, "Environments in one process.")
_PEER = flags.DEFINE_enum("peer", None, ["sample_factory"], "What runs on Pong afterwards.")


def main(_: Sequence[str]) -> None:
    measured = command_line.agent()
    settings = {
        "num_actors": _NUM_ACTORS.value,
        "actors_per_node": _ACTORS_PER_NODE.value,
        "seconds": _SECONDS.value,
        "peer": _PEER.value,
    }
    report = Report("end_to_end", measured.settings | settings)
    parts = _measure_parts(measured, report)
    with tempfile.TemporaryDirectory() as folder:
        steps, frames = _measure_run(pathlib.Path(folder) / "run", measured, report)
        together = 1 / (
            1 / parts["environments"] + 1 / parts["inference"] + frames / steps / parts["learner"]
        )
        report.add("parts", single(together, "steps/s"))
        report.add("share_of_the_parts", single(100 * steps / together, "%"))
        if _PEER.value:
            theirs = _measure_peer(folder, report)
            report.add("run_to_peer", single(steps / theirs, "x"))
    report.print()


def _measure_parts(measured: Subject, report: Report) -> dict[str, float]:
    """Rates of what a run is made of: two of steps, the learner's of frames."""
    count = min(_ACTORS_PER_NODE.value, _NUM_ACTORS.value)
    acting = _benchmark("actor", measured, f"--num_environments={count}")
    learning = _benchmark("learner", measured)
    parts = {
        "environments": acting[f"environments, {count}"],
        "inference": acting[f"inference, {count}"],
        "learner": learning["learner"],
    }
    for name, found in parts.items():
        report.add(f"{name}_alone", found)
    return {name: found["value"] for name, found in parts.items()}


def _benchmark(name: str, measured: Subject, *arguments: str) -> dict[str, dict[str, Any]]:
    """The figures of another command, for the same agent."""
    settings = [*_agent_flags(measured), *timing.arguments(), *arguments]
    command = [sys.executable, "-m", f"benchmarks.{name}", *settings]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, dict[str, Any]] = json.loads(output.stdout.splitlines()[-1])["figures"]
    return figures


def _agent_flags(measured: Subject) -> list[str]:
    """What this command was told of the agent, to be told to another."""
    named = [f"--{name}={measured.settings[name]}" for name in ("agent", "preset")]
    fields = command_line.overrides()
    return named + [
        f"--{agent}.{field}={text}" for agent in fields for field, text in fields[agent].items()
    ]


def _measure_run(folder: pathlib.Path, measured: Subject, report: Report) -> tuple[float, float]:
    """Steps and learner frames per second of a run."""
    arguments = [
        *_agent_flags(measured),
        f"--env={GAME}",
        f"--num_actors={_NUM_ACTORS.value}",
        f"--actors_per_node={_ACTORS_PER_NODE.value}",
    ]
    with Run(folder, arguments) as run:
        report.add("first_acting_step", single(run.wait_for("actor_steps", 1), "s"))
        report.add("first_learner_step", single(run.wait_for("learner_steps", 1), "s"))
        before = run.moment()
        run.wait_for("walltime", before.counts["walltime"] + _SECONDS.value)
        after = run.moment()
    return _report_run(before, after, measured, report)


def _report_run(
    before: Moment, after: Moment, measured: Subject, report: Report
) -> tuple[float, float]:
    done = {name: after.counts[name] - count for name, count in before.counts.items()}
    seconds, layout = done["walltime"], measured.agent.tables[0].layout
    rows = measured.agent.batch_size * (layout.burn_in + layout.length)
    steps, frames = done["actor_steps"] / seconds, done["learner_steps"] * rows / seconds
    report.add("steps", single(steps, "steps/s"))
    report.add("learner_frames", single(frames, "frames/s"))
    replays = done["trained_steps"] / done["actor_steps"]
    report.add("replays_per_observation", single(replays, "replays"))
    for name, cpu in after.cpu_seconds.items():
        used = cpu - before.cpu_seconds.get(name, 0.0)
        report.add(f"cpu, {name}", single(used, "s"))
    return steps, frames


def _measure_peer(folder: str, report: Report) -> float:
    settings = json.dumps({"seconds": _SECONDS.value, "run_dir": f"{folder}/peer"})
    command = [peer.PYTHON.value, "-m", f"benchmarks.peers.{_PEER.value}", settings]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(output.stdout.splitlines()[-1])
    report.add_versions(result["versions"])
    steps = float(result["steps_per_second"])
    report.add("peer_steps", single(steps, "steps/s"))
    return steps


if __name__ == "__main__":
    app.run(main, flags_parser=command_line.parse_flags)
