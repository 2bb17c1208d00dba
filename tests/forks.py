"""Forks of a test's own process."""

import contextlib
import gc
import os
import traceback
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def garbage_is_kept() -> Iterator[None]:
    """Forks made within collect only what they drop themselves.

    With what this process has dropped they would end TensorFlow's datasets, and wait for ever for
    those datasets' threads, which a fork does not have.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def fork(do: Callable[[], object]) -> int:
    """Calls a function in a fork, which ends when it returns; the fork's process id.

    Its exit code is 0, or 1 where the function raised.
    """
    with garbage_is_kept():
        if pid := os.fork():
            return pid
        code = 1
        try:
            do()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
