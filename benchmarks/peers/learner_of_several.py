"""One of several learners of an agent, on some of the machine's cores, in a process of its own."""

import os
from collections.abc import Callable

import tensorflow as tf

from agents.several_learners import ALONE, Learners, Together, among
from benchmarks import batches, subject
from benchmarks.peers import protocol


def make_step(settings: protocol.Settings) -> Callable[[], object]:
    """The update, always of the same batch."""
    os.sched_setaffinity(0, settings["cores"])  # TensorFlow has as many threads
    learners: Learners = ALONE
    if settings["addresses"]:
        learners = Together(settings["addresses"], settings["rank"])
    measured = subject.make(settings["agent"], settings["preset"], settings["overrides"])
    update = measured.agent.make_update(measured.spec)
    batch = batches.synthetic(measured)

    def step() -> object:
        with among(learners):
            return update(batch)[1]["loss"].numpy()

    return step


if __name__ == "__main__":
    protocol.serve(make_step, lambda: {"tensorflow": tf.__version__})
