"""What a job needs of a project's quotas, beside what a new project is documented to have."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from launch.gcp.hardware import Hardware

# Of custom training in us-central1; other regions begin with less, as little as 20 N1 processors.
REGION = "us-central1"
_N1, _DISK = "N1 vCPUs", "boot disks, GB"
_DOCUMENTED = {_N1: 2_200, "T4": 12, "A100": 8, "L4": 0, _DISK: 75_000}
BOOT_DISK_GB = 100  # Vertex AI's default for each host


class Need(NamedTuple):
    """One quota."""

    name: str
    needed: int
    documented: int | None  # None where no number is


def needs(hosts: Iterable[tuple[Hardware, int]]) -> list[Need]:
    """What a job takes of each quota that it touches.

    Args:
      hosts: of each pool: what a host is, and how many there are.
    """
    total: Counter[str] = Counter()
    for hardware, replicas in hosts:
        family = hardware.machine.partition("-")[0].upper()
        total[f"{family} vCPUs"] += replicas * hardware.vcpus
        if hardware.accelerator:
            total[hardware.accelerator] += replicas * hardware.number
        total[_DISK] += replicas * BOOT_DISK_GB
    return [Need(name, needed, _DOCUMENTED.get(name)) for name, needed in total.items()]
