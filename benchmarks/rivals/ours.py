"""Updates of this project, always of the same batch, in a process of their own."""

import os
from collections.abc import Callable

from agents.contract import Update
from agents.peers import ALONE, Peers, Together
from benchmarks import subject
from benchmarks.rivals import protocol
from benchmarks.subject import Subject
from environments.dm import make_environment_spec
from run_folder import catalogue


def impala(settings: protocol.Settings) -> Callable[[], object]:
    """IMPALA with STAC's network: its update with nothing self-tuned."""
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings["config"].items()
    }
    entry, spec = catalogue.entry("stac"), make_environment_spec(subject.GAME)
    config = type(entry.config)(**values | {"self_tuned": ()})
    agent = entry.make(config, "stac")
    measured = Subject("paper", entry, agent, spec, num_tasks=1)
    return _step(measured, agent.make_update(spec))


def learner(settings: protocol.Settings) -> Callable[[], object]:
    """One of several learners of an agent, on some of the machine's cores."""
    os.sched_setaffinity(0, settings["cores"])  # TensorFlow has as many threads
    peers: Peers = ALONE
    if settings["addresses"]:
        peers = Together(settings["addresses"], settings["rank"])
    measured = subject.make(settings["agent"], settings["preset"], settings["overrides"])
    return _step(measured, measured.agent.make_update(measured.spec, peers))


def _step(measured: Subject, update: Update) -> Callable[[], object]:
    batch = subject.synthetic_batch(measured)
    return lambda: update(batch)[1]["loss"].numpy()


if __name__ == "__main__":
    protocol.serve({"impala": impala, "learner": learner}, ["dm-sonnet"])
