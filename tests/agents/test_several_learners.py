"""Several learners are one: the same updates from the same batches, or none, to one end."""

import functools
import threading
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme.utils import counting

from agents.learner import BrokenOffError, Learner
from agents.several_learners import ALONE, Learners, among, gradients_of, mean, whole_metrics
from replay.structures import Batch
from tests.agents.adding import AddReward, Priorities, batch_of, for_ever, make_learner
from tests.agents.together import CLIP, Case, Group, Learned, learn
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def groups() -> Iterator[dict[int, Group]]:
    with Group(2) as two, Group(3) as three:
        yield {2: two, 3: three}


def _reduce(learners: Learners) -> dict[str, Any]:
    """Reduces numbers that differ between the learners, in every way there is."""

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


EVERY_AGENT = ["r2d2", "impala", "popart", "stacx", "rsac"]


def _case(agent: str, precision: str = "float32") -> Case:
    return Case(agent, dict(precision=precision))


@functools.cache
def _alone(agent: str, precision: str = "float32") -> Learned:
    return learn(_case(agent, precision), ALONE)


@pytest.mark.parametrize("agent", EVERY_AGENT)
def test_two_learn_what_one_would(groups: dict[int, Group], agent: str) -> None:
    _check_equal(_alone(agent), groups[2].call(learn, _case(agent)), 1e-5)


@pytest.mark.parametrize("agent", ["r2d2", "popart"])  # what is of the whole batch differs most
@pytest.mark.parametrize(
    ("size", "precision", "tolerance"), [(3, "float32", 1e-5), (2, "bfloat16", 1e-2)]
)
def test_so_do_three_and_so_do_they_in_bfloat16(
    groups: dict[int, Group], agent: str, size: int, precision: str, tolerance: float
) -> None:
    together = groups[size].call(learn, _case(agent, precision))
    _check_equal(_alone(agent, precision), together, tolerance)


def test_errors_deviate_for_two_as_for_one(groups: dict[int, Group]) -> None:
    case = Case("r2d2", dict(returns="watkins", trust_region=0.5, normalise_td=True))
    _check_equal(learn(case, ALONE), groups[2].call(learn, case), 1e-5)


def test_pixel_control_is_learned_by_two_as_by_one(groups: dict[int, Group]) -> None:
    case = Case("impala", dict(torso="shallow", pixel_control_cost=0.01), sees_images=True)
    _check_equal(learn(case, ALONE), groups[2].call(learn, case), 1e-5)


class Round:
    """The rows that learners in threads of one process exchange."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.rows: list[np.ndarray] = [np.zeros(0)] * size


class Threaded(Learners):
    """One of several learners whose updates are their own."""

    def __init__(self, rank: int, met: Round) -> None:
        self.rank = rank
        self.size = len(met.rows)
        self._met = met

    def exchange(self, row: np.ndarray) -> np.ndarray:
        self._met.rows[self.rank] = row
        self._met.barrier.wait(timeout=PATIENCE)
        rows = np.stack(self._met.rows)
        self._met.barrier.wait(timeout=PATIENCE)
        return rows


def _late(event: threading.Event) -> Iterator[Batch]:
    assert event.wait(PATIENCE)
    yield from for_ever()


def test_none_learns_before_all_can() -> None:
    met, comes = Round(2), threading.Event()
    first, _ = make_learner(for_ever(), learners=Threaded(0, met))
    second, _ = make_learner(_late(comes), learners=Threaded(1, met))
    with futures.ThreadPoolExecutor(2) as threads:

        def step(timeout: float = 0.05) -> list[bool]:
            return list(threads.map(lambda learner: learner.try_step(timeout), (first, second)))

        assert step() == [False, False]
        assert (first.learner_steps, second.learner_steps) == (0, 0)
        comes.set()
        assert step(PATIENCE) == [True, True]
        assert step(PATIENCE) == [True, True]
        assert (first.learner_steps, second.learner_steps) == (2, 2)
        assert first.waiting == second.waiting > 0


def test_all_count_what_all_replay_and_know_the_largest_priority() -> None:
    met, counters = Round(2), [counting.Counter(), counting.Counter()]
    learners = [
        make_learner(
            (batch_of(reward) for _ in range(3)),
            learners=Threaded(rank, met),
            counter=counters[rank],
            priorities=Priorities(),
        )[0]
        for rank, reward in enumerate((1.0, 5.0))
    ]
    with futures.ThreadPoolExecutor(2) as threads:
        for _ in range(2):
            assert all(threads.map(lambda learner: learner.try_step(PATIENCE), learners))
    for counter in counters:
        assert counter.get_counts() == {"steps": 2, "trained_steps": 2 * 2 * 3}
    assert learners[0].largest_priority == 10.0  # as the second one said of its first update


def test_all_end_together() -> None:
    met = Round(3)
    learners = [make_learner(for_ever(), learners=Threaded(rank, met))[0] for rank in range(3)]

    def follow(learner: Learner) -> int:
        while not learner.has_ended:
            learner.try_step(PATIENCE)
        assert not learner.try_step(PATIENCE)
        return learner.learner_steps

    def lead(learner: Learner) -> int:
        for _ in range(4):
            learner.try_step(PATIENCE)
        learner.end()
        learner.end()  # again: nobody is asked twice
        return learner.learner_steps

    with futures.ThreadPoolExecutor(3) as threads:
        ends = [threads.submit(lead, learners[0])]
        ends += [threads.submit(follow, learner) for learner in learners[1:]]
        assert [end.result(PATIENCE) for end in ends] == [4, 4, 4]


class _Breaks(AddReward):
    """An update whose second call breaks off when it has changed half of the parameters."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def __call__(self, batch: Batch) -> tuple[tf.Tensor | None, dict[str, tf.Tensor]]:
        self._calls += 1
        if self._calls == 2:
            self.moment.assign_add(1.0)
            raise tf.errors.UnavailableError(None, None, "Connection reset by peer")
        priorities, metrics = super().__call__(batch)
        return priorities, dict(metrics)


def test_what_an_update_leaves_behind_that_broke_off_is_neither_saved_nor_served(
    tmp_path: object,
) -> None:
    learner, _ = make_learner(for_ever(), _Breaks())
    learner.step()
    before, served = learner.save(), learner.get_variables(["policy"])
    with pytest.raises(tf.errors.UnavailableError):
        learner.step()
    for save in (learner.save, lambda: learner.write_checkpoint(f"{tmp_path}/2")):
        with pytest.raises(BrokenOffError, match=r"^Update 2 broke off\.$"):
            save()
    np.testing.assert_equal(learner.get_variables(["policy"]), served)
    learner.restore(before)
    np.testing.assert_equal(learner.save(), before)
    learner.step()
    assert learner.learner_steps == 2


def test_a_parameter_that_a_loss_does_not_reach_has_a_gradient_of_zeros() -> None:
    x, unread = tf.Variable([3.0, -1.0]), tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x**2)
    found = gradients_of(loss, [x, unread], tape)
    np.testing.assert_array_equal(found[0], [6.0, -2.0])
    np.testing.assert_array_equal(found[1], [[0.0, 0.0]])
