"""Whether a folder can be a run's: by its name, by what stands where a launch writes, by links.

What a link leads to is somebody's own, and would be written or removed.
"""

import os
import pathlib

from run_folder.layout import RunFolder
from run_folder.texts import SettingsError

_OF_PATTERNS = "*?[\\"  # where TensorFlow reads a checkpoint's path as a pattern, it finds none


def check_name(run_dir: str) -> None:
    """Raises SettingsError for a path in which checkpoints could be written, but not read."""
    if odd := [character for character in _OF_PATTERNS if character in run_dir]:
        raise SettingsError(
            f"TensorFlow takes {' and '.join(odd)} in the path of a checkpoint for a pattern, and "
            f"would not find it again: name --run_dir={run_dir} without."
        )


def check(folder: RunFolder) -> None:
    """Raises SettingsError for a file in the place of a folder, or a folder in that of a file."""
    for path in (folder.logs, folder.checkpoints, folder.nodes):
        if path.exists() and not path.is_dir():
            raise SettingsError(f"{path} must be a folder, and is a file: move it away.")
    for path in (folder.config, folder.launches, *folder.logs.glob("*.csv"), *folder.events()):
        if path.is_dir():
            raise SettingsError(f"{path} must be a file, and is a folder: move it away.")


def refuse_links(*paths: pathlib.Path) -> None:
    """Raises SettingsError where one of the paths that are to be written is a link."""
    for path in paths:
        if path.is_symlink():
            raise SettingsError(
                f"{path} is a link to {os.readlink(path)}, where nothing may be overwritten or "
                "removed: put a folder or a file of its own there. --run_dir itself may be a link."
            )


def refuse_links_in(folder: RunFolder) -> None:
    """Raises SettingsError for a run folder with a link in the place of what a run writes."""
    refuse_links(folder.lock, folder.config, folder.launches, *folder.events())
    for inside in (folder.logs, folder.checkpoints, folder.nodes):
        refuse_links(inside)
        refuse_links(*inside.rglob("*"))
