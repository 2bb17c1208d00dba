"""The run that a command reads, as it was recorded, and the code that its config.json names.

An environment, an agent or a torso may be a user's own: a name in config.json is enough to have its
module run. So a command says which modules it imports and from where, and imports none for another
user's folder unless it is told to.
"""

import contextlib
import os
import pathlib
import stat
import sys
from collections.abc import Sequence

from absl import flags

from environments import import_path
from launch import command_line, trial
from launch.hosts import own_code
from run_folder import places, settings
from run_folder.layout import RunFolder
from run_folder.settings import Settings, SettingsError

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
    code = ", ".join(
        f"{module} from {own_code.place(module) or 'nowhere on PYTHONPATH'}" for module in modules
    )
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
