"""Writes docs/scale.md's tables from what benchmarks measured: python -m studies.scale

docs/data/scale.jsonl holds the last line of `python -m benchmarks.wire --agent=r2d2`.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.scale import Costs, Plan, Result, Simulation
from studies import arguments
from studies.performance_results import replace_block

DOCS = arguments.DOCS
DATA = DOCS / "data/scale.jsonl"
PAGE = DOCS / "scale.md"
SECONDS = 60.0  # of every simulated run
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
    """What a line of `benchmarks.wire` says."""

    def wire(name: str) -> float:
        return float(line["figures"][f"{name}, on the wire"]["value"])

    def seconds(name: str, end: str) -> float:
        return float(line["figures"][f"{name}, {end}"]["value"]) / 1e3

    return Costs(
        item_bytes=wire("item written"),
        item_server=seconds("item written", "server"),
        sample_bytes=wire("item sampled"),
        sample_server=seconds("item sampled", "server"),
        sample_client=seconds("item sampled", "client"),
        priority_bytes=wire("priority"),
        priority_server=seconds("priority", "server"),
        priority_client=seconds("priority", "client"),
        parameter_bytes=wire("parameters fetched"),
        parameter_server=seconds("parameters fetched", "server"),
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
    rows = [
        f"| {name} | {' | '.join(_bytes(column[name]) for column in columns)} |"
        for name in columns[0]
    ]
    shares = " | ".join(f"{serving_share(plan, of):.1%}" for plan in plans)
    rows.append(f"| of the learner's {PAPER.learner_cores} cores, to serve parameters | {shares} |")
    head = " | ".join(f"{plan.num_nodes} nodes of {plan.actors_per_node}" for plan in plans)
    return "\n".join([f"| | {head} |", "|---|---|---|", *rows])


def simulated_table(results: Mapping[str, Result]) -> str:
    """What each plan came to, and its three busiest resources."""
    rows = [
        f"| {name} | {result.steps_per_second:,.0f} | {result.updates_per_second:.2f} | "
        f"{1e3 * result.parameter_seconds:,.0f} ms | {', '.join(_busiest(result, 3))} |"
        for name, result in results.items()
    ]
    head = "| | steps/s | updates/s | a fetch takes | busiest |"
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def _busiest(result: Result, number: int) -> Iterable[str]:
    known = sorted(result.utilisation.items(), key=lambda item: -item[1])
    return [f"{name} {share:.0%}" for name, share in known[:number]]


def _bytes(value: float) -> str:
    return f"{value / 1e6:,.1f} MB/s" if value >= 1e5 else f"{value / 1e3:,.1f} kB/s"


def render(page: str, line: Mapping[str, Any]) -> str:
    """The page with its tables made anew."""
    of = costs(line)
    results = {name: Simulation(plan, of).run(SECONDS) for name, plan in PLANS.items()}
    page = replace_block(page, "rates", rates_table(of))
    return replace_block(page, "simulated", simulated_table(results))


def newest() -> dict[str, Any]:
    """The last line that was measured."""
    line: dict[str, Any] = json.loads(DATA.read_text().splitlines()[-1])
    return line


if __name__ == "__main__":
    arguments.positional(__doc__)
    PAGE.write_text(render(PAGE.read_text(), newest()))
