"""Updates without a graph, which takes seconds to build: one update or two are not worth it.

That both do the same is a test of each learner.
"""

import contextlib
from collections.abc import Iterator

import tensorflow as tf


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Runs the contents of each `tf.function` as Python runs them."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
