"""Updates of this project, always of the same batch, in a process of their own."""

import os
from collections.abc import Callable

from agents.contract import Update
from agents.several_learners import ALONE, Learners, Together, among
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
    return _step(measured, agent.make_update(spec), ALONE)


def learner(settings: protocol.Settings) -> Callable[[], object]:
    """One of several learners of an agent, on some of the machine's cores."""
    os.sched_setaffinity(0, settings["cores"])  # TensorFlow has as many threads
    learners: Learners = ALONE
    if settings["addresses"]:
        learners = Together(settings["addresses"], settings["rank"])
    measured = subject.make(settings["agent"], settings["preset"], settings["overrides"])
    return _step(measured, measured.agent.make_update(measured.spec), learners)


def _step(measured: Subject, update: Update, learners: Learners) -> Callable[[], object]:
    batch = subject.synthetic_batch(measured)

    def step() -> object:
        with among(learners):
            return update(batch)[1]["loss"].numpy()

    return step


if __name__ == "__main__":
    protocol.serve({"impala": impala, "learner": learner}, ["dm-sonnet"])
