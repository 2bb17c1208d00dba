"""How a run came about: launches.jsonl in its folder has a line for its start and each resume.

A line says what was typed, and what it ran on.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import shlex
import socket
import subprocess
from collections.abc import Sequence

import recurrent_replay
from run_folder import disk, texts
from run_folder.layout import RunFolder
from run_folder.texts import reading

_ROOT = pathlib.Path(__file__).parents[1]
_CPUS, _GPUS = pathlib.Path("/proc/cpuinfo"), pathlib.Path("/proc/driver/nvidia/gpus")
_GIT_SECONDS = 10


@dataclasses.dataclass(frozen=True)
class Launch:
    """One call of `launch.train`."""

    time: str  # UTC, as ISO 8601 writes it
    command: str  # what was typed
    actor_steps: int  # of the run until then, as its checkpoint counts them
    walltime: float  # seconds that the run had lasted then
    version: str = ""  # of this project; empty, as the others, of a launch older than the field
    commit: str = ""  # of its work tree, if it ran in one
    host: str = ""  # whose name it is
    processors: str = ""  # of that


def record(
    run_dir: pathlib.Path, arguments: Sequence[str], *, actor_steps: int, walltime: float
) -> None:
    """Adds a launch that begins now: what was typed, and the counts that it goes on from."""
    launch = Launch(
        time=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        command=f"{recurrent_replay.command('train')} {shlex.join(arguments)}",
        actor_steps=actor_steps,
        walltime=walltime,
        version=recurrent_replay.version(),
        commit=commit(),
        host=socket.gethostname(),
        processors=processors(),
    )
    path = RunFolder(run_dir).launches
    before = _whole(path.read_bytes()) if path.exists() else b""
    newline = b"\n" if before and not before.endswith(b"\n") else b""
    line = json.dumps(dataclasses.asdict(launch)) + "\n"
    disk.write(path, before + newline + line.encode())


def _whole(data: bytes) -> bytes:
    """Without half a line at the end, which a crash leaves."""
    head, newline, last = data.rpartition(b"\n")
    try:
        texts.parse_json(last.decode())
    except ValueError:
        return head + newline
    return data


def read(run_dir: pathlib.Path) -> list[Launch]:
    """Every launch of a run, the first one first; none of a run older than the file.

    Half a line at the end, which a crash leaves, is passed over.

    Raises:
      SettingsError: the file is damaged otherwise.
    """
    path = RunFolder(run_dir).launches
    if not path.exists():
        return []
    with reading(path):
        lines = _whole(path.read_bytes()).splitlines()
        return [_launch(number, line) for number, line in enumerate(lines, 1)]


def _launch(number: int, line: bytes) -> Launch:
    try:
        return Launch(**texts.fields_of(Launch, texts.parse_json(line.decode())))
    except ValueError as error:
        raise ValueError(f"of line {number}, {error}") from None


def processor() -> str:
    """The name of the processor."""
    return _named(_CPUS, "model name") or platform.machine()


def processors() -> str:
    """The processor with the cores that this process may use, and what is beside it."""
    cores = len(os.sched_getaffinity(0))
    found = [f"{processor()}, {cores} core{'s' * (cores > 1)}"]
    gpus = (_named(path / "information", "Model") for path in sorted(_GPUS.glob("*")))
    return ", ".join([*found, *filter(None, gpus)])


def commit() -> str:
    """The commit of the work tree, `-dirty` where files differ; empty of an installation."""
    if not (_ROOT / ".git").exists():
        return ""
    told = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    git = ("git", "-C", str(_ROOT), *told)
    try:
        said = subprocess.run(git, capture_output=True, text=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):  # there is no git, or a slow disk
        return ""
    return said.stdout.strip()


def _named(path: pathlib.Path, name: str) -> str:
    """The first value of a name in a file of lines `name: value`; empty where there is none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(found, "")
