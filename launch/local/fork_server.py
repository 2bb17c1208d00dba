"""One process that has imported everything, and forks the others of a run.

Importing TensorFlow costs each new interpreter seconds and 180 MB. A fork has it at once, and
shares its memory until one of the two writes there. Threads do not survive a fork: so the server
has none, and runs no TensorFlow op, which would start some. What needs ops before a launch, such as
reading a checkpoint, is done by a child that answers and ends (`ForkServer.call`).

The standard library's fork server imports `__main__` again, flags and all, and shares nothing with
the launching process; hence this one. It lives as long as its connection to that process.
"""

import contextlib
import math
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import Pipe, connection
from typing import Any, NamedTuple, NoReturn

import launchpad as lp
import numpy as np
import psutil
from launchpad.launch import worker_manager
from tensorflow.python.eager import context

from environments.copies.dead_simulators import CannotPlayError
from launch.graph import process
from launch.graph.process import Heartbeats
from launch.graph.program import environment_of, local_nodes
from launch.local import processes, temporary_files
from run_folder.settings import SettingsError

CALL_SECONDS = 600.0  # until what is called has answered
POLL_SECONDS = 0.05  # between two looks at what has ended
FROZEN_SECONDS = 5.0  # between two looks, after which this process was stopped
HEARD_BY_THE_LAUNCHER = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
LABEL = "RECURRENT_REPLAY_NODE"  # environment variable of what a node starts
_LOOK_SECONDS = 1.0  # between two looks of a node whether the server is there


class Ended(NamedTuple):
    """A node's process is gone."""

    label: str
    code: int  # its exit code, `process.DONE` if it did what it was to; minus a signal that killed
    silence: float = 0.0  # seconds, of one that was killed because it did not go on
    starved: bool = False  # the kernel has killed for want of memory meanwhile


def how(code: int, *, starved: bool = False) -> str:
    """How a process ended, for a sentence of which it is the subject."""
    if code >= 0:
        return f"ended with code {code}" if code else "ended with code 0, by sys.exit or os._exit"
    why = ", for memory ran out: fewer actors or a smaller replay take less" if starved else ""
    return f"was killed by {signal.Signals(-code).name}{why}"


class ServerLostError(SettingsError):
    """The fork server is gone, and all nodes with it."""


class OpsWereRunError(SettingsError):
    """This process cannot be forked any more."""


class _Answer(NamedTuple):
    """To a request: what a function returned, or what it raised."""

    value: Any
    error: BaseException | None = None


