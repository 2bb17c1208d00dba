"""The run that a command reads, as it was recorded, and the code that its config.json names."""

import contextlib
import pathlib

from absl import flags

from environments import import_path
from launch import command_line, trial, trust
from run_folder import layout, settings
from run_folder.settings import Settings, SettingsError

_TRUST = flags.DEFINE_boolean("trust", False, "Import the code that a run names, whoever wrote it.")


def run() -> Settings:
    """The run that the command line names; what that names can be imported from then on.

    Raises:
      SettingsError: there is none here, or it names code and is another user's.
    """
    settings.require({"run_dir": command_line.RUN_DIR.value}, "run_dir")
    named = command_line.RUN_DIR.value or ""
    check_here(named)
    run_dir = pathlib.Path(named)
    seen = trust.load(run_dir, bool(_TRUST.value))
    trial.try_each(seen.env, seen.hang_seconds)  # before anything else makes it
    return settings.load(run_dir)


def check_here(run_dir: str) -> None:
    """Raises SettingsError for a folder in a bucket, of which commands read a copy."""
    if layout.is_bucket(run_dir):
        raise SettingsError(
            f"--run_dir={run_dir} is in a bucket, and this command reads a copy on this machine: "
            f"`gcloud storage cp --recursive {run_dir} runs/` makes one."
        )


def trusting() -> contextlib.AbstractContextManager[None]:
    """Where a command that needs no code of a run's imports it only if it is told to."""
    return contextlib.nullcontext() if _TRUST.value else import_path.nothing_imported()
