"""Rows are written beside the next step, in order, and no error of either side is lost."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import VectorEnv

from launch.graph.overlap import Overlapped
from replay.structures import Step
from replay.writer import WriterStopped

SECONDS = 30  # on a busy machine


class Written:
    """Remembers rows by their learner step; something may happen in between."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.rows: list[int] = []
        self._meanwhile = meanwhile

    def append(self, step: Step, *, core_state: Any, values: Any, learner_step: int) -> None:
        self._meanwhile()
        self.rows.append(learner_step)


class Stepped(VectorEnv):
    """Environments in whose step something happens."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._meanwhile = meanwhile

    def step(self, actions: np.ndarray) -> Any:
        self._meanwhile()
        return actions


def keep(rows: Overlapped, number: int) -> None:
    step = Step(*[np.zeros(1)] * len(Step._fields))
    rows.append(step, core_state=(), values={}, learner_step=number)


def test_a_row_is_written_while_the_environments_step() -> None:
    """Either side only goes on with the other."""
    both = threading.Barrier(2, timeout=SECONDS)
    written = Written(both.wait)
    environments = Overlapped(Stepped(both.wait), written)
    for number in range(3):
        keep(environments, number)
        assert written.rows == list(range(number))
        assert environments.step(np.full(1, number)) == number
        assert written.rows == list(range(number + 1))
    environments.close()


def test_a_step_without_a_row_is_only_a_step() -> None:
    written = Written()
    environments = Overlapped(Stepped(), written)
    assert environments.step(np.full(1, 7)) == 7
    environments.close()
    assert written.rows == []


def test_what_the_writer_raises_comes_out_of_the_step() -> None:
    def stop() -> None:
        raise WriterStopped("The run ends.")

    environments = Overlapped(Stepped(), Written(stop))
    keep(environments, 0)
    with pytest.raises(WriterStopped, match="The run ends"):
        environments.step(np.zeros(1))
    environments.close()


def test_a_step_that_fails_leaves_the_row_before_it_written() -> None:
    def fail() -> None:
        raise OSError("A level is gone.")

    written = Written()
    environments = Overlapped(Stepped(fail), written)
    keep(environments, 5)
    with pytest.raises(OSError, match="A level is gone"):
        environments.step(np.zeros(1))
    environments.close()
    assert written.rows == [5]