class ForkServer(contextlib.AbstractContextManager["ForkServer"]):
    """The launching process's side of it. A context manager; at its end every node is killed.

    It must be made before this process runs a TensorFlow op.

    Args:
      private: whether it gets a network of its own; nothing must speak against that.
      gpus: those that actor nodes act on, in turn, as CUDA_VISIBLE_DEVICES names them; none has
        them act on processors.

    Raises:
      OpsWereRunError: one was run.
    """

    def __init__(self, *, private: bool = False, gpus: Sequence[str] = ()) -> None:
        if context.context()._initialized:
            raise OpsWereRunError(
                "A module has run a TensorFlow operation while it was imported, and no process can "
                "be forked after that: let a function do so."
            )
        self._connection, theirs = Pipe()
        self._ended: list[Ended] = []
        if not (pid := processes.fork()):
            self._connection.close()
            _serve(theirs, private, gpus)
        theirs.close()
        self.pid = pid

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        os.waitpid(self.pid, 0)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function of a module in a child of the server; returns its result.

        Raises:
          ServerLostError: nobody answers, or not in time.
          Exception: whatever the function raises.
        """
        return self._ask("call", function, *args)

    def launch(
        self,
        make_program: Callable[..., lp.Program],
        *args: Any,
        output: pathlib.Path,
        hang_seconds: float = math.inf,
    ) -> list[str]:
        """Starts all nodes of a program, which the server makes; returns their labels.

        Args:
          make_program, args: a call that makes it.
          output: folder of a file for each node, of what it prints.
          hang_seconds: a node that was not heard of for so long is killed.

        Raises:
          ServerLostError: nobody answers.
        """
        labels: list[str] = self._ask("launch", output, hang_seconds, make_program, *args)
        return labels

    def start(self, label: str) -> None:
        """Starts a node of the program again. Its process has ended."""
        self._ask("start", label)

    def signal(self, number: int, labels: Iterable[str]) -> None:
        """Sends a signal to those nodes that still run; SIGKILL reaches what they started, too."""
        self._ask("signal", number, tuple(labels))

    def ended(self, seconds: float) -> list[Ended]:
        """The nodes that have ended since it was asked last; waits so long for one.

        Raises:
          ServerLostError: nobody answers.
        """
        with _lost_server():
            while self._connection.poll(0 if self._ended else seconds):
                self._ended.append(self._connection.recv())
        found, self._ended = self._ended, []
        return found

    def _ask(self, name: str, *args: Any) -> Any:
        until = time.monotonic() + CALL_SECONDS
        with _lost_server():
            self._connection.send((name, args))
            while self._connection.poll(max(until - time.monotonic(), 0)):
                if not isinstance(answer := self._connection.recv(), Ended):
                    break
                self._ended.append(answer)
            else:
                raise ServerLostError(f"A check has not ended within {CALL_SECONDS:g} s.")
        if answer.error is not None:
            raise answer.error
        return answer.value


class _Server:
    """The server's side: the program's nodes, and its children."""

    def __init__(self, launcher: connection.Connection, gpus: Sequence[str]) -> None:
        self._launcher = launcher
        self._gpus = gpus
        self._output = pathlib.Path()
        self._nodes: dict[str, Callable[[], Any]] = {}
        self._running: dict[int, str] = {}  # labels by process id
        self._heartbeats = Heartbeats([])
        self._hang_seconds = math.inf
        self._silent: dict[str, float] = {}  # seconds, of those that were killed for them
        self._looked_at = time.monotonic()
        self._calls: set[int] = set()
        self._kills = processes.out_of_memory_kills()  # that are known

    def serve(self) -> None:
        """Answers until the launching process is gone."""
        with contextlib.suppress(EOFError, ConnectionError):  # as reads and writes tell
            while True:
                self._reap()
                self._kill_silent()
                if not self._launcher.poll(POLL_SECONDS):
                    continue
                name, args = self._launcher.recv()
                try:
                    answers = getattr(self, name)(*args)
                except Exception as error:
                    answers = _Answer(None, error)
                if answers is not None:
                    self._launcher.send(answers)
        processes.kill_children()
        temporary_files.remove()

    def call(self, function: Callable[..., Any], *args: Any) -> None:
        """The child answers itself."""
        if pid := processes.fork():
            self._calls.add(pid)
            return
        os.environ.update(environment_of("actor"))
        code = 1
        try:
            try:
                self._launcher.send(_Answer(function(*args)))
            except BaseException as error:
                self._launcher.send(_Answer(None, error))
            code = process.DONE
        except BaseException:  # it cannot be sent, and a child must not serve in its server's place
            traceback.print_exc()
        processes.leave(code)

    def launch(
        self,
        output: pathlib.Path,
        hang_seconds: float,
        make_program: Callable[..., lp.Program],
        *args: Any,
    ) -> _Answer:
        self._nodes, self._output = local_nodes(make_program(*args)), output
        self._heartbeats, self._hang_seconds = Heartbeats(list(self._nodes)), hang_seconds
        for label in self._nodes:
            file = output / label
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            self.start(label)
        return _Answer(list(self._nodes))

    def start(self, label: str) -> _Answer:
        self._heartbeats.begin(label)
        server = os.getpid()
        if not (pid := processes.fork()):
            self._launcher.close()
            self._heartbeats.use(label)
            os.environ.update(self._environment_of(label), **{LABEL: label})
            _run_node(self._nodes[label], self._output / label, server)
        self._running[pid] = label
        return _Answer(None)

    def _environment_of(self, label: str) -> dict[str, str]:
        group, _, index = label.partition("/")
        if group != "actor" or not self._gpus:
            return environment_of(group)
        return environment_of(group, self._gpus[int(index) % len(self._gpus)])

    def signal(self, number: int, labels: Iterable[str]) -> _Answer:
        wanted = set(labels)
        for pid in [pid for pid, label in self._running.items() if label in wanted]:
            os.kill(pid, number)  # it is there, if only to be reaped
        return _Answer(None)

    def _kill_silent(self) -> None:
        since, self._looked_at = time.monotonic() - self._looked_at, time.monotonic()
        if since > FROZEN_SECONDS:  # so were the nodes, as by `docker pause`, and go on now
            for label in self._running.values():
                self._heartbeats.begin(label)
        for label in list(self._running.values()):
            silence = self._heartbeats.silence(label)
            if silence > self._hang_seconds and label not in self._silent:
                self._silent[label] = silence
                self.signal(signal.SIGKILL, [label])

    def _reap(self) -> None:
        """Takes leave of every child that has ended, also of those that others left behind."""
        with contextlib.suppress(ChildProcessError):  # there is none
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._take_leave(*ended)

    def _take_leave(self, pid: int, status: int) -> None:
        code, starved = os.waitstatus_to_exitcode(status), False
        if code == -signal.SIGKILL:
            before, self._kills = self._kills, processes.out_of_memory_kills()
            starved = self._kills > before
        if label := self._running.pop(pid, None):
            self._launcher.send(Ended(label, code, self._silent.pop(label, 0.0), starved))
        elif pid in self._calls:
            self._calls.remove(pid)
            if code != process.DONE:  # else it has answered
                lost = ServerLostError(f"A check {how(code, starved=starved)}.")
                self._launcher.send(_Answer(None, lost))
        else:
            return
        processes.kill_children(self._is_needed)

    def _is_needed(self, child: psutil.Process) -> bool:
        """Whether a child is a node, a check, or what a node that goes on has left to itself."""
        if child.pid in self._running or child.pid in self._calls:
            return True
        with contextlib.suppress(psutil.Error):  # it has ended
            return child.environ().get(LABEL) in self._running.values()
        return False


def _serve(launcher: connection.Connection, private: bool, gpus: Sequence[str]) -> NoReturn:
    """Is the server's process."""
    code = 1
    try:
        # A terminal sends Ctrl-C to a whole group of processes, and `timeout` a SIGTERM: but the
        # launching process alone decides how a run ends.
        os.setpgrp()
        if private:
            processes.enter_private_network()
        signal.pthread_sigmask(signal.SIG_BLOCK, HEARD_BY_THE_LAUNCHER)
        processes.fork_afresh()
        processes.adopt()
        _Server(launcher, gpus).serve()
        code = 0
    except BaseException:
        traceback.print_exc()
    processes.leave(code)


