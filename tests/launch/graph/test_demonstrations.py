"""Demonstrations: their items and states, their share of batches, and the way of priorities."""

import dataclasses
import itertools
import math
import pathlib
import re
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import reverb
import tensorflow as tf
import tree

from agents.contract import Agent
from launch.graph import demonstrations
from replay import tables
from replay.layout import Layout
from replay.sequences import Cutter
from replay.structures import DEMONSTRATOR, FIRST, LAST, MID, Header, NetworkInput
from replay.writer import SequenceWriter
from run_folder import building, recordings, resuming
from run_folder import settings as run_settings
from run_folder.recordings import Episode
from run_folder.settings import Settings, SettingsError
from tests.agents.recording import Recorder
from tests.patience import wait_for
from tests.run_folder import saved_runs
from tests.run_folder.test_recordings import episode

SMALL = dict(burn_in="3", length="4", period="2", lstm_size="6", head_size="7", hidden_sizes="8")
BATCH, FRACTION = 16, 1 / 24  # of which two thirds of an item are the share
STEPS = (9, 1, 4, 5, 6, 13)


def of_catch(steps: int, seed: int) -> Episode:
    """A random one as if of catch, which terminates or is truncated."""
    rng = np.random.default_rng(seed)
    return episode(steps, seed)._replace(
        observations=rng.integers(0, 2, (steps + 1, 10, 5), np.uint8),
        actions=rng.integers(0, 3, steps, np.int32),
    )


ITEMS = 4 + 1 + 1 + 2 + 2 + 6  # of length 4 that begin every 2 steps
EPISODES = [of_catch(steps, seed) for seed, steps in enumerate(STEPS)]


@pytest.fixture
def settings(tmp_path: pathlib.Path) -> Settings:
    folder = tmp_path / "demos"
    fields = SMALL | dict(batch_size=str(BATCH), min_replay_size="1", samples_per_insert="none")
    given: dict[str, Any] = dict(demonstrations=str(folder), demo_fraction=FRACTION)
    run = saved_runs.resolve("r2d2", fields, **given)
    recordings.begin(folder, "catch", building.environment_spec(run))
    for each in EPISODES:
        recordings.append(folder, each)
    return run


@pytest.mark.parametrize("layout", [Layout(3, 4, 2), Layout(0, 5, 5), Layout(2, 7, 3)])
@pytest.mark.parametrize("every", [1, 2, 5])
def test_an_episode_has_as_many_items_as_it_is_cut_into(layout: Layout, every: int) -> None:
    """However its rows come to the cutter: one, two or five at a time."""
    counts = set()
    for steps in range(1, 25):
        cutter, last = Cutter(layout, 1), steps
        cuts = [cutter.cut(row, [0], [[]]) for row in range(every, last, every)]
        cuts.append(cutter.cut(last + 1, [0], [[last]]))
        found = sum(len(cut.environment) for cut in cuts)
        assert demonstrations.num_items(steps, layout) == found
        counts.add(found)
    assert len(counts) > 3


def test_rows_are_the_stream_of_an_episode() -> None:
    """By a loop over what `replay.structures` says of a stream."""
    for each in EPISODES:
        rows = list(demonstrations.rows_of(each))
        steps = len(each.rewards)
        assert len(rows) == steps + 1
        for t, row in enumerate(rows):
            np.testing.assert_array_equal(row.observation[0], each.observations[t])
            assert row.lives[0] == each.lives[t]
            assert row.step_type[0] == (FIRST if t == 0 else LAST if t == steps else MID)
            if t < steps:
                assert (row.action[0], row.reward[0]) == (each.actions[t], each.rewards[t])
                assert row.continuation[0] == (0 if each.terminated[t] else 1)
        assert rows[-1].reward[0] == 0
        assert all(leaf.shape[0] == 1 for row in rows for leaf in row)
    assert {bool(each.terminated.any()) for each in EPISODES} == {True, False}


