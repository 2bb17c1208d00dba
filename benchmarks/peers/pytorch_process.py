"""How a process that runs PyTorch is set up: its memory, its precision, its device."""

import ctypes
import ctypes.util

import torch

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h


def prepare(keeps_memory: bool) -> str:
    """Sets the process up; returns the device.

    Where there is a GPU, float32 products may take TensorFloat-32 there, as TensorFlow's do.

    Args:
      keeps_memory: whether freed memory stays with the process, which few users know to ask for.
    """
    if keeps_memory:
        _keep_freed_memory()
    if not torch.cuda.is_available():
        return "cpu"
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True  # the quickest kernel of each, found in the first step
    return "cuda"


def versions() -> dict[str, str]:
    """Of PyTorch."""
    return {"torch": torch.__version__}


def _keep_freed_memory() -> None:
    """Freed memory stays with the process, for the next result; of glibc alone.

    PyTorch takes every intermediate result from malloc. Beyond 32 MB glibc asks the kernel for
    fresh pages each time, and clearing those was a third of an update.
    """
    library = ctypes.util.find_library("c")
    mallopt = getattr(ctypes.CDLL(library), "mallopt", None) if library else None
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
