"""A network for one run: its servers are out of reach of other users and other machines.

Reverb listens on every address of a machine and asks nobody who they are; Courier's calls show the
run's secret. Linux lets a process leave the machine's network for one of its own, in which there is
nothing but loopback, and which its forks share.
"""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct

import psutil

_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP


def enter() -> None:
    """Gives this process, which must have no second thread, a network of its own.

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
        _, flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _GET_FLAGS, _request(0)))
        fcntl.ioctl(any_socket, _SET_FLAGS, _request(flags | _UP))


def why_not() -> str:
    """Why `enter` would fail, in a few words; empty where it would not. Tried by a fork."""
    read, write = os.pipe()
    if not (pid := os.fork()):
        code = 1
        try:
            enter()
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
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(what):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _request(flags: int) -> bytes:
    """A `struct ifreq` of loopback."""
    return struct.pack("16sh14x", b"lo", flags)
