"""Several learners beside one: python -m benchmarks.learners --agent=r2d2 [--learners=2]

One learner with all cores and whole batches; several that learn as one, each with a share of the
cores and of each batch; and the same that learn apart, which shows what it costs to agree.
"""

import contextlib
import math
import os
from collections.abc import Sequence
from concurrent import futures
from typing import Any

import numpy as np
import portpicker
from absl import flags

from benchmarks import command_line, timing
from benchmarks.peer import Peer
from benchmarks.report import Report, figure, single
from benchmarks.subject import Subject
from benchmarks.timing import Contestant

_LEARNERS = flags.DEFINE_integer("learners", 2, "Of the agent.", lower_bound=2)


class Group:
    """Learners in processes of their own, which make their steps at the same time.

    Args:
      measured: the agent.
      size: how many learners there are; each has its share of the cores and of a batch.
      together: whether they learn as one.
      stack: ends the processes.
    """

    def __init__(
        self, measured: Subject, size: int, *, together: bool, stack: contextlib.ExitStack
    ) -> None:
        cores = np.array_split(sorted(os.sched_getaffinity(0)), size)
        addresses = [f"localhost:{portpicker.pick_unused_port()}" for _ in range(size)]
        part = measured.agent.batch_size // size
        overrides = command_line.overrides()
        overrides.setdefault(measured.agent.name, {})["batch_size"] = str(part)
        shared: dict[str, Any] = dict(
            agent=measured.agent.name, preset=measured.preset, overrides=overrides
        )
        settings = [
            shared
            | dict(cores=of_one.tolist(), rank=rank, addresses=addresses if together else None)
            for rank, of_one in enumerate(cores)
        ]
        self._threads = stack.enter_context(futures.ThreadPoolExecutor(size))
        made = self._threads.map(lambda each: Peer("learner_of_several", each), settings)
        self._processes = [stack.enter_context(process) for process in made]

    def run(self, steps: int) -> float:
        """Makes so many steps; returns the seconds until all have."""
        return max(self._threads.map(lambda process: process.run(steps), self._processes))


def main(_: Sequence[str]) -> None:
    measured, size = command_line.agent(), _LEARNERS.value
    agent, cores = measured.agent, len(os.sched_getaffinity(0))
    if agent.batch_size % size:
        command_line.fail(
            f"--learners={size} must divide the batch of {agent.name}, {agent.batch_size} items."
        )
    if size > cores:
        command_line.fail(f"--learners={size} must be {cores} at most, the cores of this machine.")
    report = Report("learners", measured.settings | {"learners": size})
    layout = agent.tables[0].layout
    frames = float(agent.batch_size * (layout.burn_in + layout.length))
    with contextlib.ExitStack() as stack:
        groups = {
            "one": Group(measured, 1, together=False, stack=stack),
            "several": Group(measured, size, together=True, stack=stack),
            "several_apart": Group(measured, size, together=False, stack=stack),
        }
        rates = timing.alternate(
            {name: Contestant(group.run, frames) for name, group in groups.items()}
        )
    for name, samples in rates.items():
        report.add(name, figure(samples, "frames/s"))
    report.add("several_to_one", figure(timing.ratios(rates["several"], rates["one"]), "x"))
    kept = timing.ratios(rates["several"], rates["several_apart"])
    report.add("share_of_agreeing", figure([100 * (1 - share) for share in kept], "%"))
    lost = zip(rates["several"], rates["several_apart"], strict=True)
    report.add("agreeing", figure([1e3 * frames * (1 / a - 1 / b) for a, b in lost], "ms"))
    parameters = agent.make_network(measured.spec).trainable_variables
    numbers = sum(math.prod(parameter.shape) for parameter in parameters)
    report.add("gradients", single(4 * numbers / 1e6, "MB"))
    report.print()


if __name__ == "__main__":
    command_line.run(main, ["learners", "peer_python"])