@pytest.mark.parametrize("life_loss", ["none", "reset"])
def test_states_are_those_of_an_actor_that_does_the_same(
    settings: Settings, life_loss: str
) -> None:
    """Against a loop over the network alone, with resets, previous actions and rewards."""
    config = dataclasses.replace(settings.configs["r2d2"], life_loss=life_loss)
    agent = building.make_agent(settings, "r2d2", config)
    network: Any = agent.make_network(building.environment_spec(settings))
    kept, resets = Recorder(), 0
    for _ in demonstrations.play(agent, network, iter(EPISODES), None, kept):
        pass
    rows = iter(kept.rows)
    for each in EPISODES:
        state = network.initial_state(1)
        action, reward = np.array([-1], np.int32), np.zeros(1, np.float32)
        for t in range(len(each.rewards) + 1):
            if t and life_loss == "reset" and each.lives[t] < each.lives[t - 1]:
                state, resets = network.initial_state(1), resets + 1
            row = next(rows)
            tree.map_structure(
                lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), row.core_state, state
            )
            inputs = NetworkInput(tf.constant(each.observations[t : t + 1]), action, reward)
            q, state = network.step(inputs, state)
            if t < len(each.rewards):
                action, reward = each.actions[t : t + 1], each.rewards[t : t + 1]
                np.testing.assert_allclose(row.values["q_taken"], q.numpy()[0, action], atol=1e-6)
                assert row.step.action == action
            np.testing.assert_allclose(row.values["q_max"], q.numpy().max(axis=-1), atol=1e-6)
    assert next(rows, None) is None
    assert (resets > 0) == (life_loss == "reset")


class Learner:
    """Serves parameters that are all alike, of an update that can be told."""

    def __init__(self, network: Any) -> None:
        self.values = [np.full(v.shape, 0.1, np.float32) for v in network.variables]
        self.step = 5

    def get_variables(self, names: list[str]) -> list[list[np.ndarray]]:
        return [[*self.values, np.asarray(self.step, np.int64)] for _ in names]


class Coordinator:
    stops = False

    def should_stop(self) -> bool:
        return self.stops


class Served(NamedTuple):
    """Both servers of a run, filled, while its demonstrator plays."""

    agent: Agent
    servers: list[reverb.Server]
    own: reverb.Client
    recorded: reverb.Client
    learner: Learner