@contextlib.contextmanager
def _lost_server() -> Iterator[None]:
    try:
        yield
    except (EOFError, ConnectionError):
        raise ServerLostError("The process that forks the nodes is gone.") from None


def _run_node(node: Callable[[], Any], output: pathlib.Path, server: int) -> NoReturn:
    """Is a node's process, which prints into a file and ends with its server, by process id."""
    threading.Thread(target=_end_with, args=(server,), daemon=True).start()
    _print_into(output)
    random.seed()  # or all forks would draw the same
    np.random.seed()
    manager = worker_manager.WorkerManager(register_in_thread=True)
    for number in (signal.SIGINT, signal.SIGHUP):  # not ignored: what it starts would ignore them
        signal.signal(number, lambda *_: None)
    try:
        node()
        # Somebody's SIGTERM is a death that the supervisor mends; after its own it does not look.
        code = process.TERMINATED if manager.stop_event().is_set() else process.DONE
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = process.CANNOT_PLAY if isinstance(error, CannotPlayError) else 1
    processes.leave(code)


def _end_with(server: int) -> None:
    """Ends this process soon after its server, without a clean-up that nobody would wait for."""
    while os.getppid() == server:
        time.sleep(_LOOK_SECONDS)
    processes.kill_children()
    temporary_files.remove()
    os._exit(1)


def _print_into(file: pathlib.Path) -> None:
    """Has standard output and error of this process go into a file, line by line."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
    for number in (1, 2):
        os.dup2(descriptor, number)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
