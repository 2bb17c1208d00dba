"""Runs, on this host, the node of a job that CLUSTER_SPEC names: python -m launch.node --job=<job>

Its exit code is 0 once the run has ended; 2 where it can't be run, which another attempt does not
change; another one where it crashed, or SIGTERM ended it before the run did: then it is to be
started again, and goes on (see `launch.graph.rejoining`).
"""

import contextlib
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Sequence

import launchpad as lp
import tensorflow as tf
from absl import flags
from launchpad.launch import worker_manager
from launchpad.program_stopper import program_stopper

from courier import credentials
from launch import command_line
from launch.graph import process, program, rejoining, servers
from launch.hosts import cluster_spec, job
from run_folder import layout, mirrors, progress, run_lock
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError

POLL_SECONDS = 2.0  # between two looks at the run folder
END_SECONDS = 10.0  # from a run's end to that of a node that has not noticed
CLOUD_JOB = "CLOUD_ML_JOB_ID"  # environment variable that Vertex AI sets on each of its hosts
_REMEMBER = ("learner", "replay", "coordinator")
_LOCKS = "coordinator/0"  # the run folder, as the launching process does of a run on this machine
_TLS = flags.DEFINE(
    command_line.FolderParser(),
    "tls",
    None,
    "Folder of certificate.pem (made for recurrent-replay), key.pem and authority.pem: calls "
    "between nodes, but for replay's, go by TLS then.",
)
_SECTIONS: command_line.Sections = {"Of which job": ("job",), "How it calls others": ("tls",)}
flags.FLAGS.set_default("lp_termination_notice_secs", -1)  # what started this has its own patience


def main(_: Sequence[str]) -> None:
    try:
        pools = job.read(command_line.JOB.value)
        place = cluster_spec.read(os.environ, {name: pool.labels for name, pool in pools.items()})
        pool = pools[place.pool]
        label = pool.labels[place.index]
        run_dir = layout.local(pool.run_dir)
        if progress.ended_in_order(run_dir):
            return
        pool.check()
        credentials.use(pool.secret(), _tls())
        if label == _LOCKS and RunFolder(run_dir).config.exists():  # until this process ends
            run_lock.take(run_dir)
        if was_started(pool.run_dir, label):
            rejoining.rejoin()
    except SettingsError as error:
        command_line.fail(str(error))
    os.environ.update(program.environment_of(label.split("/")[0]))
    os.environ["no_grpc_proxy"] = ",".join(hosts(place))  # noqa: SIM112 (gRPC reads it so)
    manager = worker_manager.WorkerManager(register_in_thread=True)
    threading.Thread(
        target=_end_with_run, args=(pool.run_dir, manager.stop_event()), daemon=True
    ).start()
    print(f"{label} of {pool.run_dir} is {place.pool}/{place.index} at {place.address}", flush=True)
    with contextlib.suppress(servers.StoppedError):
        pool.node(place.index)()
    if manager.stop_event().is_set() and not progress.ended_in_order(run_dir):
        sys.exit(process.TERMINATED)


def _tls() -> credentials.Tls | None:
    if not _TLS.value:
        return None
    try:
        return credentials.Tls.read(pathlib.Path(_TLS.value))
    except OSError as error:
        command_line.fail(f"--tls: {error.filename} cannot be read: {error.strerror}.")


def was_started(run_dir: layout.RunDir, label: str) -> bool:
    """Whether a node that remembers was started before by the same job; notes that it is now.

    What a learner, a replay shard or the coordinator knew is in the run folder, where one that is
    started again finds it. In a bucket it need not be yet: there it may be started once.

    Raises:
      JobError: it cannot go on; or all hosts are to share the run folder, and this one has it not.
    """
    folder = RunFolder(layout.local(run_dir))
    if label.split("/")[0] not in _REMEMBER:
        return False
    started = folder.started(label)
    if layout.is_bucket(run_dir):
        _claim(run_dir, started.name)
        return False
    if not folder.config.exists():
        raise job.JobError(
            f"{run_dir} must be on a file system that all hosts share, and there is no "
            f"{folder.config} on this one."
        )
    try:
        started.touch(exist_ok=False)
    except FileExistsError:
        return True
    return False


def _claim(run_dir: layout.RunDir, name: str) -> None:
    """Notes in the bucket that a node was started which must not be started twice.

    Vertex AI starts a process that crashed again, and gives the job up, as failed, when that fails.
    """
    path = f"{mirrors.of(run_dir).root}/nodes/{name}"
    if tf.io.gfile.exists(path):
        raise job.JobError(
            f"There is {path} already: what this node knew is gone with the process that crashed. "
            "Launch the run anew with --resume."
        )
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(os.environ.get(CLOUD_JOB, ""))


def hosts(place: cluster_spec.Place) -> list[str]:
    """Every host of a cluster once: no proxy is to be asked for those."""
    addresses = (address for pool in place.addresses.values() for address in pool)
    return sorted({address.rpartition(":")[0] for address in addresses})


def _end_with_run(run_dir: layout.RunDir, stop: threading.Event) -> None:
    """Ends this process when the run folder says that the run has ended."""
    while not progress.ended_in_order(layout.local(run_dir)):
        if stop.wait(POLL_SECONDS):
            return
    if layout.is_bucket(run_dir):  # each host has its own part; the coordinator's says it
        mirrors.of(run_dir).push(checkpoints=True)
        if CLOUD_JOB in os.environ:  # ends every host: the job is cancelled; a crash fails it
            program_stopper.make_program_stopper(lp.LaunchType.VERTEX_AI)()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
