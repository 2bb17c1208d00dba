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


class Overlapped(VectorWrapper):
    """Environments that are also the writer, of one row behind, of the actor who plays them.

    Args:
      environments: that are stepped, and closed with this.
      writer: whose rows they are. It is called from one thread, which is not the caller's.
    """

    def __init__(self, environments: VectorEnv, writer: Writer) -> None:
        super().__init__(environments)
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

    def step(self, actions: np.ndarray) -> Any:
        """Steps the environments, and writes the row that is kept.

        It takes as long as the longer of both, and raises what the writer raises.
        """
        if self._row is None:
            return self.env.step(actions)
        written, self._row = self._thread.submit(self._row), None
        try:
            return self.env.step(actions)
        finally:
            written.result()

    def close(self, **kwargs: Any) -> None:
        """Closes the environments, and gives the thread back."""
        super().close(**kwargs)
        self._thread.shutdown()
