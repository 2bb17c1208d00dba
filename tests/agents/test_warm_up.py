"""A learner before its first batch: it prepares itself, and serves its parameters meanwhile."""

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from acme.utils import counting

from replay.structures import Batch
from tests.agents.adding import AddReward, Priorities, batch_of, for_ever, make_learner


class Slow(AddReward):
    """Takes as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, batch: Batch) -> tuple[tf.Tensor | None, Mapping[str, tf.Tensor]]:
        result = super().__call__(batch)
        self.begun.set()
        assert self.may_end.wait(timeout=60.0)
        return result


@pytest.mark.parametrize("warms_up", [True, False])
def test_variables_are_served_while_an_update_is_made(warms_up: bool) -> None:
    learner, update = make_learner(for_ever(), Slow())
    if not warms_up:
        learner.get_variables(["policy"])  # a warm-up sees to it itself
    call = (lambda: learner.warm_up(batch_of(1.0))) if warms_up else learner.step
    thread = threading.Thread(target=call)
    thread.start()
    assert update.begun.wait(timeout=60.0)
    assert update.network.weight.numpy().tolist() == [3.0, 3.0]
    ((weight, at),) = learner.get_variables(["policy"])
    assert (weight.tolist(), int(at)) == ([0.0, 0.0], 0)
    update.may_end.set()
    thread.join()
    ((weight, at),) = learner.get_variables(["policy"])
    assert (weight.tolist(), int(at)) == (([0.0, 0.0], 0) if warms_up else ([3.0, 3.0], 1))


def test_a_warm_up_is_undone_and_not_counted() -> None:
    priorities, counter = Priorities(), counting.Counter()
    metrics: list[Any] = []
    learner, update = make_learner(
        for_ever(), priorities=priorities, counter=counter, on_metrics=metrics.append
    )
    learner.step()
    before = learner.save(), counter.get_counts(), learner.largest_priority
    learner.warm_up(batch_of(5.0))
    np.testing.assert_equal(learner.save(), before[0])
    assert (counter.get_counts(), learner.largest_priority) == before[1:]
    assert len(metrics) == len(priorities.updates) == 1
    learner.step()
    np.testing.assert_array_equal(update.network.weight, [6.0, 6.0])
