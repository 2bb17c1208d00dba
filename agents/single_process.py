"""An agent in one process, for `acme.EnvironmentLoop`: actor and learner take turns."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
from absl import flags
from acme import core, specs

from agents.actor import AcmeActor
from agents.contract import Agent
from agents.in_process import InProcess
from replay import tables
from replay.structures import TableSpec

PAPER_REPLAYS_PER_OBSERVATION = 0.8  # Kapturowski et al. 2019, "Extended results"


class SingleProcessAgent(core.Actor, core.VariableSource):
    """Acts in one environment and learns in between.

    No rate limiter paces the learner: `Pace` counts the rows written instead, and says when a
    learner step is due.

    Args:
      agent: what to run.
      environment_spec: of the environment, as `acme.make_environment_spec` gives it. Actions may be
        whole numbers or floats of any size there; the agent itself has them as int32 or float32.
      seed: of parameters and policy.

    Attributes:
      learner: the `acme.core.Learner` inside; it saves and restores.
    """

    def __init__(self, agent: Agent, environment_spec: specs.EnvironmentSpec, *, seed: int) -> None:
        if not flags.FLAGS.is_parsed():
            # acme.EnvironmentLoop.run asks Launchpad for a flag: an error outside absl's app.run.
            flags.FLAGS.mark_as_parsed()
        actions = environment_spec.actions
        self._action_dtype = actions.dtype
        own_dtype = np.int32 if isinstance(actions, specs.DiscreteArray) else np.float32
        environment_spec = environment_spec._replace(actions=actions.replace(dtype=own_dtype))
        # The actor is updated after learner steps only; then it should be up to date.
        agent = dataclasses.replace(agent, variable_update_period=1)
        self._process = InProcess(agent, environment_spec, tasks=np.zeros(1, np.int64), seed=seed)
        self.learner = self._process.learner
        self._actor = AcmeActor(self._process.actor)
        self._pace = pace_of(agent)
        self._rows = 0
        self._learner_steps = 0

    def select_action(self, observation: Any) -> np.ndarray:
        """The action of one step, as the spec has it; observation without a batch axis."""
        return self._actor.select_action(observation).astype(self._action_dtype)

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """A new episode begins."""
        self._actor.observe_first(timestep)

    def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
        """The outcome of the last action."""
        self._actor.observe(action, next_timestep)
        self._rows += 2 if next_timestep.last() else 1  # the last observation is a row too

    def update(self, wait: bool = False) -> None:
        """Makes the learner steps that are due, and then acts with the new parameters."""
        due = self._pace.learner_steps(self._rows)
        if due == self._learner_steps:
            return
        for _ in range(due - self._learner_steps):
            self.learner.step()
        self._learner_steps = due
        self._actor.update(wait)

    def get_variables(self, names: Sequence[str]) -> list[list[np.ndarray]]:
        """The learner's, as `Learner.get_variables`."""
        return self.learner.get_variables(names)

    def close(self) -> None:
        """Ends the replay server and the threads around it."""
        self._process.close()


@dataclasses.dataclass(frozen=True)
class Pace:
    """When a learner that shares its actor's thread makes its steps.

    Attributes:
      first: rows of the stream before the first step.
      period: rows from one step to the next; several steps may fall on one row.
    """

    first: int
    period: float

    def learner_steps(self, rows: int) -> int:
        """Steps that `rows` rows allow."""
        return int((rows - self.first) / self.period) + 1 if rows >= self.first else 0


def pace_of(agent: Agent) -> Pace:
    """The pace of an agent's learner in one environment.

    A queue gives each item once: there are n learner steps to n batches of items, and the row after
    an item's last one completes it. Otherwise it is `samples_per_insert`, and where the agent has
    none, the replays per observation that the R2D2 paper reports.
    """
    table, batch_size = agent.tables[0], agent.batch_sizes[0]
    layout = table.layout
    if table.kind == "queue":
        return Pace(batch_size * layout.period + 1, batch_size * layout.period)
    if table.samples_per_insert is not None:
        rows_per_sample = layout.period / table.samples_per_insert
    else:
        rows_per_sample = layout.length / PAPER_REPLAYS_PER_OBSERVATION
    first = _rows_to_fill(table, tables.block_length([table]))
    return Pace(first, batch_size * rows_per_sample)


def _rows_to_fill(table: TableSpec, block_length: int) -> int:
    """Rows that fill a table to its least size, and surely hold one item."""
    layout = table.layout
    return max(table.min_size * layout.period, layout.length + 2 * block_length)
