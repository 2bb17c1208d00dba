"""What a run sends: python -m benchmarks.wire --agent=r2d2 --num_items=2000

Bytes on the wire and processor time for each item that is written, each that is sampled, each new
priority, and each copy of the parameters. Bytes are what the loopback device has counted, headers
and acknowledgements included, so give the command a network of its own:

unshare --net sh -c 'ip link set lo up && python -m benchmarks.wire --agent=r2d2'
"""

import time
from collections.abc import Sequence

import numpy as np
import reverb
from absl import flags

from agents.actor import with_variables
from benchmarks import command_line
from benchmarks.clients import Clients
from benchmarks.costs import Cost, cost
from benchmarks.local_replay import LocalReplay
from benchmarks.report import Report, single
from benchmarks.subject import Subject

_BATCHES = 30  # sampled, and of priorities written back
_FETCHES = 20  # of the parameters

_NUM_ITEMS = flags.DEFINE_integer("num_items", 2_000, "Items to write, about.", lower_bound=1)


def main(_: Sequence[str]) -> None:
    measured = command_line.agent()
    report = Report("wire", measured.settings | {"num_items": _NUM_ITEMS.value})
    try:
        replay = LocalReplay(measured)
    except ValueError as error:
        command_line.fail(str(error))
    with replay:
        written = cost(lambda: _write(replay), replay.cpu_seconds, time.process_time)
        _add(report, "item written", written)
        _measure_priorities(replay, report, _measure_sampling(replay, report))
    parameters = _parameters(measured)
    report.add("parameters", single(sum(p.nbytes for p in parameters), "bytes"))
    _add(report, "parameters fetched", fetching_cost(parameters))
    report.print()


def _add(report: Report, name: str, found: Cost) -> None:
    report.add(f"{name}, on the wire", single(found.bytes, "bytes"))
    report.add(f"{name}, server", single(1e3 * found.server, "ms of a core"))
    report.add(f"{name}, client", single(1e3 * found.client, "ms of a core"))


def _write(replay: LocalReplay) -> int:
    before = replay.num_items()
    replay.fill(_NUM_ITEMS.value)
    return replay.num_items() - before


def _measure_sampling(replay: LocalReplay, report: Report) -> list[np.ndarray]:
    """Reports it; returns the keys of the batches that were sampled."""
    batches = iter(replay.batches())
    keys = [next(batches).key.numpy()]  # connected, and the pipeline is full

    def sample() -> int:
        sampled = [next(batches).key.numpy() for _ in range(_BATCHES)]
        keys.extend(sampled)
        return sum(map(len, sampled))

    _add(report, "item sampled", cost(sample, replay.cpu_seconds, time.process_time))
    return keys


def _measure_priorities(replay: LocalReplay, report: Report, keys: list[np.ndarray]) -> None:
    (client,) = replay.clients()

    def write_back() -> int:
        return sum(_prioritize(client, replay.table.name, of_batch) for of_batch in keys)

    _add(report, "priority", cost(write_back, replay.cpu_seconds, time.process_time))


def _prioritize(client: reverb.Client, table: str, keys: np.ndarray) -> int:
    client.mutate_priorities(table, updates=dict.fromkeys(keys.tolist(), 1.0))
    return len(keys)


def _parameters(measured: Subject) -> list[np.ndarray]:
    """What a learner of this agent serves: its network's variables, and the learner step."""
    network = measured.agent.make_network(measured.spec)
    with_variables(network, measured.spec, measured.agent.frame_stack)
    return [*(v.numpy() for v in network.variables), np.asarray(0, np.int64)]


class _Source:
    """A learner that makes no updates."""

    def __init__(self, parameters: list[np.ndarray]) -> None:
        self._parameters = parameters

    def get_variables(self, names: list[str]) -> list[list[np.ndarray]]:
        return [self._parameters] * len(names)


def fetching_cost(parameters: list[np.ndarray]) -> Cost:
    """Of one fetch of the parameters, which this process serves to another."""
    with Clients(_Source(parameters), 1) as clients:

        def fetch() -> int:
            clients.begin(_FETCHES)
            clients.wait()
            return _FETCHES

        return cost(fetch, time.process_time, clients.seconds)


if __name__ == "__main__":
    command_line.run(main, ["num_items"], by_turns=False)