@pytest.fixture
def served(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    stop = threading.Event()
    monkeypatch.setattr(demonstrations.process, "enter", lambda *_: None)
    monkeypatch.setattr(demonstrations.process, "stop_event", lambda: stop)
    agent = building.make_agents(settings)["r2d2"]
    network: Any = agent.make_network(building.environment_spec(settings))
    made = [building.tables_of_shard(settings, 0), demonstrations._make_tables(settings)]
    servers = [reverb.Server(each) for each in made]
    own, recorded = (reverb.Client(f"localhost:{server.port}") for server in servers)
    writer = SequenceWriter(
        own,
        agent.tables,
        blocks=tables.block_layout(agent.tables),
        actors=np.array([7]),
        tasks=np.array([0]),
        agent=0,
        initial_priorities={"r2d2": lambda items: np.full(items.mask.shape[1], 0.5)},
    )
    for _ in demonstrations.play(agent, network, iter(EPISODES * 3), None, writer):
        pass
    writer.flush()
    learner = Learner(network)
    node = demonstrations.Demonstrator(settings, "r2d2", learner, recorded, Coordinator())
    thread = threading.Thread(target=node.run)
    thread.start()
    name = demonstrations.table_of(agent, FRACTION).name
    wait_for(lambda: size(recorded, name) == ITEMS, lambda: size(recorded, name))
    yield Served(agent, servers, own, recorded, learner)
    stop.set()
    thread.join()


def size(client: reverb.Client, table: str) -> int:
    return int(client.server_info()[table].current_size)


def priorities(client: reverb.Client, table: str) -> dict[int, float]:
    """The priority of each item that was found in many samples."""
    samples = client.sample(table, 400, emit_timesteps=False)
    return {int(sample.info.key): float(sample.info.priority) for sample in samples}


def test_a_batch_has_its_share_of_demonstrations_and_each_table_its_priorities(
    settings: Settings, served: Served
) -> None:
    """Over many batches, each item of a batch by itself; an item goes by its own table's size."""
    tf.random.set_seed(3)
    dataset, written = demonstrations.batches(settings, "r2d2", served.own, served.recorded)
    name = "r2d2_demonstrations"
    held = {0: size(served.own, "r2d2"), 1: ITEMS}
    assert held[0] != held[1]
    counts = []
    for batch in itertools.islice(dataset.as_numpy_iterator(), 600):
        is_recorded = batch.actor == DEMONSTRATOR
        np.testing.assert_array_equal(batch.shard, is_recorded)
        np.testing.assert_array_equal(batch.actor[~is_recorded], 7)
        np.testing.assert_array_equal(batch.table_size, [held[shard] for shard in batch.shard])
        np.testing.assert_array_equal(batch.learner_step, np.where(is_recorded, 5, 0))
        counts.append(int(is_recorded.sum()))
        written.update(batch.shard, batch.key, np.where(is_recorded, 2.0, 3.0))
    written.close()
    expected = 600 * BATCH * FRACTION
    assert abs(sum(counts) - expected) < 4 * math.sqrt(expected)
    assert {0, 1, 2} <= set(counts)  # two thirds of an item on average
    assert set(priorities(served.own, "r2d2").values()) <= {0.5, 3.0}
    assert 3.0 in priorities(served.own, "r2d2").values()
    assert 3.0 not in priorities(served.recorded, name).values()  # which are written anew, too


def test_the_table_holds_each_item_once_and_is_written_anew_as_it_is_sampled(
    served: Served,
) -> None:
    """The oldest leave as the same of newer parameters come, however often that happens."""
    name = "r2d2_demonstrations"
    served.learner.step = 9

    def is_new() -> bool:
        assert size(served.recorded, name) == ITEMS
        samples = served.recorded.sample(
            name, 64, emit_timesteps=False, unpack_as_table_signature=True
        )
        headers = [Header(*sample.data.header) for sample in samples]
        assert {header.actor for header in headers} == {DEMONSTRATOR}
        return all(header.learner_step == 9 for header in headers)

    wait_for(is_new)


def test_offline_all_of_a_batch_is_recorded(settings: Settings, served: Served) -> None:
    offline = dataclasses.replace(
        settings, max_actor_steps=0, demo_fraction=run_settings.DEMO_FRACTION
    )
    dataset, written = demonstrations.batches(offline, "r2d2", served.own, served.recorded)
    for batch in itertools.islice(dataset.as_numpy_iterator(), 5):
        assert set(batch.actor) == {DEMONSTRATOR}
        written.update(batch.shard, batch.key, np.full(BATCH, 2.0))
    written.close()
    assert 2.0 in priorities(served.recorded, "r2d2_demonstrations").values()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (dict(demo_fraction=0.5), "--demo_fraction=0.5 is for learning from demonstrations: add"),
        (dict(max_actor_steps=0), "--max_actor_steps=0 is for learning from demonstrations: add"),
        (dict(demonstrations="d", demo_fraction=1.0), "demo_fraction must be a number from 1e-06"),
        (dict(demonstrations="d", demo_fraction=0.0), "demo_fraction must be a number from 1e-06"),
        (
            dict(demonstrations="d", num_replay_shards=2),
            "--demonstrations=d is for --num_replay_sh",
        ),
        (dict(demonstrations="d", learners_per_agent=2), "is for --learners_per_agent=1, got 2."),
        (
            dict(demonstrations="d", demo_fraction=0.5, max_actor_steps=0),
            "--demo_fraction=0.5 is a part of a batch, and with --max_actor_steps=0 all of it",
        ),
        (
            dict(demonstrations="d", actor_device="auto", max_actor_steps=0),
            "--actor_device=auto is of no use with --max_actor_steps=0",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(flags: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(sentence)):
        saved_runs.resolve(**flags)


@pytest.mark.parametrize("dropped", [dict(demonstrations=""), dict(max_actor_steps=0)])
def test_a_run_that_goes_on_without_them_or_with_them_alone_needs_no_other_flag(
    dropped: dict[str, Any],
) -> None:
    run = saved_runs.resolve(demonstrations="d", demo_fraction=1 / 64)
    assert resuming.changed(run, dropped, {}).demo_fraction == run_settings.DEMO_FRACTION
    assert resuming.changed(run, dict(demonstrations="e"), {}).demo_fraction == 1 / 64
    with pytest.raises(SettingsError, match=r"--demo_fraction=0.5 is "):
        resuming.changed(run, dropped | dict(demo_fraction=0.5), {})


def test_what_cannot_be_learned_from_is_refused(settings: Settings) -> None:
    spec = building.environment_spec(settings)
    agent = building.make_agent(settings, "r2d2")
    demonstrations.check(settings, agent, spec)
    impala = saved_runs.resolve("impala", demonstrations=settings.demonstrations)
    with pytest.raises(SettingsError, match="--demonstrations is not for --agent=impala"):
        demonstrations.check(impala, building.make_agent(impala, "impala"), spec)
    elsewhere = dataclasses.replace(settings, env="catch:large_rewards")
    with pytest.raises(SettingsError, match="env must be one of catch:large_rewards, got 'catch'"):
        demonstrations.check(elsewhere, agent, spec)
    recordings.files(pathlib.Path(settings.demonstrations))[3].write_bytes(b"PK")
    with pytest.raises(SettingsError, match=r"episode_000003.npz cannot be read"):
        demonstrations.check(settings, agent, spec)
