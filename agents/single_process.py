"""An agent in one process: actor and learner take turns.

A `SingleProcessAgent`, for `acme.EnvironmentLoop`, decides on the turns itself; in an `InProcess`
the caller does.
"""

import atexit
import dataclasses
import functools
import os
import weakref
from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
import reverb
import tensorflow as tf
import tree
from absl import flags
from acme import core, specs

from agents.actor import RecurrentActor, make_actor
from agents.contract import Agent
from agents.finite import check_rewards
from agents.learner import Learner
from environments.copies import conversion
from environments.copies.from_dm import space_of
from environments.copies.spec import spec_of
from replay import own_server, tables
from replay.dataset import Stream, make_dataset
from replay.priorities import PriorityUpdater
from replay.structures import FIRST, LAST, MID
from replay.writer import SequenceWriter

PAPER_REPLAYS_PER_OBSERVATION = 0.8  # Kapturowski et al. 2019, "Extended results"


class InProcess:
    """An agent's actor, replay and learner, for N environments.

    One thread both acts and learns, so neither a rate limiter nor a queue may make it wait for
    itself: the tables here never do.

    Args:
      agent: what to run.
      environment_spec: of one environment.
      tasks: `[N]` int, the task that each environment plays.
      seed: of parameters and policy. It does not fix a run: Reverb's selectors take no seed.

    Attributes:
      learner: its `step` waits for items, so the caller first sees that there are some.
      network: the learner's.
      actor: acts with the learner's parameters and writes into replay.
    """

    def __init__(
        self, agent: Agent, environment_spec: specs.EnvironmentSpec, *, tasks: np.ndarray, seed: int
    ) -> None:
        own_server.silence()
        tf.random.set_seed(seed)
        unlimited = [
            dataclasses.replace(table, min_size=1, samples_per_insert=None)
            for table in agent.tables
        ]
        first = unlimited[0]
        blocks = tables.block_layout(unlimited)
        update = agent.make_update(environment_spec)
        core_state = tree.map_structure(lambda x: x[0], update.network.initial_state(1))
        core_states = {table.name: core_state for table in unlimited}
        self._server = reverb.Server(
            tables.make_tables(unlimited, environment_spec, core_states, blocks),
            # By default it would make a temporary folder and leave it behind.
            checkpointer=reverb.checkpointers.DefaultCheckpointer(os.devnull),
        )
        self._client = self._server.localhost_client()
        self._table = first.name
        self._priorities = PriorityUpdater([self._client], first.name)
        self._batches = Stream(
            make_dataset(
                [self._client.server_address],
                unlimited,
                environment_spec,
                core_state,
                blocks,
                agent.batch_sizes,
                same_process=True,
            )
        )
        self.num_items()  # connects the client, as the stream is already
        own_server.shut(self._server)
        self.network = update.network
        self.learner = Learner(
            update,
            self._batches,
            burn_in=first.layout.burn_in,
            priorities=self._priorities,
            on_replaced=lambda: self.actor.update(wait=True),
        )
        self._writer = SequenceWriter(
            self._client,
            unlimited,
            blocks=blocks,
            actors=np.arange(len(tasks)),
            tasks=tasks,
            agent=0,
            initial_priorities=(
                {first.name: agent.initial_priority} if agent.initial_priority else {}
            ),
        )
        network, actors = agent.make_network(environment_spec), np.arange(len(tasks))
        policy = agent.make_policy(network, actors, len(tasks), seed)
        self.actor = make_actor(
            agent,
            network,
            policy,
            num_environments=len(tasks),
            source=self.learner,
            writer=self._writer,
        )
        self.actor.update(wait=True)
        self._at_exit = functools.partial(_close, weakref.ref(self))
        atexit.register(self._at_exit)

    def num_items(self) -> int:
        """Items in the agent's first table."""
        return int(self._client.server_info()[self._table].current_size)

    def close(self) -> None:
        """Ends the replay server and the threads around it, as the interpreter's end does."""
        atexit.unregister(self._at_exit)
        self._priorities.close()
        self._writer.close()
        self._server.stop()  # first, or what waits for an item is not woken up for seconds
        self._batches.close()
        self.learner.close()


