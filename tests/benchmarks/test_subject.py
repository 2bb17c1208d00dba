"""Synthetic batches are what the dataset of the same agent gives."""

import pytest
import tensorflow as tf

from benchmarks import subject
from replay import dataset, tables

_TINY = {
    "r2d2": dict(batch_size="2", burn_in="2", length="4", period="4", lstm_size="8"),
    "popart": dict(batch_size="2", length="4"),
}


@pytest.mark.parametrize("name", _TINY)
def test_a_synthetic_batch_has_the_shapes_of_a_sampled_one(name: str) -> None:
    measured = subject.make(name, "paper", {name: _TINY[name]})
    agent, spec = measured.agent, measured.spec
    state = tf.nest.map_structure(lambda x: x[0], agent.make_network(spec).initial_state(1))
    blocks = tables.block_layout(agent.tables)
    sampled = dataset.make_dataset(
        ["localhost:1"], agent.tables, spec, state, blocks, agent.batch_sizes
    ).element_spec
    made = tf.nest.map_structure(tf.TensorSpec.from_tensor, subject.synthetic_batch(measured))
    for field, expected, found in zip(sampled._fields, sampled, made, strict=True):
        tf.nest.map_structure(lambda x, y, field=field: _assert_equal(field, x, y), expected, found)


def _assert_equal(field: str, expected: tf.TensorSpec, found: tf.TensorSpec) -> None:
    assert found.dtype == expected.dtype, field
    assert found.shape == expected.shape, field


def test_every_row_is_trained_and_every_task_is_one_of_the_suite() -> None:
    measured = subject.make("popart", "paper", {"popart": dict(_TINY["popart"], batch_size="16")})
    batch = subject.synthetic_batch(measured)
    assert batch.mask.numpy().min() == 1
    assert batch.valid.numpy().all()
    assert not batch.reset.numpy().any()
    tasks = batch.task.numpy()
    assert tasks.min() >= 0
    assert tasks.max() < measured.agent.config.num_tasks == 57
    assert len(set(tasks.tolist())) > 1
