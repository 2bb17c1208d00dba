"""One environment after another: what raises is replaced, and its episode is lost."""

from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium
from absl import logging

from environments.lost_simulators import Losses, raised


def close(env: gymnasium.Env) -> None:
    """Closes an environment; what that raises is noted, since nothing depends on it."""
    try:
        env.close()
    except Exception as error:  # whatever somebody's code raises
        logging.warning("The end of an environment %s", raised(error))


class Replaced(gymnasium.Wrapper):
    """An environment whose episodes go on, whatever its code raises.

    A step that raises ends the episode: it is truncated, and shows again what was seen last. The
    next reset makes a new environment. `infos["lost"]` counts those that raised.

    Args:
      make: makes one.
      losses: counts them.
    """

    def __init__(self, make: Callable[[], gymnasium.Env], losses: Losses) -> None:
        super().__init__(make())
        self._make = make
        self._broken = False
        self._losses = losses
        self._seen: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode, of a new environment where the last one raised.

        Raises:
          CannotPlayError: as `Losses.add`.
        """
        lost = 0
        while True:
            try:
                if self._broken:
                    self.env = self._make()
                    self._broken = False
                self._seen, info = self.env.reset(seed=seed, options=options)
                return self._seen, dict(info, lost=lost)
            except (Exception, SystemExit) as error:  # whatever somebody's code raises
                lost += 1
                self._lose(error)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Acts.

        Raises:
          CannotPlayError: as `reset`.
        """
        try:
            seen, reward, terminated, truncated, info = self.env.step(action)
        except (Exception, SystemExit) as error:  # whatever somebody's code raises
            self._lose(error)
            return self._seen, 0.0, False, True, {"lost": 1}
        self._losses.step(self, ended=bool(terminated or truncated))
        self._seen = seen
        return seen, reward, terminated, truncated, info

    def close(self) -> None:
        """Closes the environment."""
        close(self.env)

    def _lose(self, error: Exception | SystemExit) -> None:
        close(self.env)
        self._broken = True
        self._losses.add(self, raised(error), error)
