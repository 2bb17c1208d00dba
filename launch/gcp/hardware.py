"""What a host is made of: `n1-standard-8+T4`, checked before anything is sent.

Launchpad's job says how many processors and how much memory a host needs, and xmanager looks for a
machine. Only for a machine of this table is what it finds the one that was named.
"""

import re
from typing import NamedTuple

from run_folder.settings import SettingsError


class Machine(NamedTuple):
    """A type of machine that Vertex AI trains on.

    Attributes:
      vcpus: virtual processors.
      gib: memory.
      accelerator: that is built in.
      number: of those.
    """

    vcpus: int
    gib: int
    accelerator: str = ""
    number: int = 0


MACHINES = {
    **{f"n1-standard-{n}": Machine(n, 15 * n // 4) for n in (4, 8, 16, 32, 64, 96)},
    **{f"n1-highmem-{n}": Machine(n, 13 * n // 2) for n in (2, 4, 8, 16, 32, 64, 96)},
    **{f"n1-highcpu-{n}": Machine(n, 9 * n // 10) for n in (16, 32, 64, 96)},
    **{f"a2-highgpu-{n}g": Machine(12 * n, 85 * n, "A100", n) for n in (1, 2, 4, 8)},
    "a2-megagpu-16g": Machine(96, 1360, "A100", 16),
    **{f"g2-standard-{n}": Machine(n, 4 * n, "L4", 1) for n in (4, 8, 12, 16, 32)},
    **{f"g2-standard-{24 * n}": Machine(24 * n, 96 * n, "L4", 2 * n) for n in (1, 2, 4)},
}
# How many accelerators an N1 machine may have, and with how many of its processors at most.
_ON_N1 = {"T4": {1: 16, 2: 32, 4: 96}, "V100": {1: 8, 2: 16, 4: 32, 8: 96}}
_XMANAGER = {"T4": "T4", "V100": "V100", "A100": "A100", "L4": "L4_24TH"}  # its names for them
_MISTAKEN = ("A100_80GB", "H100", "H200", "B200")  # xmanager 0.8.5 rents N1 machines for these
_FORM = re.compile(r"([a-z0-9-]+)(?:\+([A-Z0-9_]+)(?:x([0-9]+))?)?")
_EXAMPLES = "such as n1-highmem-8, n1-standard-8+T4, n1-standard-16+V100x2 or g2-standard-8"


class Hardware(NamedTuple):
    """A host: a type of machine with so many accelerators."""

    machine: str
    accelerator: str = ""
    number: int = 0

    @property
    def vcpus(self) -> int:
        """Virtual processors."""
        return MACHINES[self.machine].vcpus

    def requirements(self) -> dict[str, float]:
        """Arguments of `xmanager.xm.JobRequirements` for which xmanager finds this machine."""
        machine = MACHINES[self.machine]
        found: dict[str, float] = {"cpu": machine.vcpus, "ram": machine.gib * 2**30}
        if self.accelerator:
            found[_XMANAGER[self.accelerator]] = self.number
        return found

    def __str__(self) -> str:
        times = f"x{self.number}" if self.number > 1 else ""
        return self.machine + (f"+{self.accelerator}{times}" if self.accelerator else "")


def parse(flag: str, text: str) -> Hardware:
    """Reads a flag such as `--gcp_learner=n1-standard-8+T4`.

    Raises:
      SettingsError: no such machine, or it cannot carry such accelerators.
    """
    match = _FORM.fullmatch(text)
    name, accelerator, times = match.groups() if match else ("", None, None)
    if name not in MACHINES:
        raise SettingsError(f"--{flag}={text} is no machine of Vertex AI's: take one {_EXAMPLES}.")
    machine = MACHINES[name]
    if accelerator in _MISTAKEN:
        raise SettingsError(
            f"--{flag}={text} cannot be had: xmanager 0.8.5 would rent an N1 machine for "
            f"{accelerator}, which carries none. Take A100, L4, T4 or V100."
        )
    if accelerator is None:
        return Hardware(name, machine.accelerator, machine.number)
    count = int(times or 1)
    if machine.accelerator:
        if (accelerator, count) != (machine.accelerator, machine.number):
            built_in = Hardware(name, machine.accelerator, machine.number)
            raise SettingsError(f"--{flag}={text} cannot be had: {name} is always {built_in}.")
    else:
        _check_n1(flag, text, name, accelerator, count)
    return Hardware(name, accelerator, count)


def _check_n1(flag: str, text: str, name: str, accelerator: str, count: int) -> None:
    """Checks that an N1 machine may have so many accelerators."""
    if accelerator not in _ON_N1:
        raise SettingsError(
            f"--{flag}={text} cannot be had: N1 machines carry {' or '.join(_ON_N1)}; "
            "A100 comes with a2-highgpu-1g, L4 with g2-standard-8."
        )
    fitting = [n for n, most in _ON_N1[accelerator].items() if MACHINES[name].vcpus <= most]
    if count not in fitting:
        raise SettingsError(
            f"--{flag}={text} cannot be had: {name} carries {', '.join(map(str, fitting))} of "
            f"{accelerator}, got {count}."
        )
