"""Reverb in a process whose terminal is a user's."""

import contextlib
import ctypes

_BADBIT = 1  # of std::ios_base::iostate
_VIRTUAL_BASE = -3  # the entry of a stream's virtual table that says where its std::ios is
_CLEAR = "_ZNSt9basic_iosIcSt11char_traitsIcEE5clearESt12_Ios_Iostate"


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
