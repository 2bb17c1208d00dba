"""The run that a command reads, as it was recorded, the code that it names, and who of it plays.

An environment, an agent or a torso may be a user's own: a name in config.json is enough to have its
module run. So a command says which modules it imports and from where, and imports none for another
user's folder unless it is told to.
"""

import contextlib
import importlib.util
import os
import pathlib
import stat
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags

from agents.requirements import MOST_MEMORY_STEPS
from environments import import_path
from launch import command_line, trial
from launch.hosts import own_code
from run_folder import places, settings
from run_folder.layout import RunFolder
from run_folder.settings import Settings, SettingsError

if TYPE_CHECKING:
    from analysis.playing.evaluation import Player

_TRUST = flags.DEFINE_boolean("trust", False, "Import the code that a run names, whoever wrote it.")
_ROOT = 0


def run() -> Settings:
    """The run that the command line names; what that names can be imported from then on.

    Raises:
      SettingsError: there is none, or it names code and is another user's.
    """
    if not command_line.RUN_DIR.value:
        raise SettingsError("--run_dir must be given.")
    places.check_name(command_line.RUN_DIR.value)
    run_dir = pathlib.Path(command_line.RUN_DIR.value)
    with import_path.nothing_imported():
        seen = settings.load(run_dir)
    if named := own_code.modules(seen):
        _allow(run_dir, named)
    trial.try_each(seen.env, seen.hang_seconds)  # before anything else makes it
    return settings.load(run_dir)


def trusting() -> contextlib.AbstractContextManager[None]:
    """Where a command that needs no code of a run's imports it only if it is told to."""
    return contextlib.nullcontext() if _TRUST.value else import_path.nothing_imported()


def _allow(run_dir: pathlib.Path, modules: Sequence[str]) -> None:
    config = RunFolder(run_dir).config
    code = ", ".join(f"{module} from {_place(module)}" for module in modules)
    why = next(filter(None, map(_why_not, (run_dir, config))), "")
    if why and not _TRUST.value:
        raise SettingsError(
            f"{why}, and its {config.name} names code that would be run: {code}. With --trust it "
            "is, once you have read it."
        )
    print(f"{config} names code, which is imported: {code}.", file=sys.stderr)


def _why_not(path: pathlib.Path) -> str:
    """Who but this process's user can have written a path; empty where nobody can."""
    status = path.stat()
    if status.st_uid not in (os.geteuid(), _ROOT):
        return f"{path} belongs to user {status.st_uid}, and you are user {os.geteuid()}"
    return f"{path} can be written by everybody" if status.st_mode & stat.S_IWOTH else ""


def _place(module: str) -> str:
    """Where a top-level module would be imported from; looks, and imports nothing."""
    spec = importlib.util.find_spec(module)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return folders[0] if folders else (spec and spec.origin) or "nowhere on PYTHONPATH"


class PlayerFlags:
    """The flags of a command that takes what a run has learned; to be made once, by its module."""

    NAMES = ("run_dir", "trust", "agent", "checkpoint", "epsilon", "memory_steps")

    def __init__(self) -> None:
        self._checkpoint = flags.DEFINE_string(
            "checkpoint", "latest", "Whose parameters play: latest, or the update N of a kept one."
        )
        self._epsilon = flags.DEFINE_float(
            "epsilon", None, "Probability of a random action; R2D2 only."
        )
        self._memory_steps = command_line.define_whole(
            "memory_steps",
            None,
            "The agent remembers its last k inputs only; all by default.",
            most=MOST_MEMORY_STEPS,
        )

    def player(self, run: Settings, agent: str | None, seed: int | None) -> "Player":
        """Who of a run the command line asks for, with what `--agent` and `--seed` say.

        Raises:
          SettingsError: there is no such agent or checkpoint, or it cannot play so.
        """
        checkpoint, number = self._checkpoint.value, None
        if checkpoint != "latest":
            if not (checkpoint.isdecimal() and len(checkpoint) < 20):  # with which int64 ends
                raise SettingsError(
                    f"--checkpoint must be latest or the number of an update, got {checkpoint!r}."
                )
            number = int(checkpoint)
        evaluation = command_line.later("analysis.playing.evaluation")
        try:
            found: Player = evaluation.load(
                run,
                agent or run.agents[0],
                checkpoint=number,
                epsilon=self._epsilon.value,
                memory_steps=self._memory_steps.value,
                seed=seed or 0,
            )
        except evaluation.CheckpointError as error:
            raise SettingsError(str(error)) from None
        return found
