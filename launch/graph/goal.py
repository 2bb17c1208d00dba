"""The mean return in evaluations at which a run ends, `--until_return`."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from run_folder import task_returns


class Goal:
    """Counts how many of an agent's newest evaluations, in a row, have reached a return.

    An evaluation has reached it if the mean return of each task is at least that; a task that
    cannot be played, whose mean is NaN, has not. All agents have to be there at the same time.

    Args:
      agents: names of all that are evaluated.
      until_return: to reach; None or infinity is no goal.
      evaluations: in a row that have to reach it.
    """

    def __init__(self, agents: Iterable[str], until_return: float | None, evaluations: int) -> None:
        self._until = math.inf if until_return is None else until_return
        self._evaluations = evaluations
        self._in_a_row = dict.fromkeys(agents, 0)

    def take(self, agent: str, result: Mapping[str, float]) -> str:
        """Counts an evaluation; returns why the run ends now, or nothing where it does not.

        Args:
          agent: that was evaluated.
          result: the row of its log.
        """
        returns = task_returns.of_columns(result) or {"": result["episode_return"]}
        reached = all(value >= self._until for value in returns.values())
        self._in_a_row[agent] = self._in_a_row[agent] + 1 if reached else 0
        if not self._is_reached():
            return ""
        several = f", {self._evaluations} evaluations in a row" * (self._evaluations > 1)
        return (
            f"the evaluator's mean return{' of each task' * (len(returns) > 1)}"
            f"{f' by {agent}' * (len(self._in_a_row) > 1)} was {min(returns.values()):.4g}"
            f"{' or more' * (len(returns) > 1)} at update {result['learner_steps']:,}, "
            f"at least --until_return={self._until:g}{several}"
        )

    def progress(self) -> dict[str, Any] | None:
        """What the progress file says of it; `in_a_row` is of the agent with the fewest."""
        if math.isinf(self._until):
            return None
        return dict(
            until_return=self._until,
            evaluations=self._evaluations,
            in_a_row=min(self._in_a_row.values()),
            is_reached=self._is_reached(),
        )

    def _is_reached(self) -> bool:
        return not math.isinf(self._until) and all(
            count >= self._evaluations for count in self._in_a_row.values()
        )
