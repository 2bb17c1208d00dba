"""Submits a run's program to Vertex AI by Launchpad's own launch, or prints what that would be."""

import contextlib
import importlib.util
import os
import pathlib
import shlex
import subprocess
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import launchpad as lp

from launch.gcp import images
from launch.gcp.images import Images, Packaged, PoolConfig
from launch.gcp.options import Hardware, Options
from launch.gcp_flags import LAUNCH_TYPE
from launch.graph.program import make_program
from launch.hosts import artefact
from recurrent_replay import addition
from run_folder import checkpoints, mirrors
from run_folder.layout import RunFolder
from run_folder.settings import Settings, SettingsError

# What the launching machine needs to see of a run that is there already.
_KNOWN = (
    *(str(RunFolder().config), str(RunFolder().launches)),
    *(str(RunFolder().checkpoints / "manifest*.json"), str(RunFolder().nodes / "*")),
)
# Of custom training in a new project; other regions begin with as little as 20 N1 processors.
_REGION = "us-central1"
_DISK = "boot disks, GB"
_DOCUMENTED = {"N1 vCPUs": 2_200, "T4": 12, "A100": 8, "L4": 0, _DISK: 75_000}
_BOOT_DISK_GB = 100  # Vertex AI's default for each host


class Need(NamedTuple):
    """A job's need of one of a project's quotas."""

    name: str
    needed: int
    documented: int | None  # None where no number is


def check(options: Options, run_dir: str, *, resume: bool) -> None:
    """Checks that a job could be submitted, and gets what is known of a run that is to go on.

    Raises:
      SettingsError: something is missing; it says what to run.
    """
    if importlib.util.find_spec("xmanager") is None:
        raise SettingsError(
            f"--lp_launch_type={LAUNCH_TYPE} takes xmanager and Google's client libraries, which "
            f"are not installed: run `{addition('gcp')}`."
        )
    if not options.dry_run:
        check_access(options)
        mirrors.of(run_dir).fetch(*_KNOWN)
    elif resume:
        raise SettingsError("--gcp_dry_run asks nobody, so not what --resume would go on from.")


def check_program(run: Settings) -> None:
    """Checks that a run's program is one that Vertex AI can run.

    Raises:
      SettingsError: it is not.
    """
    artefact.check_nodes(run)
    if run.learners_per_agent > 1:
        raise SettingsError(
            f"--learners_per_agent={run.learners_per_agent} is not for Google Cloud, whose hosts "
            "open one port to each other: use hosts of your own (docs/clusters.md)."
        )


def launch(run: Settings, manifests: checkpoints.Manifests, options: Options) -> int:
    """Submits a run, or prints what would be submitted; returns the exit code."""
    if options.dry_run:
        print(describe(run, manifests, options))
        return 0
    mirror = mirrors.of(run.run_dir)
    if not mirror.push():
        raise SettingsError(f"{run.run_dir} cannot be written: nothing was submitted, try again.")
    job = submit(run, manifests, options)
    where = f"{job} --region={options.region}"
    print(
        f"Output:   gcloud ai custom-jobs stream-logs {where}\n"
        f"Progress: gcloud storage cat {mirror.root}/{RunFolder().progress}\n"
        f"Stop:     gcloud ai custom-jobs cancel {where}\n"
        f"Evaluate: gcloud storage cp --recursive {mirror.root} runs/"
    )
    return 0


def check_access(options: Options) -> None:
    """Checks that there are credentials, and that the bucket is within their reach.

    Raises:
      SettingsError: what is missing, and what to run.
    """
    import google.auth
    import google.auth.exceptions
    import google.auth.transport.requests

    os.environ["GOOGLE_CLOUD_PROJECT"] = options.project  # before xmanager asks which one it is
    os.environ["GOOGLE_CLOUD_BUCKET_NAME"] = options.bucket
    try:
        credentials, _ = google.auth.default(
            scopes=["https://www.googleapis.com/auth/cloud-platform"]
        )
        credentials.refresh(google.auth.transport.requests.Request())
    except google.auth.exceptions.GoogleAuthError as error:
        raise SettingsError(
            "Google Cloud knows nobody here: run `gcloud auth application-default login` "
            f"({str(error).splitlines()[0]})."
        ) from None
    # TensorFlow's file system reaches the bucket on every host, and so does it here.
    import tensorflow as tf

    try:
        there = tf.io.gfile.isdir(f"gs://{options.bucket}/")
    except tf.errors.OpError as error:
        raise SettingsError(
            f"The bucket gs://{options.bucket} cannot be read: {error.message}."
        ) from None
    if not there:
        raise SettingsError(
            f"There is no bucket gs://{options.bucket}: run `gcloud storage buckets create "
            f"gs://{options.bucket} --project={options.project} --location={options.region}`."
        )


def configs(program: lp.Program, options: Options) -> dict[str, PoolConfig]:
    """The config of each group of a program."""
    from xmanager import xm

    made = {
        kind: PoolConfig(
            code_directory=kind,
            docker_requirements=images.GPU_LOCK if hardware.accelerator else images.LOCK,
            hw_requirements=xm.JobRequirements(**hardware.requirements()),
            hardware=hardware,
        )
        for kind, hardware in options.hosts.items()
    }
    return {group: made[artefact.POOL_OF.get(group, group)] for group in program.groups}


