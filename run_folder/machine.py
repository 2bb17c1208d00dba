"""What a launch, or a measurement, ran on."""

import os
import pathlib
import platform
import subprocess

_ROOT = pathlib.Path(__file__).parents[1]
_CPUS, _GPUS = pathlib.Path("/proc/cpuinfo"), pathlib.Path("/proc/driver/nvidia/gpus")
_GIT_SECONDS = 10


def processor() -> str:
    """The name of the processor."""
    return _named(_CPUS, "model name") or platform.machine()


def processors() -> str:
    """The processor with the cores that this process may use, and what is beside it."""
    cores = len(os.sched_getaffinity(0))
    found = [f"{processor()}, {cores} core{'s' * (cores > 1)}"]
    return ", ".join([*found, *filter(None, (_gpu(path) for path in sorted(_GPUS.glob("*"))))])


def commit() -> str:
    """Of the work tree that runs, `-dirty` where files differ from it; empty of an installation."""
    if not (_ROOT / ".git").exists():
        return ""
    told = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    git = ("git", "-C", str(_ROOT), *told)
    try:
        said = subprocess.run(git, capture_output=True, text=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):  # there is no git, or a slow disk
        return ""
    return said.stdout.strip()


def _gpu(folder: pathlib.Path) -> str:
    return _named(folder / "information", "Model")


def _named(path: pathlib.Path, name: str) -> str:
    """What a file of lines `name: value` says first of a name; empty where it does not."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(found, "")
