"""An update's function: by operation, or compiled as a whole where a GPU computes."""

from typing import Any

import pytest
import tensorflow as tf

from agents.compilation import is_refused, update_function
from agents.several_learners import Learners, among
from replay.structures import Batch
from tensor_ops.xla import within_xla
from tests.batches import bare


class Doubling(tf.Module):
    """x <- 2 x + batch."""

    def __init__(self, *, compilable: bool = True) -> None:
        super().__init__()
        self.compiled: list[bool] = []  # of each time that it was traced
        self._x = tf.Variable(1.0)
        self._compilable = compilable

    @update_function
    def __call__(self, batch: Batch) -> tf.Tensor:
        """Returns x."""
        self.compiled.append(within_xla())
        number = batch.reward
        if not self._compilable:
            number = tf.strings.to_number(tf.strings.as_string(number))
        return self._x.assign(2.0 * self._x + number)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])


def _results(update: Any) -> list[float]:
    return [float(update(bare(reward=tf.constant(number)))) for number in (1.0, 0.5)]


def test_a_processor_goes_by_operation() -> None:
    update = Doubling()
    assert _results(update) == [3.0, 6.5]
    assert update.compiled == [False]


@pytest.mark.usefixtures("gpu")
def test_a_gpu_is_given_the_whole() -> None:
    update, other = Doubling(), Doubling()
    assert _results(update) == _results(other) == [3.0, 6.5]
    assert update.compiled == other.compiled == [True]
    assert not is_refused(update)


@pytest.mark.usefixtures("gpu")
def test_other_learners_are_heard_of_in_between() -> None:
    update, two = Doubling(), Learners()
    two.size = 2
    with among(two):
        assert _results(update) == [3.0, 6.5]
    assert update.compiled == [False]


@pytest.mark.usefixtures("gpu")
def test_what_xla_does_not_have_goes_by_operation(caplog: pytest.LogCaptureFixture) -> None:
    update = Doubling(compilable=False)
    assert _results(update) == [3.0, 6.5]
    assert update.compiled == [True, False]
    assert is_refused(update)
    assert caplog.text.count("XLA cannot compile the update") == 1
    assert "AsString" in caplog.text
