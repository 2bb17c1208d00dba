"""Writes docs/scale.md's tables from what benchmarks measured: python -m benchmarks.scale

docs/data/scale.jsonl holds the last line of `python -m benchmarks.wire --agent=r2d2`. The second
table is simulated: actor nodes write items to the shards, the learner samples them, trains, writes
back priorities and hands out parameters. Every link and every group of cores is a queue.
"""

import dataclasses
import heapq
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks import study

DATA = study.DOCS / "data/scale.jsonl"
PAGE = study.DOCS / "scale.md"
SECONDS = 60.0  # of every simulated run

Process = Generator[float, None, None]  # yields the times at which it goes on


class Costs(NamedTuple):
    """Of what is sent: bytes on the wire, and seconds of one core at either end."""

    item_bytes: float
    item_server: float
    sample_bytes: float
    sample_server: float
    sample_client: float
    priority_bytes: float
    priority_server: float
    priority_client: float
    parameter_bytes: float
    parameter_server: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """A run and its hosts."""

    actors: int = 256  # environments, each with a policy of its own
    actors_per_node: int = 8  # in one process, on a host of its own
    num_shards: int = 2  # replay hosts
    steps_per_second: float = 65.0  # of one environment, where nothing holds it up
    period: int = 40  # steps from one item of an environment to its next
    variable_update_period: int = 400  # steps between two fetches of parameters
    batch_size: int = 64  # items
    update_seconds: float = 0.2  # of the learner's step, where batches wait for it
    batches_ahead: int = 2  # that the learner samples while it trains
    link: float = 1.25e9  # bytes per second that a host can send, and as many that it can receive
    learner_cores: int = 8  # that are free for serving and for putting batches together
    shard_cores: int = 4  # of each replay host

    @property
    def num_nodes(self) -> int:
        """Actor nodes."""
        return -(-self.actors // self.actors_per_node)


class Server:
    """A queue: jobs are begun in the order in which they came, `capacity` at a time."""

    def __init__(self, capacity: int = 1) -> None:
        self._free = [0.0] * capacity  # when each place is free, a heap
        self._capacity = capacity
        self.busy = 0.0  # seconds, over all places

    def done(self, now: float, seconds: float) -> float:
        """When a job is done that comes now and takes so long once it is begun."""
        end = max(now, heapq.heappop(self._free)) + seconds
        heapq.heappush(self._free, end)
        self.busy += seconds
        return end

    def utilisation(self, seconds: float) -> float:
        """The share of all this time in which it worked; above 1 where work has piled up."""
        return self.busy / seconds / self._capacity


class Result(NamedTuple):
    """The outcome of a simulation."""

    steps_per_second: float  # of all environments
    updates_per_second: float  # of the learner
    utilisation: dict[str, float]  # of each resource, the busiest of those alike
    parameter_seconds: float  # from a fetch to its parameters, the mean


class Simulation:
    """One run for some seconds, from an empty network on."""

    def __init__(self, plan: Plan, costs: Costs) -> None:
        self._plan, self._costs = plan, costs
        self._now = 0.0
        self._steps = self._updates = 0
        self._waited: list[float] = []
        self._node_in = [Server() for _ in range(plan.num_nodes)]
        self._node_out = [Server() for _ in range(plan.num_nodes)]
        self._shard_in = [Server() for _ in range(plan.num_shards)]
        self._shard_out = [Server() for _ in range(plan.num_shards)]
        self._shard_cores = [Server(plan.shard_cores) for _ in range(plan.num_shards)]
        self._learner_in, self._learner_out = Server(), Server()
        self._learner_cores = Server(plan.learner_cores)
        self._accelerator = Server()

    def run(self, seconds: float) -> Result:
        """Simulates so many seconds."""
        waiting = [(0.0, number, process) for number, process in enumerate(self._processes())]
        heapq.heapify(waiting)
        while waiting[0][0] < seconds:
            self._now, number, process = waiting[0]
            heapq.heapreplace(waiting, (next(process), number, process))
        groups = {
            "actor node's link, in": self._node_in,
            "actor node's link, out": self._node_out,
            "shard's link, in": self._shard_in,
            "shard's link, out": self._shard_out,
            "shard's cores": self._shard_cores,
            "learner's link, in": [self._learner_in],
            "learner's link, out": [self._learner_out],
            "learner's cores": [self._learner_cores],
            "learner's accelerator": [self._accelerator],
        }
        return Result(
            self._steps / seconds,
            self._updates / seconds,
            {name: max(s.utilisation(seconds) for s in group) for name, group in groups.items()},
            sum(self._waited) / max(len(self._waited), 1),
        )

    def _processes(self) -> Iterator[Process]:
        for node in range(self._plan.num_nodes):
            yield self._write(node)
            yield self._fetch(node)
        for _ in range(self._plan.batches_ahead):
            yield self._learn()

    def _send(self, out: Server, into: Server, size: float) -> Process:
        """A message from one host to another: it takes both their links."""
        yield out.done(self._now, size / self._plan.link)
        yield into.done(self._now, size / self._plan.link)

    def _first(self, node: int, every: float) -> float:
        """When a node first does what it does so often: nodes did not start at once."""
        return every * node / self._plan.num_nodes

    def _write(self, node: int) -> Process:
        """An item of each environment every period; it goes on when all have arrived."""
        plan, costs = self._plan, self._costs
        envs = min(plan.actors_per_node, plan.actors - node * plan.actors_per_node)
        shard = node % plan.num_shards
        every = plan.period / plan.steps_per_second
        yield self._first(node, every)
        while True:
            acted = self._now + every
            for _ in range(envs):
                yield from self._send(self._node_out[node], self._shard_in[shard], costs.item_bytes)
                yield self._shard_cores[shard].done(self._now, costs.item_server)
            self._steps += envs * plan.period
            yield max(acted, self._now)

    def _fetch(self, node: int) -> Process:
        plan, costs = self._plan, self._costs
        every = plan.variable_update_period / plan.steps_per_second
        yield self._first(node, every)
        while True:
            asked = self._now
            yield self._learner_cores.done(self._now, costs.parameter_server)
            yield from self._send(self._learner_out, self._node_in[node], costs.parameter_bytes)
            self._waited.append(self._now - asked)
            yield max(asked + every, self._now)

    def _learn(self) -> Process:
        """One of the batches that are on their way at the same time."""
        plan, costs = self._plan, self._costs
        share = plan.batch_size / plan.num_shards
        while True:
            for shard in range(plan.num_shards):
                yield self._shard_cores[shard].done(self._now, share * costs.sample_server)
                size = share * costs.sample_bytes
                yield from self._send(self._shard_out[shard], self._learner_in, size)
            yield self._learner_cores.done(self._now, plan.batch_size * costs.sample_client)
            yield self._accelerator.done(self._now, plan.update_seconds)
            self._updates += 1
            yield self._learner_cores.done(self._now, plan.batch_size * costs.priority_client)
            for shard in range(plan.num_shards):
                size = share * costs.priority_bytes
                yield from self._send(self._learner_out, self._shard_in[shard], size)
                yield self._shard_cores[shard].done(self._now, share * costs.priority_server)


PAPER = Plan()  # 256 actors of 65 steps/s, five updates a second
PLANS = {
    "256 actors, 8 in a node": PAPER,
    "256 actors, each its own node": dataclasses.replace(PAPER, actors_per_node=1),
    "the same, parameters every 1,600 steps": dataclasses.replace(
        PAPER, actors_per_node=1, variable_update_period=1_600
    ),
    "256 actors, 8 in a node, learner of two cores": dataclasses.replace(PAPER, learner_cores=2),
    "256 actors, 8 in a node, updates of 21 ms, 16 cores": dataclasses.replace(
        PAPER, update_seconds=0.021, learner_cores=16, batches_ahead=7
    ),
    "1,024 actors, 8 in a node, 8 shards": dataclasses.replace(PAPER, actors=1_024, num_shards=8),
}


def costs(line: Mapping[str, Any]) -> Costs:
    """The costs that a line of `benchmarks.wire` tells."""
    value = {name: float(figure["value"]) for name, figure in line["figures"].items()}
    return Costs(
        item_bytes=value["item written, on the wire"],
        item_server=value["item written, server"] / 1e3,
        sample_bytes=value["item sampled, on the wire"],
        sample_server=value["item sampled, server"] / 1e3,
        sample_client=value["item sampled, client"] / 1e3,
        priority_bytes=value["priority, on the wire"],
        priority_server=value["priority, server"] / 1e3,
        priority_client=value["priority, client"] / 1e3,
        parameter_bytes=value["parameters fetched, on the wire"],
        parameter_server=value["parameters fetched, server"] / 1e3,
    )


def rates(plan: Plan, of: Costs) -> dict[str, float]:
    """Bytes per second on each kind of link, where nothing holds anything up."""
    steps = plan.actors * plan.steps_per_second
    items = steps / plan.period
    sampled = plan.batch_size / plan.update_seconds
    fetches = plan.num_nodes * plan.steps_per_second / plan.variable_update_period
    return {
        "items, from an actor node": items * of.item_bytes / plan.num_nodes,
        "items, into a shard": items * of.item_bytes / plan.num_shards,
        "items, from a shard to the learner": sampled * of.sample_bytes / plan.num_shards,
        "items, into the learner": sampled * of.sample_bytes,
        "priorities, from the learner to a shard": sampled * of.priority_bytes / plan.num_shards,
        "parameters, into an actor node": fetches * of.parameter_bytes / plan.num_nodes,
        "parameters, from the learner": fetches * of.parameter_bytes,
    }


def serving_share(plan: Plan, of: Costs) -> float:
    """The share of the learner's cores that handing out parameters takes."""
    fetches = plan.num_nodes * plan.steps_per_second / plan.variable_update_period
    return fetches * of.parameter_server / plan.learner_cores


def rates_table(of: Costs) -> str:
    """Bytes per second for one actor in a node and for several."""
    plans = [PLANS["256 actors, each its own node"], PAPER]
    columns = [rates(plan, of) for plan in plans]
    rows = [[name, *(_bytes(column[name]) for column in columns)] for name in columns[0]]
    shares = [f"{serving_share(plan, of):.1%}" for plan in plans]
    rows.append([f"of the learner's {PAPER.learner_cores} cores, to serve parameters", *shares])
    head = [f"{plan.num_nodes} nodes of {plan.actors_per_node}" for plan in plans]
    return study.markdown(["", *head], rows)


def simulated_table(results: Mapping[str, Result]) -> str:
    """The outcome of each plan, and its three busiest resources."""
    rows = [
        [
            name,
            f"{result.steps_per_second:,.0f}",
            f"{result.updates_per_second:.2f}",
            f"{1e3 * result.parameter_seconds:,.0f} ms",
            ", ".join(_busiest(result, 3)),
        ]
        for name, result in results.items()
    ]
    return study.markdown(["", "steps/s", "updates/s", "a fetch takes", "busiest"], rows)


def _busiest(result: Result, number: int) -> Iterable[str]:
    known = sorted(result.utilisation.items(), key=lambda item: -item[1])
    return [f"{name} {share:.0%}" for name, share in known[:number]]


def _bytes(value: float) -> str:
    return f"{value / 1e6:,.1f} MB/s" if value >= 1e5 else f"{value / 1e3:,.1f} kB/s"


def render(page: str, line: Mapping[str, Any]) -> str:
    """The page with its tables made anew."""
    of = costs(line)
    results = {name: Simulation(plan, of).run(SECONDS) for name, plan in PLANS.items()}
    page = study.replace_block(page, "rates", rates_table(of))
    return study.replace_block(page, "simulated", simulated_table(results))


def newest() -> dict[str, Any]:
    """The last line that was measured."""
    return study.read_lines(DATA)[-1]


if __name__ == "__main__":
    study.positional(__doc__)
    PAGE.write_text(render(PAGE.read_text(), newest()))
