"""How far a run is: what its coordinator writes every second."""

import contextlib
import pathlib
from typing import Any

from run_folder import texts
from run_folder.layout import RunFolder


def read(run_dir: pathlib.Path) -> dict[str, Any] | None:
    """The coordinator's newest progress; None before the first, and when it cannot be read now."""
    with contextlib.suppress(OSError, ValueError):  # half of it, or somebody's edit
        state = texts.read_json(RunFolder(run_dir).progress)
        return state if isinstance(state, dict) else None
    return None


def ended_in_order(run_dir: pathlib.Path) -> bool:
    """Whether the run's last launch ended with everything saved that it had logged."""
    return (read(run_dir) or {}).get("state") == "finished"
