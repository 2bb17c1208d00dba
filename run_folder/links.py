"""Links in a run folder. What they lead to is somebody's own, and would be written or removed."""

import os
import pathlib
from collections.abc import Iterator

from run_folder.layout import RunFolder
from run_folder.settings import SettingsError


def refuse(*paths: pathlib.Path) -> None:
    """Refuses to write to paths of which one is a link.

    Raises:
      SettingsError: it is; nothing has been written.
    """
    for path in paths:
        if path.is_symlink():
            raise SettingsError(
                f"{path} is a link to {os.readlink(path)}, where nothing may be overwritten or "
                "removed: put a folder or a file of its own there. --run_dir itself may be a link."
            )


def refuse_in(folder: RunFolder) -> None:
    """Refuses a run folder with a link in the place of what a run writes.

    Raises:
      SettingsError: there is one; nothing has been written.
    """
    for path in _written(folder):
        refuse(path)


def _written(folder: RunFolder) -> Iterator[pathlib.Path]:
    """All that is there of what a run writes, a folder before what is in there."""
    yield from (folder.lock, folder.config, folder.launches, *folder.events())
    for inside in (folder.logs, folder.checkpoints, folder.nodes):
        yield inside
        yield from inside.rglob("*")
