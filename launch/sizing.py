"""How many environments this machine plays best, and in how many processes: --num_actors=auto.

Environments and policy are measured without learner and replay, which a run adds: so the rates are
higher than the run's, and only their order is used.
"""

import contextlib
import dataclasses
import functools
import math
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import synchronize
from typing import NamedTuple

import psutil

from environments.copies.dead_simulators import CannotPlayError
from launch import command_line, gcp_flags, starting
from launch.graph import actor_node
from run_folder import building
from run_folder.settings import Crew, Settings, SettingsError

LADDER = (1, 4, 16, 64)  # environments in one process
LEAST = 8  # environments: R2D2's actors differ in how much they explore, and few explore too alike
MOST = 256  # environments, as many as R2D2's paper has
_GROWS = 1.1  # times the rate before: else no further step of a ladder is tried
_AS_GOOD = 0.95  # of the best rate
_SHARE = 0.5  # of available memory, that environments and policies may take
_SECONDS = 1.0
_FIRST_STEPS = 3  # in which the policy is compiled


class Rung(NamedTuple):
    """What was measured."""

    nodes: int  # processes that played at once
    per_node: int  # environments of each
    rate: float  # steps/s of all environments
    memory: float  # bytes of one process, with what it started


class Bounds(NamedTuple):
    """What is given."""

    cores: int  # of this machine; one is the learner's
    memory: float  # bytes that all environments and policies may take
    num_tasks: int = 1
    per_node: int | None = None  # environments of each process; None finds this too


_begin: synchronize.Barrier  # in a process that measures


def finder(run: Settings, per_node: int | None) -> starting.Find:
    """What finds a run's numbers of actors, with `per_node` of them in a process or any.

    Raises:
      SettingsError: it would be of no use to this run.
    """
    is_elsewhere = command_line.JOB.value is not None or gcp_flags.wanted()
    shards, device = run.num_replay_shards, run.actor_device
    for is_so, why in (
        (is_elsewhere, "measures this machine, and the run's actors are on others"),
        (device != "cpu", f"measures processors, got --actor_device={device}"),
        (shards > 1, f"is for one replay, got --num_replay_shards={shards}"),
        (len(run.acting) > 1, f"is for one agent that acts, got --act_with={run.act_with}"),
        ((per_node or 0) > MOST, f"finds {MOST} at most, got --actors_per_node={per_node}"),
    ):
        if is_so:
            raise SettingsError(f"--num_actors=auto {why}: give a number, as --num_actors=32.")
    return functools.partial(find, per_node=per_node)


def find(run: Settings, per_node: int | None) -> tuple[Settings, str]:
    """As `starting.Find`; called in a process that has run no TensorFlow op.

    Raises:
      SettingsError: an environment ends its process, or cannot be played.
    """
    memory = _SHARE * psutil.virtual_memory().available
    bounds = Bounds(len(os.sched_getaffinity(0)), memory, len(run.tasks), per_node)
    rungs = climb(functools.partial(_measure, run), bounds)
    num_actors, each = choose(rungs, bounds)
    sized = dataclasses.replace(run, num_actors=num_actors, actors_per_node=each)
    return sized, f"num_actors={num_actors}, actors_per_node={each}: {sentence(rungs)}."


