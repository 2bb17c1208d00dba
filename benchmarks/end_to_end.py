"""A whole run: python -m benchmarks.end_to_end --agent=impala [--peer=sample_factory]

Starts `launch.train` on Pong and watches it for a minute from its first update on. `parts` is what
environments, inference and learner make of the same steps when each has the machine to itself, one
after the other: the other two commands measure them first. With another `--env` there are no parts.

`--device=gpu` has the learner on a GPU, and actors by turns on processors and there.
"""

import contextlib
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from absl import flags

from benchmarks import measuring, rival
from benchmarks.measuring import Report, figure
from benchmarks.run import Moment, Run
from benchmarks.subject import GAME, Subject

_SECONDS = flags.DEFINE_float("seconds", 60.0, "To watch, from the first update on.")
_NUM_ACTORS = flags.DEFINE_integer("num_actors", 32, "Environments.")
_ACTORS_PER_NODE = flags.DEFINE_integer("actors_per_node", 32, "Environments in one process.")
_RUNS = flags.DEFINE_integer("runs", 1, "How often, each followed by the rival.", lower_bound=1)
_ENV = flags.DEFINE_string("env", GAME, "What is played.")
_DEVICE = measuring.define_device()
# Rival -> its module, and how the names of the environments that it plays begin.
_RIVALS = {"sample_factory": ("sample_factory", GAME), "sb3_ppo": ("stable_baselines", "control:")}
_PEER = flags.DEFINE_enum("peer", None, list(_RIVALS), "What plays it too, by turns.")

Measured = dict[str, tuple[float, str]]  # values with their units


def _check() -> None:
    measuring.use_device(_DEVICE.value)
    if _PEER.value and not _ENV.value.startswith(plays := _RIVALS[_PEER.value][1]):
        measuring.fail(f"--peer={_PEER.value} plays {plays}, got --env={_ENV.value}.")


def main(measured: Subject, report: Report) -> None:
    parts = _measure_parts(measured, report) if _ENV.value == GAME else {}
    turns = [_measure_devices(measured, parts, report) for _turn in range(_RUNS.value)]
    for name, (_value, unit) in turns[-1].items():
        report.add(name, figure([turn[name][0] for turn in turns if name in turn], unit))


def _measure_devices(measured: Subject, parts: dict[str, float], report: Report) -> Measured:
    """A turn, or one for each device that actors may act on."""
    if _DEVICE.value != "gpu":
        return _measure_turn(measured, parts, report, "cpu")
    turns = {device: _measure_turn(measured, {}, report, device) for device in ("cpu", "gpu")}
    return {
        f"{name}, acting on {device}": value
        for device, turn in turns.items()
        for name, value in turn.items()
    }


def _measure_turn(
    measured: Subject, parts: dict[str, float], report: Report, acting_on: str
) -> Measured:
    """A run of ours against its parts, then the rival's."""
    with tempfile.TemporaryDirectory() as folder:
        run = _measure_run(pathlib.Path(folder) / "run", measured, acting_on)
        if parts:
            _compare_with_parts(run, parts)
        if _PEER.value:
            _measure_rival(folder, measured, run, report)
    return run


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
    settings = [*measuring.given(measured), *measuring.turns(), *arguments]
    command = [sys.executable, "-m", f"benchmarks.{name}", *settings]
    figures: dict[str, dict[str, Any]] = rival.last_line(command)["figures"]
    return figures


def _measure_run(folder: pathlib.Path, measured: Subject, acting_on: str) -> Measured:
    given = measuring.given(measured, _ENV, _NUM_ACTORS, _ACTORS_PER_NODE)
    arguments = [*given, f"--actor_device={acting_on}"]
    with Run(folder, arguments) as run:
        started = {
            "first_acting_step": (run.wait_for("actor_steps", 1), "s"),
            "first_learner_step": (run.wait_for("learner_steps", 1), "s"),
        }
        before = run.moment()
        with _gpu_busy() as busy:
            run.wait_for("walltime", before.counts["walltime"] + _SECONDS.value)
        after = run.moment()
    return started | _between(before, after, measured) | busy


@contextlib.contextmanager
def _gpu_busy() -> Iterator[Measured]:
    """Finds in which share of the time GPUs computed, where there are any."""
    found: Measured = {}
    if not tf.config.get_visible_devices("GPU"):
        yield found
        return
    query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--loop=1"]
    watching = subprocess.Popen(["nvidia-smi", *query], stdout=subprocess.PIPE, text=True)
    try:
        yield found
    finally:  # it would watch for ever
        watching.terminate()
    found["gpu_busy"] = float(np.mean([*map(float, watching.communicate()[0].split())])), "%"


def _between(before: Moment, after: Moment, measured: Subject) -> Measured:
    done = {name: after.counts[name] - count for name, count in before.counts.items()}
    seconds = done["walltime"]
    cpu = {
        f"cpu, {name}": (spent - before.cpu_seconds.get(name, 0.0), "s")
        for name, spent in after.cpu_seconds.items()
    }
    return {
        "steps": (done["actor_steps"] / seconds, "steps/s"),
        "updates": (done["learner_steps"] / seconds, "updates/s"),
        "learner_frames": (done["learner_steps"] * measured.frames / seconds, "frames/s"),
        "replays_per_observation": (done["trained_steps"] / done["actor_steps"], "replays"),
        **cpu,
    }


def _compare_with_parts(run: Measured, parts: dict[str, float]) -> None:
    """Adds the rate at which the parts would do this run's mixture of acting and learning."""
    steps, frames = run["steps"][0], run["learner_frames"][0]
    together = 1 / (
        1 / parts["environments"] + 1 / parts["inference"] + frames / steps / parts["learner"]
    )
    run["parts"] = (together, "steps/s")
    run["share_of_the_parts"] = (100 * steps / together, "%")


def _measure_rival(folder: str, measured: Subject, run: Measured, report: Report) -> None:
    """Adds the rate of the rival in the same time, right after our run."""
    module, _ = _RIVALS[_PEER.value or ""]
    settings = {
        "seconds": _SECONDS.value,
        "run_dir": f"{folder}/peer",
        "num_environments": _NUM_ACTORS.value,
        "env": _ENV.value,
        "hidden_sizes": list(measured.agent.config.hidden_sizes),
    }
    found = rival.result(module, settings)
    report.add_versions(found["versions"])
    theirs = float(found["steps_per_second"])
    run["peer_steps"] = (theirs, "steps/s")
    run["run_to_peer"] = (run["steps"][0] / theirs, "x")


if __name__ == "__main__":
    measuring.run(
        main,
        ["env", "seconds", "num_actors", "actors_per_node", "runs", "device"],
        ["peer"],
        preset="local",
        before=_check,
    )
