"""How far a run is: what its coordinator writes every second."""

import pathlib
from typing import Any

from run_folder import recorded
from run_folder.layout import RunFolder


def read(run_dir: pathlib.Path) -> dict[str, Any] | None:
    """The coordinator's newest progress; None before the first."""
    try:
        progress: dict[str, Any] = recorded.read(RunFolder(run_dir).progress)
    except FileNotFoundError:
        return None
    return progress


def ended_in_order(run_dir: pathlib.Path) -> bool:
    """Whether the run's last launch ended with everything saved that it had logged."""
    try:
        state = read(run_dir)
    except (OSError, ValueError):  # half of it, or somebody's edit
        return False
    return isinstance(state, dict) and state.get("state") == "finished"
