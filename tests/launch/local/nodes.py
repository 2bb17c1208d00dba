"""Programs of nodes that do little, for the fork server to start, and functions for it to call."""

import contextlib
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

import launchpad as lp
import numpy as np
import psutil
import tensorflow as tf

from environments.copies.dead_simulators import CannotPlayError
from launch.graph import process
from launch.graph.servers import ServerNode
from run_folder.settings import SettingsError
from tests.patience import wait_for


class Adder:
    """A server that adds by TensorFlow."""

    def __init__(self) -> None:
        process.stay_busy()

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
                process.beat()
                while not process.wait_for_stop(0.5):
                    process.beat()
                    if self._then == "stop":
                        os.kill(os.getpid(), signal.SIGSTOP)
            case "raise":
                raise RuntimeError("as it was told")
            case "helpers":
                codes = str(ended_helpers()).replace(" ", "")
                print("helpers", codes, *start_helpers())
                threading.Event().wait()
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


class Seeing:
    """Prints which GPU it sees."""

    def run(self) -> None:
        print("sees", gpu())


def make_actors(number: int) -> lp.Program:
    """So many nodes `actor/<index>`."""
    program = lp.Program("actors")
    with program.group("actor"):
        for _ in range(number):
            program.add_node(lp.PyClassNode(Seeing))
    return program


def gpu() -> str:
    """The GPU that this process sees, `-1` for none."""
    return os.environ["CUDA_VISIBLE_DEVICES"]


def broken_program() -> lp.Program:
    raise ValueError("no program")


def add(x: float, y: float) -> float:
    """Their sum, by TensorFlow."""
    return float(tf.constant(x) + y)


def refuse(sentence: str) -> None:
    raise SettingsError(sentence)


class UnsentError(Exception):
    """An error that no other process can be told."""

    def __reduce__(self) -> Any:
        raise TypeError("it stays here")


def raise_unsent() -> None:
    raise UnsentError


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    os._exit(0)


def stand_still(file: pathlib.Path) -> None:
    file.write_text(str(os.getpid()))
    threading.Event().wait()


def ended_helpers() -> list[int]:
    """The exit codes of helpers, each ended by a signal and waited for: programs and a fork."""
    codes = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        helper = subprocess.Popen(["sleep", "600"])
        helper.send_signal(number)
        codes.append(helper.wait())
    fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    fork.start()
    fork.terminate()
    fork.join()
    return [*codes, fork.exitcode or 0]


def start_helpers() -> list[int]:
    """The ids of two helpers that nobody ends: in a session of its own, and a helper's helper."""
    first = subprocess.Popen(["sleep", "600"], start_new_session=True)
    script = "setsid sleep 600 >/dev/null & echo $!"
    return [first.pid, int(subprocess.check_output(["sh", "-c", script]))]


def wait_until_gone(pids: Iterable[int | str]) -> None:
    """Waits for the end of processes."""

    def left() -> list[int | str]:
        return [pid for pid in pids if psutil.pid_exists(int(pid))]

    wait_for(lambda: not left(), left)


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
