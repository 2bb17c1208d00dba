"""Updates without a graph: it takes seconds to build, which one update is not worth."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """What a `tf.function` holds is run as Python runs it."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
