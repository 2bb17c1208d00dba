"""The frame of every benchmark: its flags, measurements by turns, and a report in JSON."""

import datetime
import functools
import importlib.metadata
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import psutil
import tensorflow as tf
from absl import flags

from benchmarks import subject
from benchmarks.subject import Subject
from launch import command_line
from run_folder import catalogue
from run_folder.launches import processor

ROUNDS, TURN_SECONDS = 6, 3.0  # where no flag says
_DEFAULT_AGENT = "r2d2"
_PACKAGES = (
    *("tensorflow-cpu", "tensorflow", "dm-sonnet", "dm-reverb", "dm-acme"),
    *("dm-launchpad-nightly", "gymnasium", "ale-py", "numpy"),
)

fail = command_line.fail
Figure = dict[str, Any]


class _CountsParser(flags.ArgumentParser):
    syntactic_help = "whole numbers of at least 1 with commas between them"

    def parse(self, argument: str | Sequence[int]) -> tuple[int, ...]:
        """The numbers in a text; a default holds numbers already."""
        parts = argument.split(",") if isinstance(argument, str) else argument
        numbers = tuple(int(part) for part in parts)
        if min(numbers) < 1:
            raise ValueError(f"Expected {self.syntactic_help}.")
        return numbers

    def flag_type(self) -> str:
        """The name of the type in --help."""
        return "counts"


def define_counts(
    name: str, default: Sequence[int], text: str
) -> flags.FlagHolder[tuple[int, ...]]:
    """A flag that holds several numbers: --num_environments=1,16,64,256."""
    holder: flags.FlagHolder[tuple[int, ...]] = flags.DEFINE(
        _CountsParser(), name, tuple(default), text
    )
    return holder


def define_device() -> flags.FlagHolder[str | None]:
    """Defines `--device`."""
    return flags.DEFINE_enum(
        "device", None, ["cpu", "gpu"], "What computes: a GPU, if unset, where there is one."
    )


def use_device(wanted: str | None) -> None:
    """Hides GPUs from this process and those that it starts, or fails where there is none."""
    if wanted == "gpu" and not tf.config.list_physical_devices("GPU"):
        fail(
            "--device=gpu needs a GPU that TensorFlow sees, and it sees none here: "
            "docs/installing.md says what to install."
        )
    if wanted == "cpu":
        tf.config.set_visible_devices([], "GPU")
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


