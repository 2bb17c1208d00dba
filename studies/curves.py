"""Learning curves of runs that have a core each."""

import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import NamedTuple, TypeVar

import numpy as np

Job = TypeVar("Job")


class Episodes(NamedTuple):
    """Those of a run that ended within a minute."""

    actor_steps: float  # of the run so far, the mean at their ends
    episode_return: float  # mean


def by_minute(
    walltime: np.ndarray, actor_steps: np.ndarray, returns: np.ndarray
) -> Iterator[tuple[int, Episodes]]:
    """Episodes by the minute in which they ended; a minute without any is missing.

    Args:
      walltime: `[E]`, seconds of the run at the episodes' ends.
      actor_steps: `[E]`, of the run then.
      returns: `[E]`, of the episodes.
    """
    minutes = (walltime // 60).astype(int)
    for minute in np.unique(minutes):
        these = minutes == minute
        yield int(minute), Episodes(float(actor_steps[these].mean()), float(returns[these].mean()))


def alone(core: int) -> tuple[str, ...]:
    """What stands before a command that has one core for itself."""
    return ("taskset", "--cpu-list", str(core))


def on_cores(jobs: Sequence[Job], work: Callable[[Job, int], None]) -> Iterator[Job]:
    """Does jobs, as many at a time as there are cores, and yields each that is done.

    Args:
      jobs: in the order in which they are begun.
      work: does one, on the core that it is given.
    """
    cores: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)

    def do(job: Job) -> Job:
        core = cores.get()
        try:
            work(job, core)
        finally:
            cores.put(core)
        return job

    with futures.ThreadPoolExecutor(cores.qsize()) as pool:
        for done in futures.as_completed([pool.submit(do, job) for job in jobs]):
            yield done.result()
