"""One of several learners of an agent, on some of the machine's cores, in a process of its own."""

import os
from collections.abc import Callable

import tensorflow as tf

from agents.peers import ALONE, Peers, Together
from benchmarks import batches, subject
from benchmarks.peers import protocol


def make_step(settings: protocol.Settings) -> Callable[[], object]:
    """The update, always of the same batch."""
    os.sched_setaffinity(0, settings["cores"])  # TensorFlow has as many threads
    peers: Peers = ALONE
    if settings["addresses"]:
        peers = Together(settings["addresses"], settings["rank"])
    measured = subject.make(settings["agent"], settings["preset"], settings["overrides"])
    update = measured.agent.make_update(measured.spec, peers)
    batch = batches.synthetic(measured)
    return lambda: update(batch)[1]["loss"].numpy()


if __name__ == "__main__":
    protocol.serve(make_step, lambda: {"tensorflow": tf.__version__})
