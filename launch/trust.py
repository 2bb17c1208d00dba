"""Whose code is imported when a run is opened.

An environment, an agent, a torso or a core may be a user's own: a name in config.json is enough to
have its module run. So whoever opens a run is told which modules are imported and from where, and
none is imported for another user's folder unless that is trusted.
"""

import os
import pathlib
import stat
import sys
from collections.abc import Sequence

from environments import import_path
from launch.hosts import own_code
from run_folder import places, settings
from run_folder.layout import RunFolder
from run_folder.settings import Settings, SettingsError

_ROOT = 0


def load(run_dir: pathlib.Path, trust: bool = False) -> Settings:
    """The settings of a run as they were recorded, before any code that they name is imported.

    Args:
      run_dir: its folder.
      trust: whether that code is to be imported whoever wrote its name.

    Raises:
      SettingsError: there is no run, or it names code and is another user's.
    """
    places.check_name(str(run_dir))
    with import_path.nothing_imported():
        seen = settings.load(run_dir)
    if named := own_code.modules(seen):
        _allow(run_dir, named, trust)
    return seen


def _allow(run_dir: pathlib.Path, modules: Sequence[str], trust: bool) -> None:
    config = RunFolder(run_dir).config
    code = ", ".join(
        f"{module} from {own_code.place(module) or 'nowhere on PYTHONPATH'}" for module in modules
    )
    why = next(filter(None, map(_why_not, (run_dir, config))), "")
    if why and not trust:
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
