"""An update's function, or a policy's: by operation, or compiled where a GPU computes."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.compilation import is_refused, policy_function, update_function
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


@pytest.mark.parametrize("compilable", [True, False])
@pytest.mark.parametrize("has_gpu", [True, False])
def test_an_actors_policy_too(
    has_gpu: bool,
    compilable: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if has_gpu:
        monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
    compiled: list[bool] = []

    def counting(inputs: Any, core_state: tf.Tensor) -> tf.Tensor:
        compiled.append(within_xla())
        if not compilable:
            core_state = tf.strings.to_number(tf.strings.as_string(core_state))
        return core_state + 1.0

    acting: Any = policy_function(counting)
    state = np.zeros(2, np.float32)
    for step in range(1, 4):
        state = acting(None, state).numpy()
        np.testing.assert_array_equal(state, step)
    attempts = [True] * has_gpu + [False] * (not (has_gpu and compilable))
    assert compiled == attempts
    assert caplog.text.count("XLA cannot compile the policy") == (has_gpu and not compilable)


@pytest.mark.usefixtures("gpu")
def test_what_a_gpu_cannot_do_now_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """A GPU that is full, or gone, would not be there for single operations either."""
    for error in (tf.errors.ResourceExhaustedError, tf.errors.InternalError):

        def failing(*_: Any, error: type[Exception] = error) -> tf.Tensor:
            raise error(None, None, "OOM when allocating tensor")

        acting: Any = policy_function(tf.autograph.experimental.do_not_convert(failing))
        with pytest.raises(error, match="OOM when"):
            acting(None, None)
    assert "XLA cannot" not in caplog.text
