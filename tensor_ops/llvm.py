"""LLVM by llvmlite, for all modules that compile.

Where it cannot be used, `features` says so once, and TensorFlow's operations stand in for the
loops.
"""

import functools
import sys
from collections.abc import Mapping
from typing import Any


class _Absent:
    """Stands for llvmlite where there is none, so that modules that use it can be imported."""

    def __getattr__(self, name: str) -> "_Absent":
        return self

    def __call__(self, *_: Any) -> "_Absent":
        return self

    def __or__(self, other: Any) -> "_Absent":  # of annotations
        return self


binding: Any
ir: Any
_why_not = ""
try:
    import llvmlite.binding
    import llvmlite.ir

    binding, ir = llvmlite.binding, llvmlite.ir
except (ImportError, OSError) as error:  # not installed, or its library cannot be loaded
    binding = ir = _Absent()
    _why_not = str(error)


@functools.cache
def features() -> Mapping[str, bool]:
    """The processor's features, in LLVM's names; empty where LLVM cannot be used."""
    try:
        if _why_not:
            raise RuntimeError(_why_not)
        found: Mapping[str, bool] = binding.get_host_cpu_features()
    except RuntimeError as error:  # LLVM does not know the processor, as under some hypervisors
        said = str(error).removesuffix(".")
        print(
            f"No loops are compiled for this processor ({said}): TensorFlow's operations stand in "
            "for them, and take longer.",
            file=sys.stderr,
        )
        return {}
    return found
