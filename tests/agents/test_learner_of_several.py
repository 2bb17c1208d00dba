"""Several learners make the same updates, or none, and end after the same one."""

import threading
from collections.abc import Iterator
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf
from acme.utils import counting

from agents.learner import BrokenOffError, Learner
from agents.several_learners import Alone
from replay.structures import Batch
from tests.agents.adding import AddReward, Priorities, batch_of, for_ever, make_learner
from tests.patience import PATIENCE


class Round:
    """Where learners in threads of one process exchange their rows."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.rows: list[np.ndarray] = [np.zeros(0)] * size


class Threaded(Alone):
    """One of several learners whose updates are their own. Implements `Learners`."""

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
        assert step(20) == [True, True]
        assert step(20) == [True, True]
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
            assert all(threads.map(lambda learner: learner.try_step(20), learners))
    for counter in counters:
        assert counter.get_counts() == {"steps": 2, "trained_steps": 2 * 2 * 3}
    assert learners[0].largest_priority == 10.0  # as the second one said of its first update


def test_all_end_together() -> None:
    met = Round(3)
    learners = [make_learner(for_ever(), learners=Threaded(rank, met))[0] for rank in range(3)]

    def follow(learner: Learner) -> int:
        while not learner.has_ended:
            learner.try_step(20)
        assert not learner.try_step(20)
        return learner.learner_steps

    def lead(learner: Learner) -> int:
        for _ in range(4):
            learner.try_step(20)
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
