"""How a run came about: launches.jsonl in its folder has a line for its start and each resume."""

import dataclasses
import datetime
import json
import pathlib
import shlex
import socket
from collections.abc import Sequence

import recurrent_replay
from run_folder import disk, machine, texts
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError


@dataclasses.dataclass(frozen=True)
class Launch:
    """One call of `launch.train`.

    Attributes:
      time: UTC, as ISO 8601 writes it.
      command: what was typed.
      actor_steps: of the run until then, as its checkpoint counts them.
      walltime: seconds that the run had lasted then.
      version: of this project; empty, as the others, of a launch older than the field.
      commit: of its work tree, if it ran in one.
      host: whose name it is.
      processors: of that.
    """

    time: str
    command: str
    actor_steps: int
    walltime: float
    version: str = ""
    commit: str = ""
    host: str = ""
    processors: str = ""


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
        command=f"{recurrent_replay.command('train')} {shlex.join(arguments)}",
        actor_steps=actor_steps,
        walltime=walltime,
        version=recurrent_replay.version(),
        commit=machine.commit(),
        host=socket.gethostname(),
        processors=machine.processors(),
    )
    path = RunFolder(run_dir).launches
    before = _whole(path.read_bytes()) if path.exists() else b""
    newline = b"\n" if before and not before.endswith(b"\n") else b""
    line = json.dumps(dataclasses.asdict(launch)) + "\n"
    disk.write(path, before + newline + line.encode())


def _whole(data: bytes) -> bytes:
    """Without half a line at the end, which a crash leaves."""
    head, newline, last = data.rpartition(b"\n")
    try:
        texts.parse_json(last.decode())
    except ValueError:
        return head + newline
    return data


def read(run_dir: pathlib.Path) -> list[Launch]:
    """Every launch of a run, the first one first; none of a run older than the file.

    Half a line at the end, which a crash leaves, is passed over.

    Raises:
      SettingsError: the file is damaged otherwise.
    """
    path = RunFolder(run_dir).launches
    try:
        lines = _whole(path.read_bytes()).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    return [_launch(path, number, line) for number, line in enumerate(lines, 1)]


def _launch(path: pathlib.Path, number: int, line: bytes) -> Launch:
    try:
        return Launch(**texts.fields_of(Launch, texts.parse_json(line.decode())))
    except ValueError as error:
        said = str(error).removesuffix(".")
        raise SettingsError(f"{path} cannot be read: of line {number}, {said}.") from None
