"""Where everything is in a run folder. Each of its paths is spelled here, and nowhere else.

A run folder may be in a bucket, --run_dir=gs://<bucket>/<run>: then each process keeps its part of
it in a folder of this machine, which `run_folder.mirrors` copies to the bucket.
"""

import atexit
import functools
import os
import pathlib
import shutil
import tempfile
from collections.abc import Collection

RunDir = str | pathlib.Path

CHECKPOINTS = "checkpoints"
_LEARNER, _EVALUATOR = "learner", "evaluator"


def is_bucket(run_dir: RunDir) -> bool:
    """Whether a run folder is no folder of this machine."""
    return "://" in os.fspath(run_dir)


@functools.cache
def local(run_dir: RunDir) -> pathlib.Path:
    """Where this process finds and leaves the files of a run, the same place whenever it asks."""
    if not is_bucket(run_dir):
        return pathlib.Path(run_dir)
    path = pathlib.Path(tempfile.mkdtemp(prefix="run-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def learner_label(agent: str) -> str:
    """The name of an agent's learner's log and of its folder of checkpoints."""
    return f"{_LEARNER}-{agent}"


def evaluator_label(agent: str, agents: Collection[str]) -> str:
    """The name of the log of an agent's evaluator in a run of these agents."""
    return f"{_EVALUATOR}-{agent}" if len(agents) > 1 else _EVALUATOR


def agent_of(label: str) -> str | None:
    """The agent whose log this is; None where its label does not tell."""
    kind, _, agent = label.partition("-")
    return agent if agent and kind in (_LEARNER, _EVALUATOR) else None


def steps_key(label: str) -> str:
    """The column of a log that is TensorBoard's step."""
    return "learner_steps" if label.startswith(learner_label("")) else "actor_steps"


class RunFolder:
    """The paths of a run folder.

    Args:
      path: the folder; that of `RunFolder()` is empty, so that all paths are relative to it.
    """

    def __init__(self, path: pathlib.Path = pathlib.Path()) -> None:
        self.path = path
        self.lock = path / "lock"  # held by the process that runs the folder: `run_lock`
        self.config = path / "config.json"  # the settings: `settings`
        self.launches = path / "launches.jsonl"  # what was typed, first and to resume: `launches`
        self.logs = path / "logs"  # `log_writer`, `episodes`
        self.wandb_id = path / "wandb" / "id"  # by which Weights & Biases knows the run
        self.checkpoints = path / CHECKPOINTS  # manifests, learners, replay: `checkpoints`
        self.evaluations = path / "evaluations"  # a file for each of `launch.evaluate`
        self.videos = path / "videos"  # its films
        self.exports = path / "exports"  # a folder for each policy that `launch.export` wrote
        self.report = path / "report"  # the page that `launch.report` made
        self.diagnostics = path / "diagnostics"  # tables and figures of `launch.diagnose`
        self.nodes = path / "nodes"  # words of processes; one printed to `<group>/<index>`
        self.progress = self.nodes / "progress.json"  # the coordinator's newest counts: `progress`
        self.crash = self.nodes / "crash.txt"  # the first error that ended a node
        self.crashes = self.nodes / "crashes"  # a file for each that was made good
        self.stop = self.nodes / "stop"  # whose existence asks for the end of the run

    def log(self, label: str) -> pathlib.Path:
        """The rows of one log: `actor`, `episodes`, `tasks`, `learner-<agent>`, `evaluator`."""
        return self.logs / f"{label}.csv"

    def events(self) -> list[pathlib.Path]:
        """The same scalars for TensorBoard, which names a run by the folder that they are in."""
        return sorted(self.path.glob("events.*"))

    def started(self, label: str = "*") -> pathlib.Path:
        """A note that the node `<group>/<index>` of a job was started: `launch.node`."""
        return self.nodes / f"started-{label.replace('/', '-')}"
