"""Several learners are one: the same updates from the same batches, whatever part each sees."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.several_learners import ALONE, Learners, among, mean, whole_metrics
from tests.agents.together import CLIP, Case, Group, Learned, learn


@pytest.fixture(scope="module")
def groups() -> Iterator[dict[int, Group]]:
    with Group(2) as two, Group(3) as three:
        yield {2: two, 3: three}


def _reduce(learners: Learners) -> dict[str, Any]:
    """What learners make of numbers that differ between them."""

    @tf.function(autograph=False)
    def reduce() -> dict[str, Any]:
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]]) * (learners.rank + 1)
        count = tf.constant([10 + learners.rank], tf.int64)
        with tf.GradientTape() as tape:
            tape.watch(x)
            (total,) = learners.sum([x])
            loss = tf.reduce_sum(total**2)
        metrics = {"loss": x[0, 0], "mean_q": x[0, 0]}
        return {
            "sums": learners.sum([x, count, x[0]]),
            "mean": mean([x])[0],
            "gathered": learners.gather(tf.constant([learners.rank, 7], tf.int64)),
            "derivative": tape.gradient(loss, x),
            "metrics": whole_metrics(metrics, lambda name: name == "loss"),
        }

    with among(learners):
        found: dict[str, Any] = tree.map_structure(lambda x: x.numpy(), reduce())
    return found | {"exchanged": learners.exchange(np.array([learners.rank, 0.5]))}


@pytest.mark.parametrize("size", [2, 3])
def test_what_they_reduce(groups: dict[int, Group], size: int) -> None:
    x, factor = np.array([[1.0, 2.0], [3.0, 4.0]]), size * (size + 1) // 2
    for found in groups[size].call(_reduce):
        total, count, first = found["sums"]
        np.testing.assert_array_equal(total, factor * x)
        np.testing.assert_array_equal(count, [10 * size + sum(range(size))])
        np.testing.assert_array_equal(first, factor * x[0])
        np.testing.assert_allclose(found["mean"], factor * x / size)
        np.testing.assert_array_equal(found["gathered"], [n for r in range(size) for n in (r, 7)])
        np.testing.assert_array_equal(found["exchanged"], [[r, 0.5] for r in range(size)])
        np.testing.assert_array_equal(found["derivative"], 2 * factor * x)  # of its own part
        assert found["metrics"] == {"loss": factor, "mean_q": pytest.approx(factor / size)}


def test_one_alone_changes_nothing() -> None:
    found = _reduce(ALONE)
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(found["sums"][0], x)
    np.testing.assert_array_equal(found["mean"], x)
    np.testing.assert_array_equal(found["exchanged"], [[0, 0.5]])
    assert found["metrics"] == {"loss": 1, "mean_q": 1}


def _check_equal(alone: Learned, together: list[Learned], tolerance: float) -> None:
    close: Any = dict(rtol=tolerance, atol=tolerance)
    for one in together:
        for mine, whole in zip(one.variables, alone.variables, strict=True):
            np.testing.assert_allclose(mine, whole, **close)
        for mine, first in zip(one.variables, together[0].variables, strict=True):
            np.testing.assert_array_equal(mine, first)  # nothing drifts apart
        for said, known in zip(one.metrics, alone.metrics, strict=True):
            assert said.keys() == known.keys()
            for name in ("loss", "gradient_norm"):
                np.testing.assert_allclose(said[name], known[name], **close)
            assert said["gradient_norm"] > CLIP
    for update, whole in enumerate(alone.priorities):
        parts = [one.priorities[update] for one in together]
        np.testing.assert_allclose(np.concatenate(parts), whole, **close)


EVERY_AGENT = [
    *("r2d2", "r2d2_plus", "r2d2_feedforward", "impala", "multihead_impala", "popart", "stac"),
    "stacx",
]


def _case(agent: str, precision: str = "float32") -> Case:
    return Case(agent, dict(precision=precision))


@functools.cache
def _alone(agent: str, precision: str = "float32") -> Learned:
    return learn(_case(agent, precision), ALONE)


@pytest.mark.parametrize("agent", EVERY_AGENT)
def test_two_learn_what_one_would(groups: dict[int, Group], agent: str) -> None:
    _check_equal(_alone(agent), groups[2].call(learn, _case(agent)), 1e-5)


@pytest.mark.parametrize("agent", ["r2d2", "popart", "stacx"])
@pytest.mark.parametrize(
    ("size", "precision", "tolerance"), [(3, "float32", 1e-5), (2, "bfloat16", 1e-2)]
)
def test_so_do_three_and_so_do_they_in_bfloat16(
    groups: dict[int, Group], agent: str, size: int, precision: str, tolerance: float
) -> None:
    together = groups[size].call(learn, _case(agent, precision))
    _check_equal(_alone(agent, precision), together, tolerance)


def test_pixel_control_is_learned_by_two_as_by_one(groups: dict[int, Group]) -> None:
    case = Case("impala", dict(torso="shallow", pixel_control_cost=0.01), sees_images=True)
    _check_equal(learn(case, ALONE), groups[2].call(learn, case), 1e-5)