def _close(made: "weakref.ref[InProcess]") -> None:
    process = made()
    if process is not None:
        process.close()


class AcmeActor(core.Actor):
    """A `RecurrentActor` of one environment behind Acme's interface."""

    def __init__(self, actor: RecurrentActor) -> None:
        self._actor = actor
        self._step_type = FIRST

    def select_action(self, observation: Any) -> np.ndarray:
        """The action of one step; observation without a batch axis."""
        batched = tree.map_structure(lambda x: np.asarray(x)[np.newaxis], observation)
        return self._actor.act(batched, np.array([self._step_type]), np.zeros(1, np.uint8))[0]

    def observe_first(self, timestep: dm_env.TimeStep) -> None:
        """A new episode begins."""
        self._step_type = FIRST

    def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
        """The outcome of the last action. An episode's last observation becomes its own row.

        Raises:
          NotFiniteError: when the reward is not; the writer has seen nothing of such a step.
        """
        discount = 1.0 if next_timestep.discount is None else next_timestep.discount
        self._observe(next_timestep.reward, float(discount > 0))
        self._step_type = MID
        if next_timestep.last():
            self._step_type = LAST
            self.select_action(next_timestep.observation)
            self._observe(0.0, 1.0)

    def update(self, wait: bool = False) -> None:
        """Fetches parameters, as `RecurrentActor.update`."""
        self._actor.update(wait)

    def _observe(self, reward: float, continuation: float) -> None:
        rewards = np.array([reward], np.float32)
        check_rewards(rewards, ("The environment",))
        self._actor.observe(rewards, np.array([continuation], np.float32))


class SingleProcessAgent(AcmeActor, core.VariableSource):
    """Acts in one environment and learns in between, for `acme.EnvironmentLoop`.

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
        try:
            seen = conversion.observed(space_of(environment_spec.observations))
            acted = conversion.acted(space_of(environment_spec.actions))
        except ValueError as error:
            raise ValueError(f"The environment cannot be played: {error}") from None
        self._see, self._act = seen.convert, acted.convert
        environment_spec = spec_of(seen.space, acted.space)
        # The actor is updated after learner steps only; then it should be up to date.
        agent = dataclasses.replace(agent, variable_update_period=1)
        self._process = InProcess(agent, environment_spec, tasks=np.zeros(1, np.int64), seed=seed)
        self.learner = self._process.learner
        super().__init__(self._process.actor)
        self._pace = pace_of(agent)
        self._rows = 0
        self._learner_steps = 0

    def select_action(self, observation: Any) -> Any:
        """The action of one step, as the spec has it; observation without a batch axis."""
        return np.asarray(self._act(super().select_action(self._see(observation))))[()]

    def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
        """The outcome of the last action."""
        super().observe(action, next_timestep)
        self._rows += 2 if next_timestep.last() else 1  # the last observation is a row too

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


@dataclasses.dataclass(frozen=True)
class Pace:
    """The rows of a stream at which a learner in its actor's thread makes its steps.

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
    layout, block = table.layout, tables.block_layout([table]).length
    of_first = -(-layout.length // block) * block + 1  # whole blocks, and the row after them
    if table.kind == "queue":
        return Pace((batch_size - 1) * layout.period + of_first, batch_size * layout.period)
    if table.samples_per_insert is not None:
        rows_per_sample = layout.period / table.samples_per_insert
    else:
        rows_per_sample = layout.length / PAPER_REPLAYS_PER_OBSERVATION
    # Enough to fill a table to its least size, and one item at least.
    first = max(table.min_size * layout.period, of_first)
    return Pace(first, batch_size * rows_per_sample)
