"""One copy of a level: its episodes go on, whatever becomes of the engines that play them."""

from pathlib import Path

import numpy as np

from environments.dmlab_engine import Engine, EngineLost
from environments.lost_simulators import Losses

Frame = tuple[np.ndarray, str]
"""What is seen, uint8 [72, 96, 3], and what is said."""


class Episodes:
    """Plays in one engine after another; `lost` counts those that ended by themselves.

    `begin` and `step` only ask, so that several copies can be asked before the first answer is
    waited for; `first_frame` and `outcome` wait.
    """

    def __init__(
        self,
        level: str,
        config: dict[str, str],
        losses: Losses,
        *,
        cache: Path,
        patience: float,
        seed: int,
    ) -> None:
        """Starts nothing: the first `begin` does.

        Args:
          level: the engine's name of it, a path.
          config: the engine's settings.
          losses: of the level's engines.
          cache: the folder of compiled maps.
          patience: seconds after which a silent engine is given up.
          seed: from it comes every episode's own.
        """
        self._level = level
        self._config = config
        self._cache = cache
        self._patience = patience
        self._seeds = np.random.default_rng(seed)
        self._engine: Engine | None = None
        self._frame: Frame
        self._losses = losses
        self.lost = 0

    @property
    def frame(self) -> Frame:
        """The newest frame."""
        return self._frame

    def begin(self) -> None:
        """Asks for a new episode, of a new engine where there is none."""
        self._running().reset(int(self._seeds.integers(2**31)))

    def first_frame(self) -> None:
        """Waits until the episode has begun; engines that fail at it are replaced.

        Raises:
          CannotPlayError: as `Losses.add`.
        """
        while True:
            try:
                self._frame = self._running().answer(self._patience)
                return
            except EngineLost as loss:
                self._lose(loss)
                self.begin()

    def step(self, action: tuple[int, ...]) -> None:
        """Asks for a step with a native action."""
        self._running().step(action)

    def outcome(self) -> tuple[float, bool, bool]:
        """Waits for a step and returns (reward, terminated, truncated).

        Either way of ending leaves the frame as it is: an engine shows nothing after an episode's
        last step, let alone after its own.

        Raises:
          CannotPlayError: as `first_frame`.
        """
        try:
            reward, frame = self._running().answer(self._patience)
        except EngineLost as loss:
            self._lose(loss)
            return 0.0, False, True
        self._losses.step(self, ended=frame is None)
        self._frame = frame or self._frame
        return reward, frame is None, False

    def close(self) -> None:
        """Ends the engine."""
        if self._engine is not None:
            self._engine.close()
        self._engine = None

    def _running(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self._level, self._config, self._cache)
        return self._engine

    def _lose(self, loss: EngineLost) -> None:
        pid = self._running().pid
        self.close()
        self.lost += 1
        self._losses.add(self, f"in process {pid} {loss}", loss)
