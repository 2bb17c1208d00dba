"""What every benchmark prints: one line of JSON with its figures and what they depend on."""

import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import psutil
import tensorflow as tf

from run_folder.launches import processor

_PACKAGES = (
    "tensorflow-cpu",
    "tensorflow",
    "dm-sonnet",
    "dm-reverb",
    "dm-acme",
    "dm-launchpad-nightly",
    "gymnasium",
    "ale-py",
    "numpy",
)

Figure = dict[str, Any]


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
    """Something that was measured or counted once."""
    return {"value": _rounded(value), "unit": unit}


class Report:
    """Collects figures and prints them.

    Args:
      benchmark: name of the command.
      settings: all that the figures depend on.
    """

    def __init__(self, benchmark: str, settings: Mapping[str, Any]) -> None:
        self._contents: dict[str, Any] = {
            "benchmark": benchmark,
            "command": _command(benchmark),
            "settings": dict(settings),
            "figures": {},
            "versions": versions(),
            "machine": machine(),  # its load as it was before the measurement
        }

    def add(self, name: str, measured: Figure) -> None:
        """Takes a figure, and shows it to whoever is waiting."""
        self._contents["figures"][name] = measured
        spread = f"  ({measured['low']} to {measured['high']})" if "low" in measured else ""
        print(f"{name}: {measured['value']} {measured['unit']}{spread}", flush=True)

    def add_versions(self, found: Mapping[str, str]) -> None:
        """Takes the versions of a peer's libraries."""
        self._contents["versions"] |= {f"peer {name}": text for name, text in found.items()}

    def print(self) -> None:
        """Prints the line."""
        print(json.dumps(self._contents), flush=True)


def versions() -> dict[str, str]:
    """Of Python and of every library that a figure depends on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue  # of TensorFlow's two distributions one is installed
    return found


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how busy it was in the minute before."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "accelerators": _accelerators(),
        "system": platform.platform(),
        "load": round(os.getloadavg()[0], 2),
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def _command(benchmark: str) -> str:
    """As it was given, but for where this machine has a peer's interpreter."""
    given = [text for text in sys.argv[1:] if not text.startswith("--peer_python")]
    return shlex.join(["python", "-m", f"benchmarks.{benchmark}", *given])


def _accelerators() -> list[str]:
    devices = tf.config.get_visible_devices("GPU")
    details = map(tf.config.experimental.get_device_details, devices)
    return [found.get("device_name", "GPU") for found in details]


def _rounded(value: float) -> float:
    """Four digits say all that a measurement can."""
    return float(f"{value:.4g}")
