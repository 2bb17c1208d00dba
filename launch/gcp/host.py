"""What a node does otherwise where Vertex AI has rented its host."""

import os

import launchpad as lp
import tensorflow as tf
from launchpad.program_stopper import program_stopper

from launch.hosts import job
from run_folder import layout, mirrors

JOB = "CLOUD_ML_JOB_ID"  # environment variable that Vertex AI sets on each of its hosts


def claim(run_dir: layout.RunDir, name: str) -> None:
    """Notes in the bucket that a node was started which must not be started twice.

    Vertex AI starts a process that crashed again, and gives the job up, as failed, when that fails.

    Raises:
      JobError: it was started before.
    """
    path = f"{mirrors.of(run_dir).root}/nodes/{name}"
    if tf.io.gfile.exists(path):
        raise job.JobError(
            f"There is {path} already: what this node knew is gone with the process that crashed. "
            "Launch the run anew with --resume."
        )
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(os.environ.get(JOB, ""))


def end_job(run_dir: layout.RunDir) -> None:
    """Ends every host of a run that has ended: its job is then cancelled, while a crash fails it.

    Called where the coordinator runs. All that is still to be written is written first.
    """
    mirrors.of(run_dir).push(checkpoints=True)
    if JOB in os.environ:
        program_stopper.make_program_stopper(lp.LaunchType.VERTEX_AI)()
