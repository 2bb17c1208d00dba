"""What every test needs before TensorFlow is imported, and one seed for what a test draws."""

import os
import random
import signal
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from absl import flags

from tests.commands import Commands

# TensorFlow reports CPU features and absent GPUs on stderr, which buries a failure's own output.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Launchpad asks flags that a command would have parsed.
flags.FLAGS.mark_as_parsed()

# Under nohup this signal is ignored, by what tests start too, and some send it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    """Begins each test at the same random state, whatever ran before it.

    Without it, a network built by a test has other weights in every run, and once in some hundred
    runs all of a small layer's units are switched off.
    """
    random.seed(0)
    np.random.seed(0)
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.random.set_seed(0)


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    """Runs commands of the tree as a user gives them."""
    with Commands() as found:
        yield found
