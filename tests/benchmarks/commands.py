"""Benchmarks on settings that take seconds, and a rival that only says it ran."""

import json
import pathlib
import sys
from typing import Any

from tests.commands import Commands

FAKE_RIVAL = pathlib.Path(__file__).resolve().parent / "fake_rival.py"
SHORT = ("--rounds=2", "--turn_seconds=0.001")
TINY = {  # an update of milliseconds, for each agent's family
    "r2d2": dict(
        batch_size=2, burn_in=4, length=8, period=8, lstm_size=8, head_size=8, torso="shallow"
    ),
    "impala": dict(batch_size=2, length=4, lstm_size=8, torso="shallow"),
    "stacx": dict(batch_size=2, length=4, lstm_size=8, torso="shallow"),
}


def tiny(agent: str) -> list[str]:
    """Flags for a tiny agent."""
    return [f"--agent={agent}", *(f"--{agent}.{k}={value}" for k, value in TINY[agent].items())]


def report(commands: Commands, name: str, *flags: str) -> dict[str, Any]:
    """The JSON that a benchmark ends with."""
    finished = commands.run(f"benchmarks.{name}", *flags)
    assert finished.code == 0, finished.err
    contents: dict[str, Any] = json.loads(finished.out.splitlines()[-1])
    return contents


def fake_python(folder: pathlib.Path, program: pathlib.Path = FAKE_RIVAL) -> str:
    """An interpreter for `--peer_python` that runs a program whatever module it is given."""
    path = folder / "python"
    script = f'PYTHONPATH=. exec "{sys.executable}" "{program}" "$@"'
    path.write_text(f"#!/bin/sh\nshift 2\n{script}\n")
    path.chmod(0o755)
    return str(path)
