"""Whether a folder can be a run's: by its name, and by what stands where a launch writes."""

import pathlib

from run_folder.layout import RunFolder
from run_folder.settings import SettingsError

_OF_PATTERNS = "*?[\\"  # where TensorFlow reads a checkpoint's path as a pattern, it finds none


def check_name(run_dir: str) -> None:
    """Accepts the path of a run folder from which checkpoints can be read.

    Raises:
      SettingsError: they could be written, but not read.
    """
    if odd := [character for character in _OF_PATTERNS if character in run_dir]:
        raise SettingsError(
            f"TensorFlow takes {' and '.join(odd)} in the path of a checkpoint for a pattern, and "
            f"would not find it again: name --run_dir={run_dir} without."
        )


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
