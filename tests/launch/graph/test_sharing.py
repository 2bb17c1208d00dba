"""Several agents on one replay: who acts, who paces the others, and the items of each."""

import contextlib
import math
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import reverb
import tensorflow as tf

from environments.copies import dead_simulators
from environments.dmlab import environment as dmlab
from launch.graph import actor_node, process, program
from launch.graph.coordinator import Coordinator
from replay import tables
from replay.structures import UNKNOWN, Header, Item
from run_folder import building, settings
from tests.agents.recording import Recorder, Source

LARGEST = 2.5
DMLAB = "dmlab:seekavoid_arena_01"

# Items that begin in the middle of catch's episodes, and recurrent states of two sizes.
SMALL = {
    "r2d2": {
        "lstm_size": "8",
        "burn_in": "0",
        "length": "4",
        "period": "2",
        "min_replay_size": "1",
        "samples_per_insert": "none",
    },
    "impala": {"lstm_size": "16", "burn_in": "2", "length": "4", "queue_size": "1000"},
}


def _resolve(overrides: dict[str, dict[str, str]] | None = None, **given: Any) -> settings.Settings:
    values = dict(agent="r2d2,impala", env="catch", run_dir="/run", preset="local")
    return settings.resolve(values | given, overrides or {})


@pytest.mark.parametrize("paced_by", ["r2d2", "impala"])
def test_only_the_tables_of_one_agent_hold_the_actors_back(paced_by: str) -> None:
    replayed = {"impala": {"replay_fraction": "0.5"}}
    agents = building.make_agents(_resolve(replayed, paced_by=paced_by))
    paces = {table.name: table.paces for table in building.all_tables(agents)}
    assert paces == {
        "r2d2": paced_by == "r2d2",
        "impala": paced_by == "impala",
        "impala_replay": paced_by == "impala",
    }


@pytest.mark.parametrize(
    ("given", "acting", "paced_by"),
    [
        ({}, ("r2d2", "impala"), "r2d2"),
        (dict(agent="impala,r2d2"), ("impala", "r2d2"), "impala"),
        (dict(act_with="impala", num_actors=1), ("impala",), "impala"),
        (dict(act_with="impala", paced_by="r2d2"), ("impala",), "r2d2"),
    ],
)
def test_every_agent_acts_and_the_first_that_does_paces_unless_told_otherwise(
    given: dict[str, Any], acting: tuple[str, ...], paced_by: str
) -> None:
    run = _resolve(**given)
    assert (run.acting, run.paced_by) == (acting, paced_by)
    assert run.agents == tuple(run.agent.split(","))


