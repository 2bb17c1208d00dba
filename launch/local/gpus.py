"""Which GPUs of this machine a run's actor nodes act on: decided before any process is launched."""

import contextlib
import math
import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from launch.graph.actor_node import GPU_MB
from run_folder.settings import Settings, SettingsError

# Inference on an H200 made 4,300, 15,200 and 36,000 steps/s of 16, 64 and 256 environments, where
# processors made 2,400 and 6,500 of the first two. With fewer a GPU mostly waits to be told.
LEAST_ENVIRONMENTS = 16
CONTEXT_MB = 512  # that CUDA takes for each process, beside what TensorFlow allocates
LEARNER_MB = 4_096  # for each learner: those of docs/performance.md took 2 to 3.2 GB on a GPU
_SMI_SECONDS = 30.0  # a driver that is not kept loaded takes some to answer


class Gpu(NamedTuple):
    """A GPU that processes started here would see."""

    name: str  # as CUDA_VISIBLE_DEVICES has it
    free_mb: int


def of_actors(run: Settings) -> tuple[list[str], str]:
    """The GPUs that actor nodes act on, in turn; and why not, where they might have been expected.

    Returns:
      Names for CUDA_VISIBLE_DEVICES, none for processors; and a sentence, or nothing.

    Raises:
      SettingsError: GPUs were asked for and are not there, or have no room for so many nodes.
    """
    is_asked = run.actor_device == "gpu"
    nodes = len(run.crews())
    if run.actor_device == "cpu" or (not is_asked and run.num_actors < LEAST_ENVIRONMENTS * nodes):
        return [], ""
    gpus, why = visible()
    if not gpus and is_asked:
        raise SettingsError(
            f"--actor_device=gpu needs an NVIDIA GPU that TensorFlow sees, and {why}: "
            "docs/installing.md says what a GPU takes, and --actor_device=cpu acts without one."
        )
    if not gpus or not (why := _why_no_room(run, gpus)):
        return [gpu.name for gpu in gpus], ""
    if is_asked:
        raise SettingsError(f"--actor_device=gpu: {why}; or --actor_device=cpu.")
    return [], f"Actors act on processors: {why}."


def _why_no_room(run: Settings, gpus: list[Gpu]) -> str:
    """Says what would do where not all actor nodes have a part of a GPU's memory."""
    free = min(gpu.free_mb for gpu in gpus)
    learners = len(run.agents) * math.ceil(run.learners_per_agent / len(gpus))
    each = GPU_MB + CONTEXT_MB
    most = max(free - learners * LEARNER_MB, 0) // each * len(gpus)
    nodes = len(run.crews())
    if nodes <= most:
        return ""
    said = (
        f"actor nodes that take {nodes:,} times {each:,} MB do not fit into the {free:,} MB free "
        f"of {'a GPU' if len(gpus) == 1 else f'each of {len(gpus)} GPUs'}, beside "
        f"{LEARNER_MB:,} MB for a learner"
    )
    if most < len(run.acting):
        return f"{said}: end what else uses it"
    fewer, shares = run.actors_per_node, {crew.agent: crew.num_actors for crew in run.crews()}
    while sum(math.ceil(share / fewer) for share in shares.values()) > most:
        fewer *= 2
    return f"{said}: {most:,} nodes would, and --actors_per_node={fewer} makes no more"


def check_seen(names: Sequence[str]) -> None:
    """Checks that TensorFlow sees these GPUs; it does so from then on in this process, a child.

    Raises:
      SettingsError: it does not.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names)
    if len(tf.config.list_physical_devices("GPU")) < len(names):
        raise SettingsError(
            f"--actor_device=gpu: TensorFlow does not see {', '.join(names)}, of which nvidia-smi "
            "tells. docs/installing.md says which driver and packages it takes, and "
            "--actor_device=cpu acts without a GPU."
        )


def visible() -> tuple[list[Gpu], str]:
    """The GPUs that processes started here would see; where there is none, why, for a sentence."""
    if not tf.sysconfig.get_build_info()["is_cuda_build"]:
        return [], "the TensorFlow that is installed is one for processors"
    try:
        query = ("--query-gpu=index,uuid,memory.free", "--format=csv,noheader,nounits")
        told = subprocess.run(
            ["nvidia-smi", *query], capture_output=True, text=True, timeout=_SMI_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return [], "no nvidia-smi answers here"
    found = []
    for line in told.stdout.splitlines() if told.returncode == 0 else ():
        with contextlib.suppress(ValueError):  # a GPU that does not tell its memory
            index, uuid, free = line.split(", ")
            found.append((index, uuid, int(free)))
    if not found:
        return [], "nvidia-smi tells of none"
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return [Gpu(uuid, free) for _, uuid, free in found], ""
    gpus = [
        Gpu(name, free)
        for name in filter(None, wanted.replace(" ", "").split(","))
        for index, uuid, free in found
        if name == index or (not name.isdecimal() and uuid.startswith(name))
    ]
    return gpus, "" if gpus else f"CUDA_VISIBLE_DEVICES={wanted} hides all that nvidia-smi tells of"
