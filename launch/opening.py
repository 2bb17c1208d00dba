"""The run that a command reads, as it was recorded."""

import pathlib

from launch import command_line
from run_folder import settings
from run_folder.settings import Settings, SettingsError


def run() -> Settings:
    """The run that the command line names.

    Raises:
      SettingsError: there is none.
    """
    if not command_line.RUN_DIR.value:
        raise SettingsError("--run_dir must be given.")
    return settings.load(pathlib.Path(command_line.RUN_DIR.value))
