"""Rows are written while the environments make their next step.

    policy | environments            | policy | environments
           | the row before, written |        | the row before, written

So the emulators do not wait until a row has been cut into items, nor the writer for them. Only the
last row of a run that ends is never written; like the rest of its unfinished items it is lost.
"""

import functools
from collections.abc import Callable
from concurrent import futures
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

from agents.actor import Writer
from replay.structures import Nest, Step


class Overlap:
    """A writer of one row behind, for the actor of the environments that it wraps.

    Args:
      writer: whose rows they are. It is called from one thread, which is not the caller's.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._thread = futures.ThreadPoolExecutor(1, "rows")
        self._row: Callable[[], None] | None = None

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        """Keeps a row until the environments step."""
        self._row = functools.partial(
            self._writer.append,
            step,
            core_state=core_state,
            values=values,
            learner_step=learner_step,
        )

    def wrap(self, environments: VectorEnv) -> VectorEnv:
        """The environments, whose `step` also writes the row that is kept.

        Such a step takes as long as the longer of both, and raises what the writer raises.
        """
        return _Overlapped(environments, self._beside)

    def close(self) -> None:
        """Waits for the row that is being written, and gives its thread back."""
        self._thread.shutdown()

    def _beside(self, step: Callable[[], Any]) -> Any:
        if self._row is None:
            return step()
        written, self._row = self._thread.submit(self._row), None
        try:
            return step()
        finally:
            written.result()


class _Overlapped(VectorWrapper):
    def __init__(self, environments: VectorEnv, beside: Callable[[Callable[[], Any]], Any]) -> None:
        super().__init__(environments)
        self._beside = beside

    def step(self, actions: np.ndarray) -> Any:
        return self._beside(functools.partial(self.env.step, actions))