@pytest.mark.parametrize(
    ("given", "overrides", "said"),
    [
        (dict(agent="r2d2,r2d2"), {}, "--agent=r2d2,r2d2 names an agent twice."),
        (dict(agent="r2d2,"), {}, "--agent='' is unknown"),
        (dict(act_with="popart"), {}, "names 'popart', but this run's agents are r2d2, impala."),
        (dict(act_with="r2d2,r2d2"), {}, "--act_with=r2d2,r2d2 names an agent twice."),
        (dict(paced_by="x"), {}, "--paced_by=x names 'x', but this run's agents are"),
        ({}, {"popart": {"length": "8"}}, "--popart.length sets a field of 'popart'.*r2d2, impala"),
        ({}, {"impala": {"lenth": "8"}}, "--impala.lenth is no field.*mean --impala.length"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    given: dict[str, Any], overrides: dict[str, dict[str, str]], said: str
) -> None:
    with pytest.raises(settings.SettingsError, match=said):
        _resolve(overrides, **given)


@pytest.mark.parametrize("env", ["catch", "memory:recall", "atari:pong", DMLAB])
def test_the_local_presets_share_blocks_of_at_least_eight_rows(env: str) -> None:
    agents = building.make_agents(_resolve(env=env))
    assert tables.block_layout(building.all_tables(agents)).length >= 8


@pytest.mark.parametrize("preset", ["local", "paper"])
def test_impala_burns_in_only_where_it_shares_and_has_a_core(preset: str) -> None:
    assert _resolve(preset=preset).configs["impala"].burn_in > 0
    assert _resolve(preset=preset, agent="impala").configs["impala"].burn_in == 0
    on_atari = _resolve(preset=preset, env="atari:pong").configs["impala"]
    assert (on_atari.lstm_size, on_atari.burn_in) == (0, 0)


def _coordinator() -> Any:
    coordinator = mock.create_autospec(Coordinator, instance=True)
    coordinator.steps_before.return_value = 0
    coordinator.notice.side_effect = AssertionError
    coordinator.largest_priority.return_value = LARGEST
    return coordinator


@pytest.fixture(autouse=True)
def _in_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_simulators, "on_new_kind", dead_simulators.on_new_kind)
    monkeypatch.setattr(process, "enter", lambda *_: None)
    monkeypatch.setattr(process, "stop_event", threading.Event)
    monkeypatch.setattr(dmlab, "installed", lambda: True)


def _learner(run: settings.Settings, name: str) -> Source:
    """The learner of an agent, with its first parameters."""
    tf.random.set_seed(1)
    network = building.make_agents(run)[name].make_network(building.environment_spec(run))
    return Source([variable.numpy() for variable in network.variables])


class Played:
    """One node, on which one of two agents acts, and the items that it left in both's tables."""

    def __init__(self, acting: str) -> None:
        self.acting = acting
        self.run = _resolve(SMALL, num_actors=4, act_with=acting, paced_by=acting)
        self.server = reverb.Server(program.make_tables(self.run, 0))
        self.client = reverb.Client(f"localhost:{self.server.port}")
        self.coordinator = _coordinator()
        (crew,) = self.run.crews()
        node = actor_node.ActorNode(
            self.run, crew, _learner(self.run, acting), self.client, self.coordinator
        )
        loop = node._make_loop(contextlib.ExitStack())
        for _ in range(60):
            loop.step()

    def items(self, table: str) -> Iterator[tuple[float, Header, Any]]:
        """Priority, header and core state of items of a table."""
        count = self.client.server_info()[table].current_size
        assert count > 20
        for sample in self.client.sample(
            table, num_samples=count, emit_timesteps=False, unpack_as_table_signature=True
        ):
            item: Item = sample.data
            yield sample.info.priority, Header(*np.ravel(item.header)), item.core_state


@pytest.fixture(scope="module", params=["r2d2", "impala"])
def played(request: pytest.FixtureRequest) -> Iterator[Played]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(dead_simulators, "on_new_kind", dead_simulators.on_new_kind)
        monkeypatch.setattr(process, "enter", lambda *_: None)
        monkeypatch.setattr(process, "stop_event", threading.Event)
        yield Played(request.param)


def test_items_hold_the_reader_s_zero_state_and_largest_priority_where_another_acted(
    played: Played,
) -> None:
    reader = {"r2d2": "impala", "impala": "r2d2"}[played.acting]
    spec = building.core_state_spec(
        building.make_agents(played.run)[reader], building.environment_spec(played.run)
    )
    for priority, header, core_state in played.items(reader):
        tf.nest.assert_same_structure(core_state, spec)
        for leaf, expected in zip(tf.nest.flatten(core_state), tf.nest.flatten(spec), strict=True):
            np.testing.assert_array_equal(np.squeeze(leaf), np.zeros(expected.shape))
        assert header.learner_step == UNKNOWN
        assert header.agent == played.run.agents.index(played.acting)
        assert priority == (LARGEST if reader == "r2d2" else 1.0)  # a queue needs none
    asked = {call.args for call in played.coordinator.largest_priority.call_args_list}
    assert asked == ({("r2d2",)} if reader == "r2d2" else set())


def test_items_hold_the_acting_network_s_state_and_step_for_its_own_learner(played: Played) -> None:
    moved = 0
    priorities = set()
    for priority, header, core_state in played.items(played.acting):
        moved += any(np.any(leaf) for leaf in tf.nest.flatten(core_state))
        priorities.add(priority)
        assert header.learner_step >= 1  # what `Source` counts from
    assert moved > 0
    if played.acting == "r2d2":
        assert len(priorities) > 1
        assert LARGEST not in priorities
    else:
        assert priorities == {1.0}


def test_every_acting_agent_has_an_epsilon_ladder_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _resolve(SMALL, act_with="impala,r2d2", num_actors=6, actors_per_node=2)
    recorders: list[Recorder] = []

    def record(*_: Any) -> Recorder:
        recorders.append(Recorder())
        return recorders[-1]

    monkeypatch.setattr(actor_node.ActorNode, "_make_writer", record)
    for crew in run.crews()[2:]:  # whose indices are not their ranks
        assert crew.agent == "r2d2"
        node = actor_node.ActorNode(run, crew, _learner(run, "r2d2"), None, _coordinator())
        loop = node._make_loop(contextlib.ExitStack())
        for _ in range(30):
            loop.step()
    greedy = np.concatenate([r.column("log_probability").max(axis=0) for r in recorders])
    # Three of the six actors follow R2D2: ε_i = 0.4^(1 + 7 i / 2), and three actions.
    expected = [math.log(1 - e + e / 3) for e in (0.4**1, 0.4**4.5, 0.4**8)]
    np.testing.assert_allclose(greedy, expected, rtol=1e-3)
