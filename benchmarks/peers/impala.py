"""IMPALA with STAC's network: its update with nothing self-tuned, in a process of its own."""

from collections.abc import Callable

import tensorflow as tf

from benchmarks import batches
from benchmarks.peers import protocol
from benchmarks.subject import GAME, Subject
from environments.dm import make_environment_spec
from run_folder import catalogue


def make_step(settings: protocol.Settings) -> Callable[[], object]:
    """The update, always of the same batch."""
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings["config"].items()
    }
    entry, spec = catalogue.entry("stac"), make_environment_spec(GAME)
    config = type(entry.config)(**values | {"self_tuned": ()})
    agent = entry.make(config, "stac")
    update = agent.make_update(spec)
    batch = batches.synthetic(Subject("paper", entry, agent, spec, num_tasks=1))
    return lambda: update(batch)[1]["loss"].numpy()


if __name__ == "__main__":
    protocol.serve(make_step, lambda: {"tensorflow": tf.__version__})
