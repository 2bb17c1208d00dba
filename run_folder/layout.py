"""Where everything is in a run folder. Each of its paths is spelled here, and nowhere else.

lock                       held by the process that runs the folder: `run_folder.run_lock`
config.json                what was used: `run_folder.settings`
launches.jsonl             what was typed to start and resume it: `run_folder.launches`
logs/<label>.csv           `run_folder.log_writer`, `run_folder.episodes`
events.*                   the same scalars for TensorBoard, which names a run by their folder
wandb/                     what was sent to Weights & Biases, and the run's name there
checkpoints/               `run_folder.checkpoints`
nodes/progress.json        the coordinator's: `run_folder.progress`
nodes/crash.txt            the first error that ended a node
nodes/crashes/             those that were made good
nodes/stop                 asks for the end of the run
nodes/<group>/<index>      what a process printed
nodes/started-<label>      that a node was started: `launch.node`
evaluations/, videos/      what `launch.evaluate` played and filmed
exports/                   policies that `launch.export` wrote
report/, diagnostics/      what `launch.report` and `launch.diagnose` made
"""

import dataclasses
import pathlib
from collections.abc import Collection

CHECKPOINTS = "checkpoints"
_LEARNER, _EVALUATOR = "learner", "evaluator"


def learner_label(agent: str) -> str:
    """What an agent's learner's log and its folder of checkpoints are called."""
    return f"{_LEARNER}-{agent}"


def evaluator_label(agent: str, agents: Collection[str]) -> str:
    """What the log of an agent's evaluator is called in a run of these agents."""
    return f"{_EVALUATOR}-{agent}" if len(agents) > 1 else _EVALUATOR


def learns(label: str) -> bool:
    """Whether a log is a learner's."""
    return label.startswith(learner_label(""))


def agent_of(label: str) -> str | None:
    """Whose log this is; None where its label does not tell."""
    kind, _, agent = label.partition("-")
    return agent if agent and kind in (_LEARNER, _EVALUATOR) else None


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The paths of a run folder.

    Attributes:
      path: the folder; that of `RunFolder()` is empty, so that all paths are relative to it.
    """

    path: pathlib.Path = pathlib.Path()

    @property
    def lock(self) -> pathlib.Path:
        """Held by the process that runs the folder."""
        return self.path / "lock"

    @property
    def config(self) -> pathlib.Path:
        """The settings."""
        return self.path / "config.json"

    @property
    def launches(self) -> pathlib.Path:
        """A line for each launch."""
        return self.path / "launches.jsonl"

    def log(self, label: str) -> pathlib.Path:
        """The rows of one log: `actor`, `episodes`, `tasks`, `learner-<agent>`, `evaluator`."""
        return self.logs / f"{label}.csv"

    @property
    def logs(self) -> pathlib.Path:
        """All logs."""
        return self.path / "logs"

    @property
    def tensorboard(self) -> pathlib.Path:
        """Where the event files of all logs are: TensorBoard shows this folder's name."""
        return self.path

    def events(self) -> list[pathlib.Path]:
        """The event files."""
        return sorted(self.tensorboard.glob("events.*"))

    @property
    def wandb_id(self) -> pathlib.Path:
        """By what Weights & Biases knows the run."""
        return self.path / "wandb" / "id"

    @property
    def checkpoints(self) -> pathlib.Path:
        """Manifests, learners and replay."""
        return self.path / CHECKPOINTS

    @property
    def nodes(self) -> pathlib.Path:
        """What processes leave word of."""
        return self.path / "nodes"

    @property
    def progress(self) -> pathlib.Path:
        """The newest counts."""
        return self.nodes / "progress.json"

    @property
    def crash(self) -> pathlib.Path:
        """The error that ended the run."""
        return self.nodes / "crash.txt"

    @property
    def crashes(self) -> pathlib.Path:
        """A file for each error or death that was made good."""
        return self.nodes / "crashes"

    @property
    def stop(self) -> pathlib.Path:
        """Whose existence asks for the end of the run."""
        return self.nodes / "stop"

    def started(self, label: str = "*") -> pathlib.Path:
        """Notes that the node `<group>/<index>` of a job was started."""
        return self.nodes / f"started-{label.replace('/', '-')}"

    @property
    def evaluations(self) -> pathlib.Path:
        """A file for each evaluation."""
        return self.path / "evaluations"

    @property
    def videos(self) -> pathlib.Path:
        """Films."""
        return self.path / "videos"

    @property
    def exports(self) -> pathlib.Path:
        """A folder for each policy that can be played elsewhere."""
        return self.path / "exports"

    @property
    def report(self) -> pathlib.Path:
        """The page of the run."""
        return self.path / "report"

    @property
    def diagnostics(self) -> pathlib.Path:
        """Tables and figures of diagnoses."""
        return self.path / "diagnostics"
