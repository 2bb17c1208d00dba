"""The cost of all that a run sends: python -m benchmarks.wire --agent=r2d2 --num_items=2000

Bytes on the wire and processor time for each item that is written, each that is sampled, each new
priority, and each copy of the parameters. Bytes are what the loopback device has counted, headers
and acknowledgements included, so give the command a network of its own:

unshare --net sh -c 'ip link set lo up && python -m benchmarks.wire --agent=r2d2'
"""

import time
from collections.abc import Callable

import numpy as np
import psutil
from absl import flags

from agents.actor import with_variables
from benchmarks import measuring
from benchmarks.local_replay import Clients, LocalReplay
from benchmarks.measuring import Report, single
from benchmarks.scale import ITEM, PARAMETERS, PRIORITY, SAMPLE, Cost
from benchmarks.subject import Subject

_BATCHES = 30  # sampled, and of priorities written back
_FETCHES = 20  # of the parameters

_NUM_ITEMS = flags.DEFINE_integer("num_items", 2_000, "Items to write, about.", lower_bound=1)


def cost(
    work: Callable[[], int],
    server_seconds: Callable[[], float],
    client_seconds: Callable[[], float],
) -> Cost:
    """The cost of each of the things whose number `work` returns when it has sent them."""
    counters = (_bytes, server_seconds, client_seconds)
    before = [counter() for counter in counters]
    number = work()
    return Cost(*((counter() - b) / number for counter, b in zip(counters, before, strict=True)))


def _bytes() -> float:
    return float(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def main(measured: Subject, report: Report) -> None:
    with LocalReplay(measured) as replay:
        _measure_replay(replay, report)
    parameters = _parameters(measured)
    report.add("parameters", single(sum(p.nbytes for p in parameters), "bytes"))
    _add(report, PARAMETERS, _fetching_cost(parameters))


def _add(report: Report, name: str, found: Cost) -> None:
    report.add(f"{name}, on the wire", single(found.bytes, "bytes"))
    report.add(f"{name}, server", single(1e3 * found.server, "ms of a core"))
    report.add(f"{name}, client", single(1e3 * found.client, "ms of a core"))


def _measure_replay(replay: LocalReplay, report: Report) -> None:
    (client,) = replay.clients()

    def write() -> int:
        before = replay.num_items()
        replay.fill(_NUM_ITEMS.value)
        return replay.num_items() - before

    def sample() -> int:
        sampled = [next(batches).key.numpy() for _ in range(_BATCHES)]
        keys.extend(sampled)
        return sum(map(len, sampled))

    def write_back() -> int:
        for of_batch in keys:
            updates = dict.fromkeys(of_batch.tolist(), 1.0)
            client.mutate_priorities(replay.table.name, updates=updates)
        return sum(map(len, keys))

    _add(report, ITEM, cost(write, replay.cpu_seconds, time.process_time))
    batches = iter(replay.batches())
    keys = [next(batches).key.numpy()]  # connected, and the pipeline is full
    _add(report, SAMPLE, cost(sample, replay.cpu_seconds, time.process_time))
    _add(report, PRIORITY, cost(write_back, replay.cpu_seconds, time.process_time))


def _parameters(measured: Subject) -> list[np.ndarray]:
    """A learner's answer: its network's variables, and the learner step."""
    network = measured.agent.make_network(measured.spec)
    with_variables(network, measured.spec, measured.agent.frame_stack)
    return [*(v.numpy() for v in network.variables), np.asarray(0, np.int64)]


def _fetching_cost(parameters: list[np.ndarray]) -> Cost:
    """The cost of one fetch of the parameters, which this process serves to another."""
    with Clients(lambda names: [parameters] * len(names), 1) as clients:

        def fetch() -> int:
            clients.begin(_FETCHES)
            clients.wait()
            return _FETCHES

        return cost(fetch, time.process_time, clients.seconds)


if __name__ == "__main__":
    measuring.run(main, ["num_items"], by_turns=False)
