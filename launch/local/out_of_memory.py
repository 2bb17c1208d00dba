"""How often the kernel has ended a process for want of memory, by its own counts."""

import contextlib
import pathlib
import re

_ROOT = pathlib.Path("/")


def kills() -> int:
    """Of this process's control group, containers' own; of the machine where none counts; else 0.

    The machine's count is the last resort: it knows of all that others do on it.
    """
    for file in _counters():
        with contextlib.suppress(OSError):
            if found := re.search(r"^oom_kill (\d+)$", file.read_text(), re.MULTILINE):
                return int(found[1])
    return 0


def _counters() -> list[pathlib.Path]:
    """Files that may count them: of control groups of version 2, then 1, then the machine's."""
    groups, paths = _ROOT / "sys/fs/cgroup", dict[str, str]()
    with contextlib.suppress(OSError):
        for line in (_ROOT / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            paths[controllers] = path.lstrip("/")
    return [
        groups / paths.get("", "") / "memory.events",
        groups / "memory.events",  # a container may be told its group's name on the host
        groups / "memory" / paths.get("memory", "") / "memory.oom_control",
        groups / "memory" / "memory.oom_control",
        _ROOT / "proc/vmstat",
    ]
