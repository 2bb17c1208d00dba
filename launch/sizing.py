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
from multiprocessing import synchronize
from typing import NamedTuple

import psutil

from environments.copies.dead_simulators import CannotPlayError
from launch import trial
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
_LONGEST = 300.0  # seconds, unless --hang_seconds is more: 64 Atari games take 13 to be made
_FIRST_STEPS = 3  # in which the policy is compiled


class Rung(NamedTuple):
    """What was measured."""

    nodes: int  # processes that played at once
    per_node: int  # environments of each
    rate: float  # steps/s of all environments
    memory: float  # bytes of one process, with what it started


Measure = Callable[[int, int], Rung]  # of so many nodes, with so many environments each


def find(run: Settings, per_node: int | None) -> tuple[Settings, str]:
    """A run's settings with the numbers of actors that suit this machine, and a line about them.

    Called in a process that has run no TensorFlow op.

    Args:
      run: its settings but for those numbers.
      per_node: environments of each process; None finds this too.

    Raises:
      SettingsError: an environment dies, hangs or cannot be played.
    """
    measure = functools.partial(_measure, run)
    cores = len(os.sched_getaffinity(0))
    memory = _SHARE * psutil.virtual_memory().available
    rungs = climb(measure, cores=cores, memory=memory, per_node=per_node)
    num_actors, each = choose(rungs, memory=memory, num_tasks=len(run.tasks), per_node=per_node)
    sized = dataclasses.replace(run, num_actors=num_actors, actors_per_node=each)
    return sized, f"num_actors={num_actors}, actors_per_node={each}: {sentence(rungs)}."


def check(run: Settings, per_node: int | None, *, here: bool) -> None:
    """Checks that the number of a run's actors can be found.

    Args:
      run: its settings but for that number.
      per_node: as for `find`.
      here: whether all of it runs on this machine.

    Raises:
      SettingsError: it cannot.
    """
    give = "give --num_actors and --actors_per_node as numbers"
    if not here:
        raise SettingsError(
            f"--num_actors=auto measures this machine, and the run's actors are on others: {give}."
        )
    if run.num_replay_shards > 1:
        raise SettingsError(
            f"--num_actors=auto is for one replay, got --num_replay_shards={run.num_replay_shards}:"
            f" {give}."
        )
    if len(run.acting) > 1:
        raise SettingsError(
            f"--num_actors=auto is for one agent that acts, got {run.act_with}: {give}, or one "
            f"of them as --act_with={run.acting[0]}."
        )
    if per_node and per_node > MOST:
        raise SettingsError(
            f"--num_actors=auto finds {MOST} actors at most, got --actors_per_node={per_node}: "
            "give --num_actors as a number."
        )


