"""A run's program: as many nodes as were announced, their addresses, and what each shard holds."""

import dataclasses
from typing import Any

import launchpad as lp
import pytest

from launch.graph import process, program
from tests.run_folder import saved_runs


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (
            dict(num_actors=5, actors_per_node=2),
            "replay/0 coordinator/0 learner/0 actor/0 actor/1 actor/2 evaluator/0",
        ),
        (
            dict(agent="r2d2,impala", num_actors=4, actors_per_node=2, num_replay_shards=2),
            "replay/0 replay/1 coordinator/0 learner/0 learner/1 actor/0 actor/1 "
            "evaluator/0 evaluator/1",
        ),
        (
            dict(agent="r2d2,impala", num_actors=2, actors_per_node=2, learners_per_agent=3),
            "replay/0 coordinator/0 learner/0 learner/1 learner/2 learner/3 learner/4 learner/5 "
            "actor/0 actor/1 evaluator/0 evaluator/1",
        ),
        (
            dict(agent="r2d2,impala", num_actors=1, act_with="r2d2", colocate_learners=True)
            | dict(evaluation_episodes=0),
            "replay/0 coordinator/0 learner/0 actor/0",
        ),
    ],
)
def test_a_run_has_the_nodes_that_are_announced(given: dict[str, Any], labels: str) -> None:
    run = saved_runs.resolve(**given)
    nodes = program.local_nodes(program.make_program(run, {}))
    assert list(nodes) == labels.split()
    assert run.num_nodes() == len(nodes)


def test_servers_have_ports_of_their_own() -> None:
    run = saved_runs.resolve("r2d2,impala", num_replay_shards=2, num_actors=4)
    made = program.make_program(run, {})
    program.local_nodes(made)
    addresses = [a.resolve() for node in made.get_all_nodes() for a in node.addresses]
    assert len(addresses) == len(set(addresses)) == 5  # two shards, the coordinator, two learners


@pytest.mark.parametrize(
    ("agent", "overrides"),
    [("r2d2", {}), ("impala", {}), ("impala", {"replay_fraction": "0.5"}), ("popart", {})],
)
def test_shards_together_hold_what_one_node_would(
    agent: str, overrides: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "enter", lambda *_: None)
    run = saved_runs.resolve(agent, overrides, num_replay_shards=4, num_actors=4, actors_per_node=1)
    whole = program.make_tables(dataclasses.replace(run, num_replay_shards=1), 0)
    parts = [program.make_tables(run, shard) for shard in range(4)]
    for table, *of_shards in zip(whole, *parts, strict=True):
        assert {part.info.name for part in of_shards} == {table.info.name}
        assert sum(part.info.max_size for part in of_shards) == table.info.max_size


def test_every_actor_node_writes_to_one_shard_and_every_learner_reads_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whichever node of a program takes a handle is wired to what the handle is of."""
    run = saved_runs.resolve(num_replay_shards=2, num_actors=5, actors_per_node=1)
    added: dict[str, list[Any]] = {}
    add = lp.Program.add_node

    def record(self: lp.Program, node: Any) -> Any:
        added.setdefault(self._current_group, []).append(node)
        return add(self, node)

    monkeypatch.setattr(lp.Program, "add_node", record)
    program.make_program(run, {})
    servers = [node.reverb_address for node in added["replay"]]
    assert len(servers) == 2

    def read_by(node: Any) -> list[int]:
        addresses = [getattr(handle, "_address", None) for handle in node._input_handles]
        return [servers.index(address) for address in addresses if address in servers]

    assert [read_by(node) for node in added["actor"]] == [[0], [1], [0], [1], [0]]
    assert [read_by(node) for node in added["learner"]] == [[0, 1]]
    assert [read_by(node) for node in added["coordinator"]] == [[0, 1]]