def describe(run: Settings, manifests: checkpoints.Manifests, options: Options) -> str:
    """Describes what a launch would submit. Nothing is sent, and nobody has to be known."""
    program = make_program(run, manifests)
    with _images(program, run, options) as packed, contextlib.suppress(images.Packed):
        _launch(program, options)
    project = options.repository.split("/")[1]
    return "\n".join(
        [
            f"A job of Vertex AI's in {options.region}, project {project}, "
            f"for the run {run.run_dir}.",
            f"Images: {options.repository}/{images.NAME}",
            "",
            *_pools(packed.packaged),
            "",
            *_quotas(packed.packaged),
        ]
    )


def _pools(packaged: Sequence[Packaged]) -> Iterable[str]:
    rows = [("pool", "hosts", "machine", "packages", "nodes")]
    for pool, config in packaged:
        host = (str(len(pool.nodes)), str(config.hardware), config.docker_requirements)
        rows.append((pool.name, *host, ranges(pool.labels)))
    return _table(rows)


def _quotas(packaged: Sequence[Packaged]) -> Iterable[str]:
    rows = [("quota", "needed", f"documented in {_REGION}")]
    for name, number, documented in needs(
        (config.hardware, len(pool.nodes)) for pool, config in packaged
    ):
        rows.append((name, f"{number:,}", "-" if documented is None else f"{documented:,}"))
    return _table(rows)


def needs(hosts: Iterable[tuple[Hardware, int]]) -> list[Need]:
    """The quotas that a job touches; of each pool it is told the host, and how many there are."""
    total: Counter[str] = Counter()
    for hardware, replicas in hosts:
        family = hardware.machine.partition("-")[0].upper()
        total[f"{family} vCPUs"] += replicas * hardware.vcpus
        if hardware.accelerator:
            total[hardware.accelerator] += replicas * hardware.number
        total[_DISK] += replicas * _BOOT_DISK_GB
    return [Need(name, needed, _DOCUMENTED.get(name)) for name, needed in total.items()]


def ranges(labels: Sequence[str]) -> str:
    """Labels of nodes, those that follow one another as a range: `actor/0-255, evaluator/0`."""
    found: list[list[str]] = []  # group, first index, last index
    for label in labels:
        group, index = label.split("/")
        if found and found[-1][0] == group and int(found[-1][2]) + 1 == int(index):
            found[-1][2] = index
        else:
            found.append([group, index, index])
    return ", ".join(
        f"{group}/{first}" + (f"-{last}" if last != first else "") for group, first, last in found
    )


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def submit(run: Settings, manifests: checkpoints.Manifests, options: Options) -> str:
    """Builds and pushes the images and submits the job; returns the job's name."""
    print("Loading Google's client libraries.", flush=True)
    from xmanager.cloud import vertex

    class Client(vertex.Client):
        """xmanager's, which keeps the name of what it submits to itself."""

        job = ""

        def launch(self, name: str, jobs: Any) -> str:
            self.job = super().launch(name, jobs)
            return self.job

    client = Client(options.project, options.region)
    vertex.set_default_client(client)
    program = make_program(run, manifests)
    with _images(program, run, options), _dockers_errors(run):
        _launch(program, options)
    return client.job


@contextlib.contextmanager
def _dockers_errors(run: Settings) -> Iterator[None]:
    """Says in a sentence that an image could not be built or pushed, and how to go on.

    Raises:
      SettingsError: one could not.
    """
    import docker.errors

    again = f"Mend it, and launch again with --resume, since {run.run_dir} has begun."
    try:
        yield
    except subprocess.CalledProcessError as error:
        raise SettingsError(
            f"`{shlex.join(error.cmd[:3])}` ended with exit code {error.returncode}, and said why "
            f"above: an image of the job was not built. {again}"
        ) from None
    except (docker.errors.DockerException, RuntimeError, FileNotFoundError) as error:
        if not _is_of_docker(error):
            raise
        said = str(error).strip().removesuffix(".") or type(error).__name__
        raise SettingsError(f"Docker: {said}. {again}") from None


def _is_of_docker(error: Exception) -> bool:
    """Whether xmanager's dealings with Docker raised it: some raise a plain RuntimeError."""
    raised = traceback.extract_tb(error.__traceback__)
    return any(pathlib.Path(frame.filename).name == "docker_lib.py" for frame in raised)


@contextlib.contextmanager
def _images(program: lp.Program, run: Settings, options: Options) -> Iterator[Images]:
    """Our images in the place of Launchpad's."""
    with tempfile.TemporaryDirectory() as folder:
        made = Images(program, run, options.region, pathlib.Path(folder), dry=options.dry_run)
        with images.in_place_of_launchpads(made.executables, options.repository):
            yield made


def _launch(program: lp.Program, options: Options) -> None:
    lp.launch(program, launch_type=LAUNCH_TYPE, xm_resources=configs(program, options))
