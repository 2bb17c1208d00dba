"""The flags of a launch on Google Cloud, checked before anything is sent."""

import dataclasses
import re

from absl import flags

from launch.gcp import hardware
from launch.gcp.hardware import Hardware
from run_folder.settings import SettingsError

LAUNCH_TYPE = "vertex_ai"

_REGION = flags.DEFINE_string("gcp_region", None, "Where hosts are rented, such as us-central1.")
_REPOSITORY = flags.DEFINE_string(
    "gcp_repository", None, "Of images: <region>-docker.pkg.dev/<project>/<name>."
)
_HARDWARE = {
    kind: flags.DEFINE_string(f"gcp_{kind}", default, text)
    for kind, default, text in (
        ("replay", "n1-highmem-8", "A replay shard's host."),
        ("learner", "n1-standard-8+T4", "A learner's host: machine, +accelerator, xnumber."),
        ("actor", "n1-highmem-2", "An actor node's host; the evaluator's and coordinator's too."),
    )
}
_DRY_RUN = flags.DEFINE_boolean("gcp_dry_run", False, "Print the job; send nothing.")
NAMES = ("gcp_region", "gcp_repository", *(f"gcp_{kind}" for kind in _HARDWARE), "gcp_dry_run")

_REGION_FORM = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_REPOSITORY_FORM = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev/([a-z][a-z0-9-]+)/[a-z][a-z0-9-]*")
_BUCKET_FORM = re.compile(r"gs://([a-z0-9][a-z0-9._-]+)/\S+")


@dataclasses.dataclass(frozen=True)
class Options:
    """What a job is launched with.

    Attributes:
      region: where hosts are rented.
      repository: of images, in Artifact Registry.
      project: that pays.
      bucket: that the run folder is in.
      hosts: what each kind of host is.
      dry_run: whether the job is only printed.
    """

    region: str
    repository: str
    project: str
    bucket: str
    hosts: dict[str, Hardware]
    dry_run: bool


def wanted() -> bool:
    """Whether the command line asks for Google Cloud."""
    launch_type: str = flags.FLAGS.lp_launch_type  # Launchpad's, which is imported by now
    return launch_type == LAUNCH_TYPE


def given() -> list[str]:
    """The flags of a launch on Google Cloud that the command line has."""
    return [f"--{name}" for name in NAMES if flags.FLAGS[name].present]


def check(run_dir: str | None) -> Options:
    """What the command line asks for, without a word to Google.

    Args:
      run_dir: the run folder; None where none was named.

    Raises:
      SettingsError: it cannot be had.
    """
    hosts = {kind: hardware.parse(f"gcp_{kind}", flag.value) for kind, flag in _HARDWARE.items()}
    region, repository = _REGION.value or "", _REPOSITORY.value or ""
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
        region, repository, in_registry.group(1), in_bucket.group(1), hosts, _DRY_RUN.value
    )
