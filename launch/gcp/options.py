"""What a launch on Google Cloud asks for, checked before anything is sent.

A host is written `n1-standard-8+T4`. Launchpad's job says how many processors and how much memory
it needs, and xmanager looks for a machine. Only for a machine of the table below is what it finds
the one that was named.
"""

import dataclasses
import re
from typing import NamedTuple

from launch import gcp_flags
from run_folder.settings import SettingsError

_REGION_FORM = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_REPOSITORY_FORM = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/([a-z][a-z0-9-]+)/[a-z][a-z0-9-]*")
_BUCKET_FORM = re.compile(r"gs://([a-z0-9][a-z0-9._-]+)/\S+")


class Machine(NamedTuple):
    """A type of machine that Vertex AI trains on."""

    vcpus: int  # virtual processors
    gib: int  # memory
    accelerator: str = ""  # that is built in
    number: int = 0  # of those


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


def parse_hardware(flag: str, text: str) -> Hardware:
    """Reads a flag such as `--gcp_learner=n1-standard-8+T4`.

    Other accelerators than A100, L4, T4 and V100 cannot be had: xmanager 0.8.5 rents N1 machines
    for them, which carry none.

    Raises:
      SettingsError: no such machine, or it cannot carry such accelerators.
    """
    match = _FORM.fullmatch(text)
    name, accelerator, times = match.groups() if match else ("", None, None)
    if name not in MACHINES:
        raise SettingsError(f"--{flag}={text} is no machine of Vertex AI's: take one {_EXAMPLES}.")
    machine = MACHINES[name]
    built_in = Hardware(name, machine.accelerator, machine.number)
    if accelerator is None:
        return built_in
    wanted = Hardware(name, accelerator, int(times or 1))
    possible = [built_in] if machine.accelerator else _on_n1(name)
    if wanted not in possible:
        raise SettingsError(
            f"--{flag}={text} cannot be had: take {', '.join(map(str, possible))}; A100 comes with "
            "a2-highgpu-1g, L4 with g2-standard-8."
        )
    return wanted


def _on_n1(name: str) -> list[Hardware]:
    """An N1 machine with each number of accelerators that it may have."""
    return [
        Hardware(name, accelerator, number)
        for accelerator, numbers in _ON_N1.items()
        for number, most in numbers.items()
        if MACHINES[name].vcpus <= most
    ]


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a job."""

    region: str  # where hosts are rented
    repository: str  # of images, in Artifact Registry
    project: str  # that pays
    bucket: str  # that the run folder is in
    hosts: dict[str, Hardware]  # what each kind of host is
    dry_run: bool  # whether the job is only printed


def check(run_dir: str | None) -> Options:
    """Checks the command line's options, without a word to Google.

    Args:
      run_dir: the run folder; None where none was named.

    Raises:
      SettingsError: it cannot be had.
    """
    hosts = {
        kind: parse_hardware(f"gcp_{kind}", flag.value) for kind, flag in gcp_flags.HARDWARE.items()
    }
    region, repository = gcp_flags.REGION.value or "", gcp_flags.REPOSITORY.value or ""
    if not _REGION_FORM.fullmatch(region):
        raise SettingsError(
            f"--gcp_region must be a region such as us-central1 or europe-west4, got {region!r}."
        )
    in_registry = _REPOSITORY_FORM.fullmatch(repository)
    if not in_registry:
        raise SettingsError(
            f"--gcp_repository must be {region}-docker.pkg.dev/<project>/<name>, which "
            f"`gcloud artifacts repositories create <name> --repository-format=docker "
            f"--location={region}` makes, got {repository!r}."
        )
    in_bucket = _BUCKET_FORM.fullmatch(run_dir or "")
    if not in_bucket:
        raise SettingsError(
            f"--run_dir must be gs://<bucket>/<run>, since hosts are gone after a run; `gcloud "
            f"storage buckets create gs://<bucket> --location={region}` makes a bucket, "
            f"got {run_dir!r}."
        )
    return Options(
        region, repository, in_registry.group(1), in_bucket.group(1), hosts, gcp_flags.DRY_RUN.value
    )
