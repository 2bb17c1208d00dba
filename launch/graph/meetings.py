"""How the learners of one agent find each other: each comes to the coordinator with an address.

Addresses are of one meeting. A learner that is started again has a new one, and then there is a new
meeting, to which all have to come anew: what was agreed on with the one that is gone is void.
"""

import socket
import threading
from typing import Any

import portpicker
import tensorflow as tf

from agents.several_learners import ALONE, Learners, Together
from launch.graph import heartbeats, process
from launch.graph.servers import StoppedError

ASK_SECONDS = 0.2  # between two looks whether all have come


class Meetings:
    """Of each agent's learners, the newest. The coordinator's part; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._addresses: dict[str, dict[int, str]] = {}  # by agent, of those who have come

    def come(self, agent: str, rank: int, size: int, address: str) -> list[str]:
        """Takes one learner's address; returns all of them, in the order of the ranks.

        Args:
          agent: whose learner it is.
          rank: of that learner.
          size: how many learners the agent has.
          address: `host:port`, where the others can reach it.

        Returns:
          Nothing until all have come; they ask again.
        """
        with self._lock:
            come = self._addresses.setdefault(agent, {})
            if len(come) == size and come[rank] != address:
                come.clear()
            come[rank] = address
            return [come[i] for i in range(size)] if len(come) == size else []


@heartbeats.while_busy()
def join(coordinator: Any, agent: str, rank: int, size: int) -> Learners:
    """An agent's learners as one of them sees them, once all are there.

    It is called before the process runs a TensorFlow op.

    Of several GPUs of one host each learner has its own.

    Args:
      coordinator: client of the coordinator.
      agent: whose learners they are.
      rank: of this one.
      size: how many there are.

    Raises:
      StoppedError: when this process is asked to end before they have come.
    """
    if size == 1:
        return ALONE
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[rank % len(gpus)], "GPU")
    own = f"{_own_host(coordinator.server_address)}:{portpicker.pick_unused_port()}"
    while not (addresses := coordinator.meet(agent, rank, size, own)):
        if process.wait_for_stop(ASK_SECONDS):
            raise StoppedError(f"Asked to end while waiting for the other learners of {agent}.")
    return Together(addresses, rank)


def _own_host(server: str) -> str:
    """This host as those know it who reach a server, `host:port`, the way that this host does."""
    host, port = server.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        return str(probe.getsockname()[0])
