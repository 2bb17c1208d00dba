"""Courier on gRPC: a node's methods are called from other processes, with plain data and arrays.

Launchpad, and Acme by it, import `courier`. Launchpad's own is compiled against TensorFlow 2.12,
unpickles what it is sent and asks nobody who they are. This one has the names that they import, and
lies in its place: what it replaces is among Launchpad's files. It knows nothing of TensorFlow.
Whoever calls must know the run's secret.
"""

import sys
import types
from typing import Any

# As a module of its own it would give way to Launchpad's compiled one.
_handlers: Any = types.ModuleType("courier.handlers.python")
_handlers.pybind = types.SimpleNamespace(BuildPyCallHandler=lambda function: function)
sys.modules[_handlers.__name__] = _handlers


def __getattr__(name: str) -> Any:
    """`Client` and `Server`, imported when they are read: gRPC takes a tenth of a second."""
    if name == "Client":
        from courier.client import Client

        return Client
    if name == "Server":
        from courier.server import Server

        return Server
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
