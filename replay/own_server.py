"""A Reverb server within a user's process: for that alone, and silent.

Reverb listens on every address of a machine and asks nobody who they are. It cannot be told another
address, and a process with threads cannot move to a network of its own. But all that a process
wants of its server goes over connections that it made at first, one for each of Reverb's two copies
of gRPC, and they last as long as both of their ends. So then the door can be shut.
"""

import contextlib
import ctypes
import socket
import struct
import warnings

import psutil
import reverb

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 6, 0, 0, 0)  # struct sock_filter: return, with nothing let through

_BADBIT = 1  # of std::ios_base::iostate
_VIRTUAL_BASE = -3  # the entry of a stream's virtual table that says where its std::ios is
_CLEAR = "_ZNSt9basic_iosIcSt11char_traitsIcEE5clearESt12_Ios_Iostate"


def shut(server: reverb.Server) -> None:
    """Lets nobody connect to a server of this process any more; whoever is connected stays so.

    What the process itself needs is to be connected by then: a client, which its first call does,
    and the iterators of datasets. Warns where the system does not allow it.
    """
    program = ctypes.create_string_buffer(_DROP_ALL)
    all_of_it = struct.pack("HL", 1, ctypes.addressof(program))  # struct sock_fprog
    for connection in psutil.Process().net_connections("tcp"):
        if connection.status != psutil.CONN_LISTEN or connection.laddr.port != server.port:
            continue
        with socket.fromfd(connection.fd, connection.family, connection.type) as listener:
            try:
                listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, all_of_it)
            except OSError as error:
                warnings.warn(
                    f"Whoever reaches port {server.port} of this machine reaches this replay: "
                    f"{error.strerror}. See docs/security.md.",
                    stacklevel=2,
                )


def silence() -> None:
    """Lets Reverb's C++ no longer tell what it does; of errors it tells still.

    Reverb has no setting for it. It writes such lines to std::clog, and errors to std::cerr, so the
    former stream alone is put into the state in which it takes nothing. Where the C++ library is
    another one, the lines stay.
    """
    with contextlib.suppress(OSError, AttributeError, ValueError):
        library = ctypes.CDLL("libstdc++.so.6")
        clog = ctypes.c_void_p.in_dll(library, "_ZSt4clog")
        table = ctypes.cast(clog, ctypes.POINTER(ctypes.c_ssize_t))
        state = ctypes.addressof(clog) + table[_VIRTUAL_BASE]
        library[_CLEAR](ctypes.c_void_p(state), _BADBIT)
