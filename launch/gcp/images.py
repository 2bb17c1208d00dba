"""The image that a pool's hosts run, made of the job's files, in the place of Launchpad's recipe.

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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import launchpad as lp

import recurrent_replay
from launch.gcp.options import Hardware
from launch.hosts import artefact
from run_folder.settings import Settings

NAME = "recurrent-replay"
LOCK, GPU_LOCK, GCP_LOCK = recurrent_replay.LOCK, recurrent_replay.GPU_LOCK, "requirements-gcp.lock"
LAUNCHPAD_LOCK = recurrent_replay.LAUNCHPAD_LOCK
BASE = "python:3.11-slim-bookworm"
# CUDA is in the lock, and the driver is the host's.
DRIVER = "NVIDIA_DRIVER_CAPABILITIES=compute,utility LD_LIBRARY_PATH=/usr/local/nvidia/lib64"
_DOCKERFILE = """\
FROM {base}
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 CLOUD_ML_REGION={region} {driver}
COPY {lock} {launchpad_lock} {gcp_lock} /locks/
WORKDIR /locks
RUN sed -n '/^setuptools==/,/[^\\\\]$/p' {lock} > setuptools.lock \\
 && python -m pip install --no-deps --require-hashes -r setuptools.lock \\
 && python -m pip install --no-deps --require-hashes --no-build-isolation --use-pep517 \\
    -r {lock} -r {gcp_lock} \\
 && python -m pip install --no-deps --require-hashes --python-version 3.10 --only-binary :all: \\
    --target "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \\
    -r {launchpad_lock}
COPY {pool} /job/{pool}
WORKDIR /job/{pool}
ENTRYPOINT ["python", "-m", "launch.node", "--job=/job"]
"""

Executables = list[tuple[Any, Any]]  # pairs of xm.Dockerfile and xm.JobRequirements


class Packed(Exception):
    """Every pool is packed, and no more than that was asked for."""


@dataclasses.dataclass(frozen=True)
class PoolConfig:
    """Launchpad's config of a group of nodes. Groups share a pool whose configs agree."""

    code_directory: str  # what the pool's hosts are made for; Launchpad tells pools apart by it
    docker_requirements: str  # the lock whose packages the image has
    hw_requirements: Any  # an xm.JobRequirements
    hardware: Hardware  # the same as the user named it

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
        """Stands for `launchpad.nodes.python.xm_docker.to_docker_executables`, by our recipe.

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
    for name in (lock, LAUNCHPAD_LOCK, GCP_LOCK):
        (context / name).write_text(recurrent_replay.file(name).read_text())
    (context / "Dockerfile").write_text(dockerfile(pool.name, region, lock))


def dockerfile(pool_name: str, region: str, lock: str) -> str:
    """The recipe: everything pinned, the project last, and Python itself gets the signals."""
    of_pool = dict(base=BASE, driver=DRIVER, region=region, pool=pool_name)
    locks = dict(lock=lock, launchpad_lock=LAUNCHPAD_LOCK, gcp_lock=GCP_LOCK)
    return _DOCKERFILE.format(**of_pool, **locks)


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
