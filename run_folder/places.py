"""Whether a run folder has folders and files in the places where a launch writes into some."""

import pathlib

from run_folder.layout import RunFolder
from run_folder.settings import SettingsError


def check(folder: RunFolder) -> None:
    """Accepts a run folder; where links are is looked at by `run_folder.links`.

    Raises:
      SettingsError: for the first thing that is of the other kind.
    """
    for path in (folder.logs, folder.checkpoints, folder.nodes):
        if path.exists() and not path.is_dir():
            raise _no(path, "a folder, and is a file")
    files = (folder.config, folder.launches, *folder.logs.glob("*.csv"), *folder.events())
    for path in files:
        if path.is_dir():
            raise _no(path, "a file, and is a folder")


def _no(path: pathlib.Path, what: str) -> SettingsError:
    return SettingsError(f"{path} must be {what}: move it away.")
