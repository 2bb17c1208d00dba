"""What a pool's hosts run: an image of the job's files, in the place of Launchpad's own recipe.

Launchpad's recipe does not build, and what it builds does not start: it installs a package that its
base image's distribution no longer has, resolves the requirements anew, which brings a second
Launchpad, takes whatever xmanager is newest, copies a whole folder, and ends in a shell that keeps
SIGTERM to itself. xmanager then pushes to a registry that is closed. `in_place_of_launchpads` is
the one place at which either of them is changed; graph, addresses and job stay theirs.
"""

import contextlib
import copy
import dataclasses
import datetime
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import launchpad as lp

import recurrent_replay
from launch.gcp.hardware import Hardware
from launch.hosts import artefact
from run_folder.settings import Settings

NAME = "recurrent-replay"
LOCK, GPU_LOCK = recurrent_replay.LOCK, recurrent_replay.GPU_LOCK
GCP_LOCK = "requirements-gcp.lock"
BASE = "python:3.10-slim-bookworm"
CUDA_BASE = "nvidia/cuda:11.8.0-base-ubuntu22.04"  # CUDA's libraries themselves are in the lock
_UBUNTU_PYTHON = """\
RUN apt-get update \\
 && apt-get install --yes --no-install-recommends python3.10-venv libpython3.10 \\
 && rm -rf /var/lib/apt/lists/* \\
 && python3.10 -m venv /venv
ENV PATH=/venv/bin:$PATH LD_LIBRARY_PATH={libraries}
"""
_DOCKERFILE = """\
FROM {base}
{python}ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 CLOUD_ML_REGION={region}
COPY {lock} {gcp_lock} /locks/
WORKDIR /locks
RUN sed -n '/^setuptools==/,/[^\\\\]$/p' {lock} > setuptools.lock \\
 && python -m pip install --no-deps --require-hashes -r setuptools.lock \\
 && python -m pip install --no-deps --require-hashes --no-build-isolation --use-pep517 \\
    -r {lock} -r {gcp_lock}
COPY {pool} /job/{pool}
WORKDIR /job/{pool}
ENTRYPOINT ["python", "-m", "launch.node", "--job=/job"]
"""

Executables = list[tuple[Any, Any]]  # pairs of xm.Dockerfile and xm.JobRequirements


class Packed(Exception):
    """Every pool is packed, and no more than that was asked for."""


@dataclasses.dataclass(frozen=True)
class PoolConfig:
    """What Launchpad asks of a group of nodes. Groups share a pool whose configs agree.

    Attributes:
      code_directory: what the pool's hosts are made for. Launchpad tells pools apart by it.
      docker_requirements: the lock whose packages the image has.
      hw_requirements: an xm.JobRequirements.
      hardware: the same as the user named it.
    """

    code_directory: str
    docker_requirements: str
    hw_requirements: Any
    hardware: Hardware

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """Nodes carry their config, but need nothing of it where they run: there it is None."""
        return type(None), ()


class Packaged(NamedTuple):
    """A pool whose image can be built."""

    pool: artefact.Pool
    config: PoolConfig


class Images:
    """Writes what each pool's image is built from.

    Args:
      program: whose nodes are to be packed.
      settings: of the run.
      region: where the job runs.
      folder: to write to; a folder for each pool is made in it.
      dry: whether to end, with `Packed`, once every node is in a pool.
    """

    def __init__(
        self,
        program: lp.Program,
        settings: Settings,
        region: str,
        folder: pathlib.Path,
        *,
        dry: bool,
    ) -> None:
        self._labels = {
            id(node): f"{group}/{index}"
            for group, nodes in program.groups.items()
            for index, node in enumerate(nodes)
        }
        self._settings = settings
        self._region = region
        self._folder = folder
        self._dry = dry
        self.packaged: list[Packaged] = []

    def executables(self, nodes: Sequence[Any], pool_name: str, config: PoolConfig) -> Executables:
        """What `launchpad.nodes.python.xm_docker.to_docker_executables` returns, by our recipe.

        Raises:
          Packed: at the last pool of a dry run.
        """
        from xmanager import xm

        labels = tuple(self._labels[id(node)] for node in nodes)
        pool = artefact.Pool(pool_name, config.code_directory, labels, tuple(nodes))
        context = self._folder / pool_name
        write_context(context, pool, self._settings, self._region, config.docker_requirements)
        self.packaged.append(Packaged(pool, config))
        if self._dry and sum(len(p.pool.nodes) for p in self.packaged) == len(self._labels):
            raise Packed
        requirements = copy.deepcopy(config.hw_requirements)
        requirements.replicas = len(nodes)
        return [(xm.Dockerfile(path=str(context)), requirements)]


def write_context(
    context: pathlib.Path, pool: artefact.Pool, settings: Settings, region: str, lock: str
) -> None:
    """Writes a folder of which Docker builds a pool's image; nothing but what it needs is there."""
    artefact.write_pool(context / pool.name, pool, settings)
    for name in (lock, GCP_LOCK):
        (context / name).write_text(recurrent_replay.file(name).read_text())
    (context / "Dockerfile").write_text(dockerfile(pool.name, region, lock))


def dockerfile(pool_name: str, region: str, lock: str) -> str:
    """The recipe: everything pinned, the project last, and Python itself gets the signals."""
    libraries = ":".join(cuda_libraries())
    return _DOCKERFILE.format(
        base=base(lock),
        python=_UBUNTU_PYTHON.format(libraries=libraries) if lock == GPU_LOCK else "",
        region=region,
        lock=lock,
        gcp_lock=GCP_LOCK,
        pool=pool_name,
    )


def base(lock: str) -> str:
    """The image that one with the packages of a lock begins from."""
    return CUDA_BASE if lock == GPU_LOCK else BASE


def cuda_libraries() -> list[str]:
    """Where TensorFlow finds CUDA in the image: the lock's wheels, then the host's driver."""
    names = re.findall(
        r"^nvidia-(?!cuda-nvcc)(.+)-cu11==",  # that one has programs
        recurrent_replay.file(GPU_LOCK).read_text(),
        re.MULTILINE,
    )
    site = "/venv/lib/python3.10/site-packages/nvidia"
    return [
        *(f"{site}/{name.replace('-', '_')}/lib" for name in names),
        "/usr/local/nvidia/lib",
        "/usr/local/nvidia/lib64",
    ]


@contextlib.contextmanager
def in_place_of_launchpads(
    executables: Callable[..., Executables], repository: str
) -> Iterator[None]:
    """Lets Launchpad build its pools' images by our recipe, and xmanager push them elsewhere.

    Args:
      executables: that `Images` has.
      repository: to push to, <region>-docker.pkg.dev/<project>/<name>.
    """
    from launchpad.nodes.python import xm_docker
    from xmanager import xm_local

    def spec() -> Any:  # of one pool: no two may have the same tag
        tag = f"{datetime.datetime.now():%Y%m%d-%H%M%S-%f}"
        return xm_local.VertexSpec(push_image_tag=f"{repository}/{NAME}:{tag}")

    theirs = xm_docker.to_docker_executables, xm_local.Vertex.Spec
    xm_docker.to_docker_executables, xm_local.Vertex.Spec = executables, spec
    try:
        yield
    finally:
        xm_docker.to_docker_executables, xm_local.Vertex.Spec = theirs
