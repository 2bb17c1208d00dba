"""A Reverb server within a user's process: closed to others, and silent.

Reverb listens on every address of a machine, without authentication. It cannot be told another
address, and a process with threads cannot move to a network of its own. But a process talks to its
own server over connections made at first, one for each of Reverb's two copies of gRPC, which last
as long as both of their ends. So after them the port can be closed.
"""

import contextlib
import ctypes
import socket
import struct
import warnings

import reverb

from replay import own_sockets

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 6, 0, 0, 0)  # struct sock_filter: return, with nothing let through

_BADBIT = 1  # of std::ios_base::iostate
_VIRTUAL_BASE = -3  # the entry of a stream's virtual table that says where its std::ios is
_CLEAR = "_ZNSt9basic_iosIcSt11char_traitsIcEE5clearESt12_Ios_Iostate"


def shut(server: reverb.Server) -> None:
    """Refuses new connections to a server of this process; those that exist stay.

    The process itself has to be connected by then: its client, by a first call, and its datasets'
    iterators. Warns where the system does not allow it.
    """
    program = ctypes.create_string_buffer(_DROP_ALL)
    all_of_it = struct.pack("HL", 1, ctypes.addressof(program))  # struct sock_fprog
    for listener in own_sockets.tcp():
        if listener.getsockname()[1] == server.port and _listens(listener):
            try:
                listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, all_of_it)
            except OSError as error:
                warnings.warn(
                    f"Whoever reaches port {server.port} of this machine reaches this replay: "
                    f"{error.strerror}. See docs/security.md.",
                    stacklevel=2,
                )


def _listens(connection: socket.socket) -> bool:
    return bool(connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def silence() -> None:
    """Silences the messages of Reverb's C++, but for errors.

    Reverb has no setting for it. It writes messages to std::clog and errors to std::cerr, so only
    the former stream is put into the state in which it takes nothing. With another C++ library the
    messages stay.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        library = ctypes.CDLL("libstdc++.so.6")
        clog = ctypes.c_void_p.in_dll(library, "_ZSt4clog")
        table = ctypes.cast(clog, ctypes.POINTER(ctypes.c_ssize_t))
        state = ctypes.addressof(clog) + table[_VIRTUAL_BASE]
        library[_CLEAR](ctypes.c_void_p(state), _BADBIT)