def climb(measure: Measure, *, cores: int, memory: float, per_node: int | None) -> list[Rung]:
    """Measures one process with more and more environments, then more and more processes at once.

    Either ends where the rate no longer grows, or where the next would not fit into memory. Several
    processes have as many environments each as one needs for about its best rate. One core is left
    to the learner.

    Args:
      measure: of so many nodes with so many environments each.
      cores: of this machine.
      memory: bytes that all may take.
      per_node: as for `find`.
    """
    rungs: list[Rung] = []
    for each in (per_node,) if per_node else LADDER:
        if rungs and not (_fits(rungs, memory, 1, each) and _grew(rungs)):
            break
        rungs.append(measure(1, each))
    alone, nodes = _smallest(rungs), 2
    several = [alone]
    while nodes < cores and nodes * (per_node or 1) <= MOST and _grew(several):
        each = per_node or min(alone.per_node, MOST // nodes)
        if not _fits(rungs, memory, nodes, each):
            break
        several.append(measure(nodes, each))
        nodes *= 2
    return rungs + several[1:]


def choose(
    rungs: Sequence[Rung], *, memory: float, num_tasks: int, per_node: int | None
) -> tuple[int, int]:
    """`num_actors` and `actors_per_node`: the fewest actors whose rate is about the best.

    There are at least `LEAST`, where memory allows it. Several tasks have equally many, and at
    least one each; where `actors_per_node` was given, all processes have as many instead.

    Args:
      rungs: what was measured.
      memory, per_node: as for `climb`.
      num_tasks: of the run.
    """
    found = _smallest(rungs)
    nodes, each = found.nodes, found.per_node
    while nodes * each < LEAST:
        more = (nodes + 1, each) if per_node else (nodes, each + 1)
        if not _fits(rungs, memory, *more):
            break
        nodes, each = more
    if per_node:
        nodes = max(nodes, math.ceil(num_tasks / per_node))
        return nodes * per_node, per_node
    num_actors = max(nodes * each // num_tasks, 1) * num_tasks
    return num_actors, math.ceil(num_actors / nodes)


def sentence(rungs: Sequence[Rung]) -> str:
    """The rates that were measured, the most environments first."""
    first, *others = sorted(rungs, key=lambda rung: (rung.nodes, rung.per_node), reverse=True)
    environments = f"{first.per_node} environment{'s' * (first.per_node > 1)}"
    several = first.nodes > 1
    where = (
        f"{first.nodes} processes of {environments}" if several else f"{environments} in a process"
    )
    rest = [
        f", {rung.rate:,.0f} with {f'{rung.nodes} of ' * several}{rung.per_node}" for rung in others
    ]
    return f"{first.rate:,.0f} steps/s with {where}{''.join(rest)}"


def _smallest(rungs: Sequence[Rung]) -> Rung:
    """The one with the fewest environments, then processes, of those that are about as good."""
    best = max(rung.rate for rung in rungs)
    good = [rung for rung in rungs if rung.rate >= _AS_GOOD * best]
    return min(good, key=lambda rung: (rung.nodes * rung.per_node, rung.nodes))


def _grew(rungs: Sequence[Rung]) -> bool:
    """Whether the last of them was clearly better than the one before, if there was one."""
    return len(rungs) < 2 or rungs[-1].rate >= _GROWS * rungs[-2].rate


def _fits(rungs: Sequence[Rung], memory: float, nodes: int, each: int) -> bool:
    """Whether memory holds so many processes: by a line through the two largest measured alone."""
    alone = [(0, 0.0), *((rung.per_node, rung.memory) for rung in rungs if rung.nodes == 1)]
    (few, less), (many, more) = alone[-2:]
    return nodes * (more + (more - less) / (many - few) * (each - many)) <= memory


def _measure(run: Settings, nodes: int, each: int) -> Rung:
    begin = multiprocessing.get_context("fork").Barrier(nodes)
    crews = [_crew(run, range(node * each, (node + 1) * each)) for node in range(nodes)]
    play = [functools.partial(_play, run, crew, begin) for crew in crews]
    try:
        found = trial.answers(play, max(run.hang_seconds, _LONGEST))
    except trial.NoAnswerError as error:
        raise SettingsError(f"--num_actors=auto: {run.env!r} {error}") from None
    if said := [each for each in found if isinstance(each, str)]:
        raise SettingsError(f"--num_actors=auto: {max(said)}")
    rates, memory = zip(*found, strict=True)
    return Rung(nodes, each, sum(rates), max(memory))


def _crew(run: Settings, actors: range) -> Crew:
    """The crew of some actors, in a run that has only those before them beside."""
    tasks = tuple(sorted(actor % len(run.tasks) for actor in actors))
    return Crew(run.act_with, tuple(actors), tuple(actors), actors.stop, tasks)


def _play(run: Settings, crew: Crew, begin: synchronize.Barrier) -> tuple[float, float] | str:
    """Steps/s of a crew from when all have begun, and bytes; or why it cannot play."""
    with contextlib.ExitStack() as stack:
        try:
            spec = building.environment_spec(run)
            loop = actor_node.make_loop(run, crew, spec, stack)
            for _ in range(_FIRST_STEPS):
                loop.step()
            begin.wait()
            steps, since = 0, time.monotonic()
            while (passed := time.monotonic() - since) < _SECONDS:
                steps += loop.step()[0]
        except CannotPlayError as error:
            begin.abort()
            return str(error)
        except threading.BrokenBarrierError:  # another crew has said why
            return ""
        return steps / passed, _memory()


def _memory() -> float:
    """Bytes that this process and what it has started hold, and no other."""
    own = psutil.Process()
    held = 0.0
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has ended
            held += process.memory_full_info().uss
    return held
