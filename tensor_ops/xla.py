"""XLA: functions that it compiles on processors too, and its flags."""

import contextlib
import functools
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_util

_silencing = threading.RLock()  # of two threads at a time one would keep what the other has closed


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of tensors one computation: `@compiled`."""
    by_xla = tf.function(function, autograph=False, jit_compile=True)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        introduce()
        return by_xla(*args)

    return call


@functools.cache
def introduce() -> None:
    """Has XLA compile something in silence: at first it prints a banner at any log level."""
    with tf.init_scope(), tf.device("CPU"), silence():
        tf.function(tf.exp, jit_compile=True)(0.0)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Keeps this process's output, that of C++ too, from its standard error."""
    with _silencing:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)


def has_gpu() -> bool:
    """Returns whether this process sees a GPU."""
    return bool(tf.config.list_logical_devices("GPU"))


def within_xla() -> bool:
    """Returns whether the code being traced is part of a function that XLA will compile."""
    return bool(control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph()))


def xla_flags(given: str) -> str:
    """XLA's flags: the given ones, and this project's where they are not given.

    cuDNN's kernels for TensorFloat-32 want channels last, and XLA would give them floats with
    channels first, to be turned before and after. The wheel has CUDA's assembler and mathematics,
    which XLA looks for only where CUDA's own installer would put them.
    """
    flags = ["--xla_gpu_force_conv_nhwc=true"]
    with contextlib.suppress(ModuleNotFoundError):
        found = importlib.util.find_spec("nvidia.cuda_nvcc")
        if found and found.submodule_search_locations:
            flags.append(f"--xla_gpu_cuda_data_dir={found.submodule_search_locations[0]}")
    missing = [flag for flag in flags if flag.partition("=")[0] not in given]
    return " ".join([*given.split(), *missing])


# XLA reads them once, when it first compiles something.
os.environ["XLA_FLAGS"] = xla_flags(os.environ.get("XLA_FLAGS", ""))
