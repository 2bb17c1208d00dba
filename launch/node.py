"""Runs, on this host, the node of a job that CLUSTER_SPEC names: python -m launch.node --job=<job>

It ends with exit code 0 once the run has ended, and before that when SIGTERM asks it to.
"""

import os

os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "2"
)  # before TensorFlow is imported, by whatever follows

import contextlib
import pathlib
import signal
import threading
import time
from collections.abc import Sequence

from absl import flags
from launchpad.launch import worker_manager

from launch import cluster_spec, command_line, job, program, progress, servers

POLL_SECONDS = 2.0  # between two looks at the run folder
END_SECONDS = 10.0  # from a run's end to that of a node that has not noticed
_SECTIONS: command_line.Sections = {"Of which job": ("job",)}
flags.FLAGS.set_default("lp_termination_notice_secs", -1)  # what started this has its own patience


def main(_: Sequence[str]) -> None:
    if not command_line.JOB.value:
        command_line.fail("--job must be given: the folder that launch.train --job=... wrote.")
    try:
        pools = job.read(pathlib.Path(command_line.JOB.value))
        place = cluster_spec.read(os.environ, {name: pool.labels for name, pool in pools.items()})
    except job.JobError as error:
        command_line.fail(str(error))
    pool = pools[place.pool]
    label = pool.labels[place.index]
    os.environ.update(program.environment_of(label.split("/")[0]))
    os.environ["no_grpc_proxy"] = ",".join(hosts(place))  # noqa: SIM112 (gRPC reads it so)
    manager = worker_manager.WorkerManager(register_in_thread=True)
    threading.Thread(
        target=_end_with_run, args=(pathlib.Path(pool.run_dir), manager.stop_event()), daemon=True
    ).start()
    print(f"{label} of {pool.run_dir} is {place.pool}/{place.index} at {place.address}", flush=True)
    with contextlib.suppress(servers.StoppedError):
        pool.node(place.index)()


def hosts(place: cluster_spec.Place) -> list[str]:
    """Every host of a cluster once: no proxy is to be asked for those."""
    addresses = (address for pool in place.addresses.values() for address in pool)
    return sorted({address.rpartition(":")[0] for address in addresses})


def _end_with_run(run_dir: pathlib.Path, stop: threading.Event) -> None:
    """Ends this process when the run folder says that the run has ended."""
    while not finished(run_dir):
        if stop.wait(POLL_SECONDS):
            return
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_SECONDS)
    os._exit(0)


def finished(run_dir: pathlib.Path) -> bool:
    """Whether the coordinator has written that the run has ended; not when it can't be read now."""
    with contextlib.suppress(OSError):
        state = progress.read(run_dir)
        return state is not None and state["state"] == "finished"
    return False


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
