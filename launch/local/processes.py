"""Forks of the launching process, what they start, and what the system does to them.

A helper of somebody's environment may be in a session of its own, and whoever started it may be
gone. So who answers for them all has the kernel hand them over: Linux makes it the parent of all
that its children leave behind.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import re
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

import psutil

_ENDING = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM}
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
_LIBC = ctypes.CDLL(None, use_errno=True)
_KILL_SECONDS = 5.0  # from a SIGKILL to the end of a process, whatever holds it
_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET
_SET_FLAGS, _UP = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP
_ROOT = pathlib.Path("/")
_held = threading.local()


def fork() -> int:
    """Forks, as `os.fork`, with nothing printed twice."""
    with contextlib.suppress(OSError):  # nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
    return os.fork()


def leave(code: int) -> NoReturn:
    """Ends a fork: what its parent is to do at exit, it does not."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def fork_afresh() -> None:
    """Has forks of this process, and theirs, hear signals as a new process does.

    What was ignored still is, but for signals that end a process: a shell's background job ignores
    SIGINT, and a helper that somebody ends by it and waits for would not end. A signal meant for a
    fork that has yet to begin waits until it has: Python drops what comes for the handler that the
    fork had from here.
    """
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_release_signals, after_in_child=_hear_afresh
    )


def _hold_signals() -> None:
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _hear_afresh() -> None:
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if callable(handler) or (number in _ENDING and handler == signal.SIG_IGN):
            fresh = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, fresh)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def hear_the_end(stop: threading.Event) -> None:
    """Has an event set by the signals by which a user asks for the end, from here on.

    A closed terminal's is none where it is ignored, as by nohup.
    """
    asking = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        asking.add(signal.SIGHUP)
    for number in asking:
        signal.signal(number, lambda *_: stop.set())


def end_with_parent(by: signal.Signals = signal.SIGTERM) -> None:
    """Asks the kernel for a signal when the thread that started this process is gone."""
    _LIBC.prctl(_DEATH_SIGNAL, by)


def adopt(adopts: bool = True) -> None:
    """Makes this process the parent of what its children leave behind, or no longer."""
    _LIBC.prctl(_SUBREAPER, int(adopts), 0, 0, 0)


def kill_children(is_kept: Callable[[psutil.Process], bool] = lambda child: False) -> None:
    """Kills this process's children but for some, with all that they have started."""
    seen = set[int]()
    while left := [child for child in psutil.Process().children() if child.pid not in seen]:
        seen.update(child.pid for child in left)
        killed = [child for child in left if not is_kept(child)]
        for child in killed:
            with contextlib.suppress(psutil.NoSuchProcess):
                for each in (*child.children(recursive=True), child):
                    with contextlib.suppress(psutil.Error):
                        each.kill()
        psutil.wait_procs(killed, _KILL_SECONDS)  # what they leave behind is this process's then


@contextlib.contextmanager
def ended_with() -> Iterator[None]:
    """Whatever is started within ends with it at the latest."""
    before = {child.pid for child in psutil.Process().children()}
    adopt()
    try:
        yield
    finally:
        kill_children(lambda child: child.pid in before)
        adopt(False)


def out_of_memory_kills() -> int:
    """How often the kernel has ended a process for want of memory.

    Of this process's control group, containers' own; of the machine, whatever else is done on it,
    where no group counts; else 0.
    """
    groups, paths = _ROOT / "sys/fs/cgroup", dict[str, str]()
    with contextlib.suppress(OSError):
        for line in (_ROOT / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            paths[controllers] = path.lstrip("/")
    for file in (
        groups / paths.get("", "") / "memory.events",  # version 2
        groups / "memory.events",  # a container may be told its group's name on the host
        groups / "memory" / paths.get("memory", "") / "memory.oom_control",  # version 1
        groups / "memory" / "memory.oom_control",
        _ROOT / "proc/vmstat",
    ):
        with contextlib.suppress(OSError):
            if found := re.search(r"^oom_kill (\d+)$", file.read_text(), re.MULTILINE):
                return int(found[1])
    return 0


def enter_private_network() -> None:
    """Gives this process, which has no second thread, and its forks a network of their own.

    Reverb listens on every address of a machine and asks nobody who they are. In a network of its
    own, in which there is nothing but loopback, no other user or machine reaches it.

    Raises:
      OSError: the system does not allow it. What this process can do now is not known.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        if user:
            raise PermissionError
        _unshare(_NEW_NETWORK)  # with other users' names around, root is what it was
    except PermissionError:
        _unshare(_NEW_USERS | _NEW_NETWORK)
        own = pathlib.Path("/proc/self")
        (own / "setgroups").write_text("deny")  # or no group can be mapped
        (own / "uid_map").write_text(f"{user} {user} 1")
        (own / "gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))  # a `struct ifreq`


def why_no_private_network() -> str:
    """Why entering one would fail, in a few words; empty where it would not. Tried by a fork."""
    read, write = os.pipe()
    if not (pid := os.fork()):
        code = 1
        try:
            enter_private_network()
            code = 0
        except OSError as error:
            os.write(write, (error.strerror or str(error)).encode())
        finally:
            os._exit(code)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return said or ("it failed" if status else "")


def reached_by() -> str:
    """Who reaches what listens on every address of this machine."""
    addresses = [
        address.address.partition("%")[0]
        for each in psutil.net_if_addrs().values()
        for address in each
        if address.family in (socket.AF_INET, socket.AF_INET6)
    ]
    outside = [a for a in addresses if not a.startswith(("127.", "fe80:")) and a != "::1"]
    users = "every user of this machine"
    return f"{users}, and whoever reaches {' or '.join(outside)}" if outside else users


def _unshare(what: int) -> None:
    if _LIBC.unshare(what):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
