"""How a run came about: launches.jsonl in its folder has a line for its start and each resume."""

import dataclasses
import datetime
import json
import pathlib
import shlex
from collections.abc import Sequence

from launch import whole_files

FILE = "launches.jsonl"


@dataclasses.dataclass(frozen=True)
class Launch:
    """One call of `launch.train`.

    Attributes:
      time: UTC, as ISO 8601 writes it.
      command: what was typed.
      actor_steps: agent steps of the run until then, as its checkpoint counts them.
      walltime: seconds that the run had lasted then.
    """

    time: str
    command: str
    actor_steps: int
    walltime: float


def record(
    run_dir: pathlib.Path, arguments: Sequence[str], *, actor_steps: int, walltime: float
) -> None:
    """Adds a launch that begins now.

    Args:
      run_dir: the run folder.
      arguments: of the command line, without the program's name.
      actor_steps: that the run goes on from; 0 for a new one.
      walltime: likewise, in seconds.
    """
    launch = Launch(
        time=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        command=shlex.join(["python", "-m", "launch.train", *arguments]),
        actor_steps=actor_steps,
        walltime=walltime,
    )
    path = run_dir / FILE
    before = path.read_text() if path.exists() else ""
    whole_files.write(path, before + json.dumps(dataclasses.asdict(launch)) + "\n")


def read(run_dir: pathlib.Path) -> list[Launch]:
    """Every launch of a run, the first one first; none of a run older than the file."""
    path = run_dir / FILE
    lines = path.read_text().splitlines() if path.exists() else []
    return [Launch(**json.loads(line)) for line in lines]