def run(
    main: Callable[[Subject, "Report"], None],
    measured: Sequence[str],
    rival: Sequence[str] | None = None,
    *,
    preset: str = "paper",
    by_turns: bool = True,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Runs a benchmark. Its module has its name.

    Args:
      main: measures an agent and adds to a report, which is then printed.
      measured: flags, such as `env`, that say what is measured beside the agent's own flags.
      rival: flags that choose a rival; None where the benchmark runs none.
      preset: the default of `--preset`.
      by_turns: whether it calls `alternate`, and so takes the flags of turns.
      before: is called before TensorFlow takes the devices that it finds.
    """
    # Defined here, for those commands alone that take them.
    flags.DEFINE_enum("preset", preset, catalogue.PRESETS, "Where the Config is from.")
    title = "What is measured"
    sections = {title: ["agent", "preset", command_line.HYPERPARAMETER, *measured]}
    if by_turns:
        flags.DEFINE_integer("rounds", ROUNDS, "Rounds, in each of which everything has its turn.")
        flags.DEFINE_float("turn_seconds", TURN_SECONDS, "How long a turn is, at least one step.")
        sections["How long, by turns"] = ["rounds", "turn_seconds"]
    if rival is not None:
        sections["Beside a rival"] = [*rival, "peer_python"]
    (file,) = sys.argv[:1]

    @functools.wraps(main)
    def begin(_: Sequence[str]) -> None:
        before()
        values = {name: flags.FLAGS[name].value for name in (*measured, *(rival or ()))}
        agent = _agent(str(values.get("env", subject.GAME)))
        report = Report(os.path.basename(file).removesuffix(".py"), agent.settings | values)
        main(agent, report)
        report.print()

    command_line.run(begin, sections)


def overrides() -> dict[str, dict[str, str]]:
    """`--<agent>.<field>=<text>` as agent -> {field -> text}."""
    return command_line.config_overrides(sys.argv)


def _agent(env: str) -> Subject:
    try:
        named = command_line.AGENT.value or _DEFAULT_AGENT
        return subject.make(named, str(flags.FLAGS["preset"].value), overrides(), env)
    except ValueError as error:
        fail(str(error))


def of_rival(measured: Subject, peer: str) -> dict[str, Any]:
    """What the rival of that name is told; fails for another core than the LSTM that it has."""
    if measured.core != "lstm":
        fail(f"--peer={peer} has an LSTM, got a core of {measured.core}.")
    return {
        "config": measured.settings["config"],
        "num_actions": measured.spec.actions.num_values,
        "image": measured.image,
        "acme_unpadded": peer == "acme_unpadded",
    }


def given(measured: Subject, *more: flags.FlagHolder) -> list[str]:
    """This command's flags about the agent, and some more, for another command."""
    named = [f"--{name}={measured.settings[name]}" for name in ("agent", "preset")]
    typed = overrides()
    named += [f"--{name}.{field}={text}" for name in typed for field, text in typed[name].items()]
    return named + [f"--{flag.name}={flag.value}" for flag in more]


def turns() -> list[str]:
    """This command's flags about turns, for another command."""
    defaults = dict(rounds=ROUNDS, turn_seconds=TURN_SECONDS)
    return [f"--{name}={_value(name, default)}" for name, default in defaults.items()]


def _value(name: str, default: float) -> Any:
    return flags.FLAGS[name].value if name in flags.FLAGS else default


class Contestant(NamedTuple):
    """Something to measure."""

    run: Callable[[int], float]  # makes so many steps and returns the seconds they took
    work: float  # of one step, in whatever unit the rates are to have


def timed(step: Callable[[], object]) -> Callable[[int], float]:
    """The `run` of a function that makes one step and returns when that is done."""

    def run(steps: int) -> float:
        started = time.perf_counter()
        for _ in range(steps):
            step()
        return time.perf_counter() - started

    return run


def alternate(contestants: Mapping[str, Contestant]) -> dict[str, list[float]]:
    """Measures all of them by turns: each has its work per second, a number for each round.

    So other work on the machine slows them all alike. Each first makes steps that do not count:
    they fill caches, use up batches that were ready, and show how many steps fit into a turn.
    """
    steps = {name: _steps_per_turn(contestant) for name, contestant in contestants.items()}
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(_value("rounds", ROUNDS)):
        for name, contestant in contestants.items():
            seconds = contestant.run(steps[name])
            rates[name].append(steps[name] * contestant.work / seconds)
    return rates


def _steps_per_turn(contestant: Contestant) -> int:
    turn = _value("turn_seconds", TURN_SECONDS)
    contestant.run(1)
    steps, seconds = 1, contestant.run(1)
    while seconds < turn / 4:  # a few steps may have been waiting, ready
        steps *= 2
        seconds = contestant.run(steps)
    return max(1, round(steps * turn / seconds))


def ratios(numerators: list[float], denominators: list[float], scale: float = 1.0) -> list[float]:
    """Ratios round by round: both met the same machine."""
    return [scale * a / b for a, b in zip(numerators, denominators, strict=True)]


def figure(samples: Sequence[float], unit: str) -> Figure:
    """Repeated measurements as their median and range."""
    return {
        "value": _rounded(statistics.median(samples)),
        "unit": unit,
        "low": _rounded(min(samples)),
        "high": _rounded(max(samples)),
        "samples": len(samples),
    }


def single(value: float, unit: str) -> Figure:
    """A value that was measured or counted once."""
    return {"value": _rounded(value), "unit": unit}


def _rounded(value: float) -> float:
    """Four digits say all that a measurement can."""
    return float(f"{value:.4g}")


class Report:
    """Collects a command's figures, with all that they depend on, and prints them."""

    def __init__(self, benchmark: str, settings: Mapping[str, Any]) -> None:
        # As it was given, but for where this machine has a rival's interpreter.
        typed = [text for text in sys.argv[1:] if not text.startswith("--peer_python")]
        self.settings = dict(settings)
        self._contents: dict[str, Any] = {
            "benchmark": benchmark,
            "command": shlex.join(["python", "-m", f"benchmarks.{benchmark}", *typed]),
            "settings": self.settings,
            "figures": {},
            "versions": _versions(),
            "machine": _machine(),  # its load as it was before the measurement
        }

    def add(self, name: str, measured: Figure) -> None:
        """Takes a figure, and shows it to whoever is waiting."""
        self._contents["figures"][name] = measured
        spread = f"  ({measured['low']} to {measured['high']})" if "low" in measured else ""
        print(f"{name}: {measured['value']} {measured['unit']}{spread}", flush=True)

    def add_versions(self, found: Mapping[str, str]) -> None:
        """Takes the versions of a rival's libraries."""
        self._contents["versions"] |= {f"peer {name}": text for name, text in found.items()}

    def print(self) -> None:
        """Prints the line."""
        print(json.dumps(self._contents), flush=True)


def _versions() -> dict[str, str]:
    """The versions of Python and of every library that a figure depends on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue  # of TensorFlow's two distributions one is installed
    return found


def _machine() -> dict[str, Any]:
    """The machine that the figures are measured on, and its load in the minute before."""
    devices = tf.config.get_visible_devices("GPU")
    details = map(tf.config.experimental.get_device_details, devices)
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "accelerators": [found.get("device_name", "GPU") for found in details],
        "system": platform.platform(),
        "load": round(os.getloadavg()[0], 2),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