def climb(measure: Callable[[int, int], Rung], bounds: Bounds) -> list[Rung]:
    """Measures one process with more and more environments, then more and more processes at once.

    Either ends where the rate no longer grows, or where the next would not fit into memory. Several
    processes have as many environments each as one needs for about its best rate.

    Args:
      measure: so many processes, of so many environments each.
    """
    rungs: list[Rung] = []
    for each in (bounds.per_node,) if bounds.per_node else LADDER:
        if rungs and not (_grew(rungs) and _fits(rungs, bounds, 1, each)):
            break
        rungs.append(measure(1, each))
    several, nodes = [_smallest(rungs)], 2
    while nodes < bounds.cores and nodes * (bounds.per_node or 1) <= MOST and _grew(several):
        each = min(several[0].per_node, MOST // nodes)
        if not _fits(rungs, bounds, nodes, each):
            break
        several.append(measure(nodes, each))
        nodes *= 2
    return rungs + several[1:]


def choose(rungs: Sequence[Rung], bounds: Bounds) -> tuple[int, int]:
    """`num_actors` and `actors_per_node`: the fewest actors whose rate is about the best.

    There are at least `LEAST`, where memory allows it. Several tasks have equally many, and at
    least one each; where `per_node` is given, all processes have as many instead.
    """
    nodes, each = _smallest(rungs)[:2]
    per_node, num_tasks = bounds.per_node, bounds.num_tasks
    while nodes * each < LEAST:
        more = (nodes + 1, each) if per_node else (nodes, each + 1)
        if not _fits(rungs, bounds, *more):
            break
        nodes, each = more
    if per_node:
        return max(nodes, math.ceil(num_tasks / per_node)) * per_node, per_node
    num_actors = max(nodes * each // num_tasks, 1) * num_tasks
    return num_actors, math.ceil(num_actors / nodes)


def sentence(rungs: Sequence[Rung]) -> str:
    """The rates that were measured, the most environments first."""
    ordered = sorted(rungs, key=lambda rung: rung[:2], reverse=True)
    several = ordered[0].nodes > 1
    unit = "environments" if several else "environments in a process"
    where = [
        f"{rung.nodes} x {rung.per_node}" if several else f"{rung.per_node}" for rung in ordered
    ]
    others = [f", {rung.rate:,.0f} with {x}" for rung, x in zip(ordered, where, strict=True)][1:]
    return f"{ordered[0].rate:,.0f} steps/s with {where[0]} {unit}{''.join(others)}"


def _smallest(rungs: Sequence[Rung]) -> Rung:
    """The one with the fewest environments, then processes, of those that are about as good."""
    best = max(rung.rate for rung in rungs)
    good = [rung for rung in rungs if rung.rate >= _AS_GOOD * best]
    return min(good, key=lambda rung: (rung.nodes * rung.per_node, rung.nodes))


def _grew(rungs: Sequence[Rung]) -> bool:
    """Whether the last of them was clearly better than the one before, if there was one."""
    return len(rungs) < 2 or rungs[-1].rate >= _GROWS * rungs[-2].rate


def _fits(rungs: Sequence[Rung], bounds: Bounds, nodes: int, each: int) -> bool:
    """Whether memory holds so many processes: by a line through the two largest measured alone."""
    alone = [(0, 0.0), *((rung.per_node, rung.memory) for rung in rungs if rung.nodes == 1)]
    (few, less), (many, more) = alone[-2:]
    return nodes * (more + (more - less) / (many - few) * (each - many)) <= bounds.memory


def _measure(run: Settings, nodes: int, each: int) -> Rung:
    crews = [_crew(run, range(node * each, (node + 1) * each)) for node in range(nodes)]
    context = multiprocessing.get_context("fork")
    begin = context.Barrier(nodes)
    try:
        with futures.ProcessPoolExecutor(nodes, context, _begin_at, (begin,)) as pool:
            made = _results([pool.submit(_play, run, crew) for crew in crews])
            rates, memory = zip(*made, strict=True)
    except BrokenProcessPool:
        raise SettingsError(f"{run.env!r} ended its process when it was tried.") from None
    except CannotPlayError as error:
        raise SettingsError(f"--env={run.env} cannot be played: {error}") from None
    return Rung(nodes, each, sum(rates), max(memory))


def _results(made: Sequence[futures.Future[tuple[float, float]]]) -> list[tuple[float, float]]:
    """What each has returned; raises what the first one raised, for which others did not begin."""
    errors = [each.exception() for each in made]
    raised = [e for e in errors if not isinstance(e, threading.BrokenBarrierError | None)]
    if raised:
        raise raised[0]
    return [each.result() for each in made]


def _crew(run: Settings, actors: range) -> Crew:
    """The crew of some actors, in a run that has only those before them beside."""
    tasks = tuple(sorted(actor % len(run.tasks) for actor in actors))
    return Crew(run.act_with, tuple(actors), tuple(actors), actors.stop, tasks)


def _begin_at(begin: synchronize.Barrier) -> None:
    """Gives this process, which is to measure, the moment at which all of them begin."""
    global _begin
    _begin = begin


def _play(run: Settings, crew: Crew) -> tuple[float, float]:
    """Steps/s of a crew, and the bytes of its process."""
    with contextlib.ExitStack() as stack:
        try:
            agent, spec = building.make_agent(run, crew.agent), building.environment_spec(run)
            loop = actor_node.make_loop(run, crew, agent, spec, stack)
            for _ in range(_FIRST_STEPS):
                loop.step()
        except BaseException:
            _begin.abort()  # or the others would wait for this one
            raise
        _begin.wait()
        steps, since = 0, time.monotonic()
        while (passed := time.monotonic() - since) < _SECONDS:
            steps += loop.step()[0]
        return steps / passed, _memory()


def _memory() -> float:
    """Bytes that this process and what it has started hold, and no other."""
    own = psutil.Process()
    held = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has ended
            held += process.memory_full_info().uss
    return held
