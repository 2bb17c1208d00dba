"""Several learners beside one: python -m benchmarks.learners --agent=r2d2 [--learners=2]

One learner with all cores and whole batches; several that learn as one, each with a share of the
cores and of each batch; and the same that learn apart, which shows what it costs to agree.
"""

import contextlib
import math
import os
from concurrent import futures
from typing import Any

import numpy as np
import portpicker
from absl import flags

from benchmarks import measuring
from benchmarks.measuring import Contestant, Report, figure, ratios, single
from benchmarks.rival import Rival
from benchmarks.subject import Subject

_LEARNERS = flags.DEFINE_integer("learners", 2, "Of the agent.", lower_bound=2)


class Group:
    """Learners in processes of their own, which make their steps at the same time.

    Each has its share of the cores and of a batch; they learn as one where they are `together`.
    """

    def __init__(
        self, measured: Subject, size: int, *, together: bool, stack: contextlib.ExitStack
    ) -> None:
        agent, overrides = measured.agent, measuring.overrides()
        overrides.setdefault(agent.name, {})["batch_size"] = str(agent.batch_size // size)
        addresses = [f"localhost:{portpicker.pick_unused_port()}" for _ in range(size)]
        shared: dict[str, Any] = dict(
            agent=agent.name,
            preset=measured.preset,
            overrides=overrides,
            addresses=addresses if together else None,
        )
        cores = np.array_split(sorted(os.sched_getaffinity(0)), size)
        settings = [shared | dict(cores=own.tolist(), rank=i) for i, own in enumerate(cores)]
        self._threads = stack.enter_context(futures.ThreadPoolExecutor(size))
        made = self._threads.map(lambda each: Rival("ours:learner", each), settings)
        self._processes = [stack.enter_context(process) for process in made]

    def run(self, steps: int) -> float:
        """Makes so many steps; returns the seconds until all have."""
        return max(self._threads.map(lambda process: process.run(steps), self._processes))


def _check(measured: Subject) -> None:
    size, cores = _LEARNERS.value, len(os.sched_getaffinity(0))
    agent = measured.agent
    if agent.batch_size % size:
        measuring.fail(
            f"--learners={size} must divide the batch of {agent.name}, {agent.batch_size} items."
        )
    if size > cores:
        measuring.fail(f"--learners={size} must be {cores} at most, the cores of this machine.")


def main(measured: Subject, report: Report) -> None:
    _check(measured)
    frames, size = measured.frames, _LEARNERS.value
    with contextlib.ExitStack() as stack:
        groups = {
            "one": Group(measured, 1, together=False, stack=stack),
            "several": Group(measured, size, together=True, stack=stack),
            "several_apart": Group(measured, size, together=False, stack=stack),
        }
        rates = measuring.alternate(
            {name: Contestant(group.run, frames) for name, group in groups.items()}
        )
    for name, samples in rates.items():
        report.add(name, figure(samples, "frames/s"))
    several, apart = rates["several"], rates["several_apart"]
    report.add("several_to_one", figure(ratios(several, rates["one"]), "x"))
    lost = [100 - kept for kept in ratios(several, apart, 100)]
    report.add("share_of_agreeing", figure(lost, "%"))
    agreeing = [1e3 * frames * (1 / a - 1 / b) for a, b in zip(several, apart, strict=True)]
    report.add("agreeing", figure(agreeing, "ms"))
    parameters = measured.agent.make_network(measured.spec).trainable_variables
    numbers = sum(math.prod(parameter.shape) for parameter in parameters)
    report.add("gradients", single(4 * numbers / 1e6, "MB"))


if __name__ == "__main__":
    measuring.run(main, ["learners"], [])
