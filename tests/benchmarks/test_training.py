"""Trainings without a replay server: their unrolls, the runs of their studies, the tables."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import reverb
import tensorflow as tf
import tree

from agents.actor import RecurrentActor, Writer
from agents.environment_loop import VectorEnvironmentLoop
from agents.impala.agent import Config, make
from benchmarks import corrections, self_tuning, training
from benchmarks.training import Collector, Grid, single_unrolls, to_batch
from environments import suites
from environments.dm import make_environment_spec
from replay import tables
from replay.dataset import make_dataset
from replay.frames import stacked
from replay.structures import Batch, NetworkInput, Step
from replay.writer import SequenceWriter

N, LENGTH = 3, 4
ENV = "memory:recall"  # episodes of eight steps: their ends move through the unrolls
FROM_REVERB = ("key", "shard", "probability", "table_size")


class _Both:
    """One stream into two writers."""

    def __init__(self, *writers: Writer) -> None:
        self._writers = writers

    def append(self, step: Step, **context: Any) -> None:
        for writer in self._writers:
            writer.append(step, **context)


def test_unrolls_equal_those_of_the_replay_server() -> None:
    config = Config(
        torso="mlp", hidden_sizes=(8,), frame_stack=1, length=LENGTH, batch_size=N, lstm_size=8
    )
    agent, spec = make(config), make_environment_spec(ENV)
    network = agent.make_network(spec)
    state = tree.map_structure(lambda x: x[0], network.initial_state(1))
    blocks = tables.block_layout(agent.tables)
    server = reverb.Server(tables.make_tables(agent.tables, spec, {"impala": state}, blocks))
    client = server.localhost_client()
    writer = SequenceWriter(
        client,
        agent.tables,
        blocks=blocks,
        actors=np.zeros(N, np.int64),
        tasks=np.zeros(N, np.int64),
        agent=0,
    )
    collector = Collector(LENGTH)
    actor = RecurrentActor(
        agent.make_policy(network, np.arange(N), N, 0),
        network.initial_state(N),
        num_environments=N,
        frame_stack=1,
        writer=_Both(collector, writer),
    )
    loop = VectorEnvironmentLoop(suites.make(ENV, N, seed=0), actor, [ENV] * N)
    dataset = iter(
        make_dataset(
            [client.server_address], agent.tables, spec, state, blocks, (N,), same_process=True
        )
    )
    ends = 0.0
    for _ in range(8):
        while (unrolls := collector.take()) is None:
            loop.step()
        mine, theirs = to_batch([unrolls]), stacked(next(dataset))
        ends += np.sum(1 - mine.mask.numpy())
        for name in set(Batch._fields) - set(FROM_REVERB):
            tree.map_structure(
                lambda x, y, name=name: np.testing.assert_array_equal(x, y, err_msg=name),
                getattr(mine, name),
                getattr(theirs, name),
            )
    assert ends > 0
    writer.close()
    server.stop()


def test_a_batch_joins_its_parts_in_order() -> None:
    rows = np.arange(6).reshape(3, 2)  # of three unrolls, batch-major
    fields: dict[str, Any] = dict.fromkeys(Batch._fields, rows)
    whole = Batch(**fields)._replace(inputs=NetworkInput(rows, rows, rows))
    for parts in ([whole], single_unrolls(whole)):
        batch = to_batch(parts)
        np.testing.assert_array_equal(batch.reward, rows.T)
        np.testing.assert_array_equal(batch.inputs.observation, rows.T)
        np.testing.assert_array_equal(batch.core_state, rows)
        assert isinstance(batch.reward, tf.Tensor)


def test_a_table_and_a_plot_are_of_means_over_seeds() -> None:
    results = {
        corrections.Run("b", correction, replay, 0, seed): corrections.Result(
            1, 10.0 * i + replay + seed, 0.0
        )
        for (i, correction), replay, seed in itertools.product(
            enumerate(corrections.CORRECTIONS), (0.0, 0.5), range(3)
        )
    }
    lines = {name: dict(correction=name) for name in ("vtrace", "none")}
    columns = {f"{replay:.0%}": dict(task="b", replay=replay) for replay in (0.0, 0.5)}
    # Seeds 0, 1 and 2: their mean is 1, s is 1, and t is 4.303 at two degrees.
    margin = f"{4.303 / math.sqrt(3):.2f}"
    assert Grid("b, replay", lines, columns).table(results, "final_return").splitlines() == [
        "| b, replay | 0% | 50% |",
        "|---|---|---|",
        f"| vtrace | 1.00 ± {margin} | 1.50 ± {margin} |",
        f"| none | 31.00 ± {margin} | 31.50 ± {margin} |",
    ]


def test_each_run_of_self_tuning_differs_from_a_plain_one_in_one_thing() -> None:
    for run in self_tuning.RUNS:
        plain = self_tuning.plain(run.agent)
        changed = [name for name, value in plain.items() if getattr(run, name) != value]
        assert len(changed) <= 1, run


@pytest.mark.slow
def test_impala_is_stac_with_nothing_self_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_tuning, "UPDATES", 2)
    monkeypatch.setattr(training, "EVALUATION_EPISODES", 4)
    plain, tuned = (
        self_tuning.train(self_tuning.Run(**self_tuning.plain(agent), seed=0))
        for agent in ("impala", "stacx")
    )
    assert math.isnan(plain.gamma)
    assert math.isnan(plain.auxiliary_alpha)
    assert tuned.gamma == pytest.approx(0.99, abs=1e-3)
    assert tuned.auxiliary_alpha == pytest.approx(0.99, abs=1e-3)
    assert plain.steps == tuned.steps > 0
