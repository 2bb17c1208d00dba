"""A replay server in a process of its own, which a test can kill and start again on its port."""

import pathlib
import subprocess
import sys

import reverb

from replay.layout import Layout
from replay.structures import TableSpec
from replay.tables import block_layout, make_tables
from tests.replay.streams import CORE_STATE, environment_spec

TABLE = TableSpec(
    "r2d2",
    "prioritized",
    Layout(burn_in=2, length=4, period=2),
    max_size=200,
    min_size=10,
    samples_per_insert=4.0,
)
BLOCKS = block_layout([TABLE])


class ShardProcess:
    """Starts it.

    Args:
      port: of the server.
      staging: folder in which it writes checkpoints.
      replay: a checkpoint that it begins with; none begins empty.
    """

    def __init__(self, port: int, staging: pathlib.Path, replay: str = "") -> None:
        command = [sys.executable, "-m", "tests.replay.shard_process", str(port), str(staging)]
        self._process = subprocess.Popen([*command, replay])

    def kill(self) -> None:
        """Ends it by SIGKILL."""
        self._process.kill()
        self._process.wait()


def _serve(port: str, staging: str, replay: str) -> None:
    tables = make_tables([TABLE], environment_spec(), {TABLE.name: CORE_STATE}, BLOCKS)
    checkpointer = reverb.checkpointers.DefaultCheckpointer(staging, "", replay or None)
    reverb.Server(tables, port=int(port), checkpointer=checkpointer).wait()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
