"""What 256 actors ask of a cluster: python -m benchmarks.scale

A simulation: actor nodes write items to the shards, the learner samples them, trains, writes back
priorities and hands out parameters. Every link and every group of cores is a queue; what a job
costs there was measured by `benchmarks.wire`, `benchmarks.actor` and `benchmarks.learner`.
"""

import dataclasses
import heapq
from collections.abc import Generator, Iterator

Process = Generator[float, None, None]  # yields the times at which it goes on


@dataclasses.dataclass(frozen=True)
class Costs:
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
    """A run and its hosts.

    Attributes:
      actors: environments, each with a policy of its own.
      actors_per_node: those in one process, on a host of its own.
      num_shards: replay hosts.
      steps_per_second: of one environment, where nothing holds it up.
      period: steps from one item of an environment to its next.
      variable_update_period: steps between two fetches of parameters.
      batch_size: items.
      update_seconds: of the learner's step, where batches wait for it.
      batches_ahead: that the learner samples while it trains.
      link: bytes per second that a host can send, and as many that it can receive.
      learner_cores: that are free for serving and for putting batches together.
      shard_cores: of each replay host.
    """

    actors: int = 256
    actors_per_node: int = 8
    num_shards: int = 2
    steps_per_second: float = 65.0
    period: int = 40
    variable_update_period: int = 400
    batch_size: int = 64
    update_seconds: float = 0.2
    batches_ahead: int = 2
    link: float = 1.25e9
    learner_cores: int = 8
    shard_cores: int = 4

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


@dataclasses.dataclass(frozen=True)
class Result:
    """What a simulation came to.

    Attributes:
      steps_per_second: of all environments.
      updates_per_second: of the learner.
      utilisation: of each resource, the busiest of those alike.
      parameter_seconds: from a fetch to its parameters, the mean.
    """

    steps_per_second: float
    updates_per_second: float
    utilisation: dict[str, float]
    parameter_seconds: float


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
