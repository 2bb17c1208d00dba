"""Programs of nodes that do little, for the fork server to start, and functions for it to call."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

import launchpad as lp
import numpy as np
import tensorflow as tf

from environments.losses import CannotPlayError
from launch.graph import heartbeats, process
from launch.graph.servers import ServerNode
from run_folder.settings import SettingsError
from tests.patience import wait_for


class Adder:
    """A server that adds by TensorFlow."""

    def __init__(self) -> None:
        heartbeats.stay_busy()

    def add(self, x: float) -> float:
        return float(tf.constant(x) + 1.0)


class Asking:
    """Asks an adder, prints what it said, then ends with a code; or waits."""

    def __init__(self, adder: Any, then: str) -> None:
        self._adder, self._then = adder, then

    def run(self) -> None:
        drawn = np.random.randint(2**31)
        print("sum", self._adder.add(1.0), "pid", os.getpid(), "drew", drawn)
        match self._then:
            case "wait":
                while not process.wait_for_stop(0.1):
                    pass
                print("was asked to end")
            case "beat" | "stop":
                heartbeats.beat()
                while not process.wait_for_stop(0.5):
                    heartbeats.beat()
                    if self._then == "stop":
                        os.kill(os.getpid(), signal.SIGSTOP)
            case "raise":
                raise RuntimeError("as it was told")
            case "unplayable":
                raise CannotPlayError("as it was told")
            case "deaf":
                with subprocess.Popen(
                    [sys.executable, "-c", "import time; time.sleep(60)"]
                ) as child:
                    print("child", child.pid)
                    threading.Event().wait()


def make_program(*each: str) -> lp.Program:
    """A server, `adder/0`, and for each word a node, `asking/<index>`, that does as it says."""
    program = lp.Program("test")
    with program.group("adder"):
        adder = program.add_node(ServerNode("The adder", Adder))
    with program.group("asking"):
        for then in each:
            program.add_node(lp.PyClassNode(Asking, adder, then))
    return program


def broken_program() -> lp.Program:
    raise ValueError("no program")


def add(x: float, y: float) -> float:
    """Their sum, by TensorFlow."""
    return float(tf.constant(x) + y)


def refuse(sentence: str) -> None:
    raise SettingsError(sentence)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def listening() -> set[int]:
    """The ports on which somebody listens in this process's network."""
    tables = [pathlib.Path(f"/proc/self/net/{name}") for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"}


def reached(ports: set[int]) -> int:
    """How many of some ports of this machine take a connection."""
    found = 0
    for port in ports:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 5):
            found += 1
    return found


def printed(folder: pathlib.Path, label: str, word: str) -> list[str]:
    """The words after one that a node prints, once it has."""

    def read() -> list[str]:
        return (folder / label).read_text().split() if (folder / label).exists() else []

    def find() -> list[str]:
        words = read()
        return words[words.index(word) + 1 :] if word in words[:-1] else []

    return wait_for(find, read)
