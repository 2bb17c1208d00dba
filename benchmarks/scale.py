"""Writes docs/scale.md's tables from what benchmarks measured: python -m benchmarks.scale

docs/data/scale.jsonl holds the last line of `python -m benchmarks.wire --agent=r2d2`. The second
table is simulated: actor nodes write items to the shards, the learner samples them, trains, writes
back priorities and hands out parameters. Every link and every group of cores is a queue.
"""

import dataclasses
import heapq
from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks import study

DATA = study.DOCS / "data/scale.jsonl"
PAGE = study.DOCS / "scale.md"
SECONDS = 60.0  # of every simulated run

Process = Generator[float, None, None]  # yields the times at which it goes on


class Cost(NamedTuple):
    """The cost of one thing that is sent."""

    bytes: float  # on the wire
    server: float  # seconds of a core in the server's process
    client: float  # seconds of a core in the client's process


ITEM, SAMPLE, PRIORITY = "item written", "item sampled", "priority"
PARAMETERS = "parameters fetched"
Costs = Mapping[str, Cost]


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
        nodes, shards = range(plan.num_nodes), range(plan.num_shards)
        self._resources = {  # of each kind one on every host
            "actor node's link, in": [Server() for _ in nodes],
            "actor node's link, out": [Server() for _ in nodes],
            "shard's link, in": [Server() for _ in shards],
            "shard's link, out": [Server() for _ in shards],
            "shard's cores": [Server(plan.shard_cores) for _ in shards],
            "learner's link, in": [Server()],
            "learner's link, out": [Server()],
            "learner's cores": [Server(plan.learner_cores)],
            "learner's accelerator": [Server()],
        }

    def run(self, seconds: float) -> Result:
        """Simulates so many seconds."""
        waiting = [(0.0, number, process) for number, process in enumerate(self._processes())]
        heapq.heapify(waiting)
        while waiting[0][0] < seconds:
            self._now, number, process = waiting[0]
            heapq.heapreplace(waiting, (next(process), number, process))
        return Result(
            self._steps / seconds,
            self._updates / seconds,
            {
                name: max(server.utilisation(seconds) for server in alike)
                for name, alike in self._resources.items()
            },
            sum(self._waited) / max(len(self._waited), 1),
        )

    def _processes(self) -> Iterator[Process]:
        for node in range(self._plan.num_nodes):
            yield self._write(node)
            yield self._fetch(node)
        for _ in range(self._plan.batches_ahead):
            yield self._learn()

    def _use(self, resource: str, seconds: float, host: int = 0) -> float:
        """The time at which a host's resource has done a job that comes now."""
        return self._resources[resource][host].done(self._now, seconds)

    def _send(self, size: float, out: tuple[str, int], into: tuple[str, int]) -> Process:
        """A message from one host to another, each a kind and its number: it takes both links."""
        for (kind, host), way in ((out, "out"), (into, "in")):
            yield self._use(f"{kind}'s link, {way}", size / self._plan.link, host)

    def _first(self, node: int, every: float) -> float:
        """When a node first does what it does so often: nodes did not start at once."""
        return every * node / self._plan.num_nodes

    def _write(self, node: int) -> Process:
        """An item of each environment every period; it goes on when all have arrived."""
        plan, cost = self._plan, self._costs[ITEM]
        envs = min(plan.actors_per_node, plan.actors - node * plan.actors_per_node)
        shard = node % plan.num_shards
        every = plan.period / plan.steps_per_second
        yield self._first(node, every)
        while True:
            acted = self._now + every
            for _ in range(envs):
                yield from self._send(cost.bytes, ("actor node", node), ("shard", shard))
                yield self._use("shard's cores", cost.server, shard)
            self._steps += envs * plan.period
            yield max(acted, self._now)

    def _fetch(self, node: int) -> Process:
        """Parameters, again and again."""
        plan, cost = self._plan, self._costs[PARAMETERS]
        every = plan.variable_update_period / plan.steps_per_second
        yield self._first(node, every)
        while True:
            asked = self._now
            yield self._use("learner's cores", cost.server)
            yield from self._send(cost.bytes, ("learner", 0), ("actor node", node))
            self._waited.append(self._now - asked)
            yield max(asked + every, self._now)

    def _learn(self) -> Process:
        """One of the batches that are on their way at the same time."""
        plan, sample, priority = self._plan, self._costs[SAMPLE], self._costs[PRIORITY]
        share = plan.batch_size / plan.num_shards
        while True:
            for shard in range(plan.num_shards):
                yield self._use("shard's cores", share * sample.server, shard)
                yield from self._send(share * sample.bytes, ("shard", shard), ("learner", 0))
            yield self._use("learner's cores", plan.batch_size * sample.client)
            yield self._use("learner's accelerator", plan.update_seconds)
            self._updates += 1
            yield self._use("learner's cores", plan.batch_size * priority.client)
            for shard in range(plan.num_shards):
                yield from self._send(share * priority.bytes, ("learner", 0), ("shard", shard))
                yield self._use("shard's cores", share * priority.server, shard)


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

    def value(name: str) -> float:
        return float(line["figures"][name]["value"])

    return {
        sent: Cost(
            value(f"{sent}, on the wire"),
            value(f"{sent}, server") / 1e3,
            value(f"{sent}, client") / 1e3,
        )
        for sent in (ITEM, SAMPLE, PRIORITY, PARAMETERS)
    }


def rates(plan: Plan, of: Costs) -> dict[str, float]:
    """Bytes per second on each kind of link, where nothing holds anything up."""
    items = plan.actors * plan.steps_per_second / plan.period
    sampled = plan.batch_size / plan.update_seconds
    fetched = plan.steps_per_second / plan.variable_update_period  # by one node
    return {
        "items, from an actor node": items * of[ITEM].bytes / plan.num_nodes,
        "items, into a shard": items * of[ITEM].bytes / plan.num_shards,
        "items, from a shard to the learner": sampled * of[SAMPLE].bytes / plan.num_shards,
        "items, into the learner": sampled * of[SAMPLE].bytes,
        "priorities, from the learner to a shard": sampled * of[PRIORITY].bytes / plan.num_shards,
        "parameters, into an actor node": fetched * of[PARAMETERS].bytes,
        "parameters, from the learner": plan.num_nodes * fetched * of[PARAMETERS].bytes,
    }


def serving_share(plan: Plan, of: Costs) -> float:
    """The share of the learner's cores that handing out parameters takes."""
    fetches = plan.num_nodes * plan.steps_per_second / plan.variable_update_period
    return fetches * of[PARAMETERS].server / plan.learner_cores


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
    rows = []
    for name, result in results.items():
        busiest = sorted(result.utilisation.items(), key=lambda item: -item[1])[:3]
        rows.append(
            [
                name,
                f"{result.steps_per_second:,.0f}",
                f"{result.updates_per_second:.2f}",
                f"{1e3 * result.parameter_seconds:,.0f} ms",
                ", ".join(f"{resource} {share:.0%}" for resource, share in busiest),
            ]
        )
    return study.markdown(["", "steps/s", "updates/s", "a fetch takes", "busiest"], rows)


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
