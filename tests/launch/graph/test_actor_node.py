"""Rows are written beside the next step, in order, and no error of the writer is lost."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from launch.graph.actor_node import OverlappedWriter
from replay.structures import Step
from replay.writer import WriterStopped
from tests.patience import PATIENCE


class Written:
    """Remembers rows by their learner step; something may happen in between."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.rows: list[int] = []
        self._meanwhile = meanwhile

    def append(self, step: Step, *, core_state: Any, values: Any, learner_step: int) -> None:
        self._meanwhile()
        self.rows.append(learner_step)


def _append(rows: OverlappedWriter, number: int) -> None:
    step = Step(*[np.zeros(1)] * len(Step._fields))
    rows.append(step, core_state=(), values={}, learner_step=number)


def test_a_row_is_written_while_the_next_is_made_and_all_are_in_order() -> None:
    """Either side only goes on with the other."""
    both = threading.Barrier(2, timeout=PATIENCE)
    written = Written(both.wait)
    rows = OverlappedWriter(written)
    for number in range(3):
        _append(rows, number)
        assert written.rows == list(range(number))
        both.wait()  # as environments step
    rows.close()
    assert written.rows == [0, 1, 2]


def test_what_the_writer_raises_comes_out_at_the_next_row() -> None:
    def stop() -> None:
        raise WriterStopped("The run ends.")

    rows = OverlappedWriter(Written(stop))
    _append(rows, 0)
    with pytest.raises(WriterStopped, match="The run ends"):
        _append(rows, 1)
    rows.close()
