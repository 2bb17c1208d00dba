"""Writes docs/scale.md's tables from what benchmarks measured: python -m benchmarks.scale

docs/data/scale.jsonl holds the last line of `python -m benchmarks.wire --agent=r2d2`. A load is a
rate of what is sent times what one costs, over what a link or a group of cores can do.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks import study

DATA = study.DOCS / "data/scale.jsonl"
PAGE = study.DOCS / "scale.md"


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
    link: float = 1.25e9  # bytes per second that a host can send, and as many that it can receive
    learner_cores: int = 8  # that are free for serving and for putting batches together
    shard_cores: int = 4  # of each replay host

    @property
    def num_nodes(self) -> int:
        """Actor nodes."""
        return -(-self.actors // self.actors_per_node)

    @property
    def items_per_second(self) -> float:
        """Written by all nodes."""
        return self.actors * self.steps_per_second / self.period

    @property
    def sampled_per_second(self) -> float:
        """Items that the learner samples."""
        return self.batch_size / self.update_seconds

    @property
    def fetches_per_second(self) -> float:
        """Of parameters, by one node."""
        return self.steps_per_second / self.variable_update_period


PAPER = Plan()  # 256 actors of 65 steps/s, five updates a second
PLANS = {
    "256 actors, 8 in a node": PAPER,
    "256 actors, each its own node": dataclasses.replace(PAPER, actors_per_node=1),
    "the same, parameters every 1,600 steps": dataclasses.replace(
        PAPER, actors_per_node=1, variable_update_period=1_600
    ),
    "256 actors, 8 in a node, learner of two cores": dataclasses.replace(PAPER, learner_cores=2),
    "256 actors, 8 in a node, updates of 21 ms, 16 cores": dataclasses.replace(
        PAPER, update_seconds=0.021, learner_cores=16
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
    items, fetched = plan.items_per_second / plan.num_nodes, plan.fetches_per_second
    inserted, sampled = (
        rate / plan.num_shards for rate in (plan.items_per_second, plan.sampled_per_second)
    )
    return {
        "items, from an actor node": items * of[ITEM].bytes,
        "items, into a shard": inserted * of[ITEM].bytes,
        "items, from a shard to the learner": sampled * of[SAMPLE].bytes,
        "items, into the learner": plan.sampled_per_second * of[SAMPLE].bytes,
        "priorities, from the learner to a shard": sampled * of[PRIORITY].bytes,
        "parameters, into an actor node": fetched * of[PARAMETERS].bytes,
        "parameters, from the learner": plan.num_nodes * fetched * of[PARAMETERS].bytes,
    }


def loads(plan: Plan, of: Costs) -> dict[str, float]:
    """The share of each resource that is asked for; above 1 it holds up what needs it."""
    sent = rates(plan, of)
    priorities = plan.sampled_per_second * of[PRIORITY].bytes
    links = {
        "actor node's link, in": sent["parameters, into an actor node"],
        "actor node's link, out": sent["items, from an actor node"],
        "shard's link, in": sent["items, into a shard"] + priorities / plan.num_shards,
        "shard's link, out": sent["items, from a shard to the learner"],
        "learner's link, in": sent["items, into the learner"],
        "learner's link, out": sent["parameters, from the learner"] + priorities,
    }
    sampled = plan.sampled_per_second
    served = plan.items_per_second * of[ITEM].server
    served += sampled * (of[SAMPLE].server + of[PRIORITY].server)
    batches = sampled * (of[SAMPLE].client + of[PRIORITY].client)
    return {
        **{name: rate / plan.link for name, rate in links.items()},
        "shard's cores": served / plan.num_shards / plan.shard_cores,
        "learner's cores": batches / plan.learner_cores + serving_share(plan, of),
    }


def serving_share(plan: Plan, of: Costs) -> float:
    """The share of the learner's cores that handing out parameters takes."""
    return plan.num_nodes * plan.fetches_per_second * of[PARAMETERS].server / plan.learner_cores


def rates_table(of: Costs) -> str:
    """Bytes per second for one actor in a node and for several."""
    plans = [PLANS["256 actors, each its own node"], PAPER]
    columns = [rates(plan, of) for plan in plans]
    rows = [[name, *(_bytes(column[name]) for column in columns)] for name in columns[0]]
    shares = [f"{serving_share(plan, of):.1%}" for plan in plans]
    rows.append([f"of the learner's {PAPER.learner_cores} cores, to serve parameters", *shares])
    head = [f"{plan.num_nodes} nodes of {plan.actors_per_node}" for plan in plans]
    return study.markdown(["", *head], rows)


def loads_table(of: Costs) -> str:
    """The three busiest resources of each plan."""
    rows = []
    for name, plan in PLANS.items():
        busiest = sorted(loads(plan, of).items(), key=lambda item: -item[1])[:3]
        steps, updates = plan.actors * plan.steps_per_second, 1 / plan.update_seconds
        told = ", ".join(f"{resource} {load:.1%}" for resource, load in busiest)
        rows.append([name, f"{steps:,.0f}", f"{updates:,.3g}", told])
    return study.markdown(["", "steps/s", "updates/s", "busiest"], rows)


def _bytes(value: float) -> str:
    return f"{value / 1e6:,.1f} MB/s" if value >= 1e5 else f"{value / 1e3:,.1f} kB/s"


def render(page: str, line: Mapping[str, Any]) -> str:
    """The page with its tables made anew."""
    of = costs(line)
    page = study.replace_block(page, "rates", rates_table(of))
    return study.replace_block(page, "loads", loads_table(of))


def newest() -> dict[str, Any]:
    """The last line that was measured."""
    return study.read_lines(DATA)[-1]


if __name__ == "__main__":
    study.positional(__doc__)
    PAGE.write_text(render(PAGE.read_text(), newest()))
