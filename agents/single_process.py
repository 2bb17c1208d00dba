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
from environments.copies import conversion
from environments.copies.from_dm import space_of
from environments.dm import spec_of
from replay import tables
from replay.structures import TableSpec

PAPER_REPLAYS_PER_OBSERVATION = 0.8  # Kapturowski et al. 2019, "Extended results"


class SingleProcessAgent(core.Actor, core.VariableSource):
    """Acts in one environment and learns in between.

    No rate limiter paces the learner: `Pace` counts the rows written instead, and says when a
    learner step is due.

    Args:
      agent: what to run.
      environment_spec: of the environment, as `acme.make_environment_spec` gives it; the agent sees
        and acts as `environments.copies.conversion` has it.
      seed: of parameters and policy.

    Raises:
      ValueError: the agent cannot play such an environment.

    Attributes:
      learner: the `acme.core.Learner` inside.
    """

    def __init__(self, agent: Agent, environment_spec: specs.EnvironmentSpec, *, seed: int) -> None:
        if not flags.FLAGS.is_parsed():
            # acme.EnvironmentLoop.run asks Launchpad for a flag: an error outside absl's app.run.
            flags.FLAGS.mark_as_parsed()
        seen, acted = _converted(environment_spec)
        self._see, self._act = seen.convert, acted.convert
        environment_spec = spec_of(seen.space, acted.space)
        # The actor is updated after learner steps only; then it should be up to date.
        agent = dataclasses.replace(agent, variable_update_period=1)
        self._process = InProcess(agent, environment_spec, tasks=np.zeros(1, np.int64), seed=seed)
        self.learner = self._process.learner
        self._actor = AcmeActor(self._process.actor)
        self._pace = pace_of(agent)
        self._rows = 0
        self._learner_steps = 0

    def select_action(self, observation: Any) -> Any:
        """The action of one step, as the spec has it; observation without a batch axis."""
        return np.asarray(self._act(self._actor.select_action(self._see(observation))))[()]

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """A new episode begins."""
        self._actor.observe_first(timestep)

    def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
        """The outcome of the last action."""
        last = next_timestep.last()
        seen = self._see(next_timestep.observation) if last else None  # else it is acted on
        self._actor.observe(action, next_timestep._replace(observation=seen))
        self._rows += 2 if last else 1  # the last observation is a row too

    def update(self, wait: bool = False) -> None:
        """Makes the learner steps that are due, and then acts with the new parameters."""
        due = self._pace.learner_steps(self._rows)
        if due == self._learner_steps:
            return
        for _ in range(due - self._learner_steps):
            self.learner.step()
        self._learner_steps = due
        # In the background it would be an update late, or not: a race.
        self._actor.update(wait=True)

    def save(self, prefix: str) -> None:
        """Writes all that learning depends on, but for the replay, to files that begin so.

        Raises:
          NotFiniteError, BrokenOffError: of an update; nothing is written.
        """
        self.learner.write_checkpoint(prefix)

    def load(self, prefix: str) -> None:
        """Acts and learns on from what `save` wrote.

        Raises:
          tf.errors.OpError, ValueError, AssertionError: when the files are missing, corrupt, or
            another agent's.
        """
        self.learner.read_checkpoint(prefix)

    def get_variables(self, names: Sequence[str]) -> list[list[np.ndarray]]:
        """The learner's, as `Learner.get_variables`."""
        return self.learner.get_variables(names)

    def close(self) -> None:
        """Ends the replay server and the threads around it."""
        self._process.close()


def _converted(
    environment_spec: specs.EnvironmentSpec,
) -> tuple[conversion.Observed, conversion.Acted]:
    """How an environment's observations and actions are those that agents know."""
    try:
        seen = conversion.observed(space_of(environment_spec.observations))
        return seen, conversion.acted(space_of(environment_spec.actions))
    except ValueError as error:
        raise ValueError(f"The environment cannot be played: {error}") from None


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

    A queue gives each item once: there are n learner steps to n batches of items. The first item
    has its length of new rows, each later one a period; it leaves with the block of its last row,
    once the row after that block is known.
    Otherwise it is `samples_per_insert`, and where the agent has none, the replays per observation
    that the R2D2 paper reports.
    """
    table, batch_size = agent.tables[0], agent.batch_sizes[0]
    layout = table.layout
    if table.kind == "queue":
        of_first = _rows_of_first(table)
        return Pace((batch_size - 1) * layout.period + of_first, batch_size * layout.period)
    if table.samples_per_insert is not None:
        rows_per_sample = layout.period / table.samples_per_insert
    else:
        rows_per_sample = layout.length / PAPER_REPLAYS_PER_OBSERVATION
    # Enough to fill a table to its least size, and one item at least.
    first = max(table.min_size * layout.period, _rows_of_first(table))
    return Pace(first, batch_size * rows_per_sample)


def _rows_of_first(table: TableSpec) -> int:
    """Rows after which the first item has left: whole blocks, and the row after them."""
    length = tables.block_layout([table]).length
    return -(-table.layout.length // length) * length + 1
