"""An agent in one process, for `acme.EnvironmentLoop`: actor and learner take turns."""

import dataclasses

import numpy as np
import reverb
import tensorflow as tf
import tree
from absl import flags
from acme import specs
from acme.agents import agent as acme_agent

from agents.actor import AcmeActor, make_actor
from agents.contract import Agent
from agents.learner import Learner
from replay import tables
from replay.dataset import make_dataset
from replay.priorities import PriorityUpdater
from replay.structures import TableSpec
from replay.writer import SequenceWriter

PAPER_REPLAYS_PER_OBSERVATION = 0.8  # Kapturowski et al. 2019, "Extended results"


class SingleProcessAgent(acme_agent.Agent):
    """Acts in one environment, learns in between: `acme.core.Actor` and `VariableSource`.

    One thread both acts and learns, so a rate limiter would make it wait for itself. The learner's
    steps are paced by counting observations instead: `samples_per_insert` where the agent has one,
    and otherwise the replays per observation that the R2D2 paper reports.

    Args:
      agent: what to run.
      environment_spec: of the environment, as `acme.make_environment_spec` gives it.
      seed: of parameters and policy.

    Attributes:
      learner: the `acme.core.Learner` inside; it saves and restores.
    """

    def __init__(self, agent: Agent, environment_spec: specs.EnvironmentSpec, *, seed: int) -> None:
        if not flags.FLAGS.is_parsed():
            # acme.EnvironmentLoop.run asks Launchpad for a flag: an error outside absl's app.run.
            flags.FLAGS.mark_as_parsed()
        tf.random.set_seed(seed)
        # Acme updates the actor after learner steps only; then it should be up to date.
        agent = dataclasses.replace(agent, variable_update_period=1)
        table = dataclasses.replace(agent.tables[0], min_size=1, samples_per_insert=None)
        length = tables.block_length([table])
        update = agent.make_update(environment_spec)
        core_state = tree.map_structure(lambda x: x[0], update.network.initial_state(1))
        self._server = reverb.Server(
            tables.make_tables([table], environment_spec, {table.name: core_state}, length)
        )
        client = self._server.localhost_client()
        self._priorities = PriorityUpdater(client, table.name)
        self.learner = Learner(
            update,
            iter(
                make_dataset(
                    client.server_address,
                    table,
                    environment_spec,
                    core_state,
                    length,
                    agent.batch_size,
                )
            ),
            burn_in=table.layout.burn_in,
            priorities=self._priorities,
        )
        initial_priorities = (
            {table.name: agent.initial_priority} if agent.initial_priority is not None else {}
        )
        self._writer = SequenceWriter(
            client,
            [table],
            block_length=length,
            actors=np.zeros(1, np.int64),
            tasks=np.zeros(1, np.int64),
            agent=0,
            initial_priorities=initial_priorities,
        )
        actor = make_actor(
            agent,
            environment_spec,
            actors=[0],
            num_actors=1,
            seed=seed,
            source=self.learner,
            writer=self._writer,
        )
        actor.update(wait=True)
        super().__init__(
            AcmeActor(actor),
            self.learner,
            min_observations=_min_observations(agent.tables[0], length),
            observations_per_step=_observations_per_step(agent),
        )

    def close(self) -> None:
        """Ends the replay server and the threads around it."""
        self._priorities.close()
        self._writer.close()
        self._server.stop()


def _min_observations(table: TableSpec, block_length: int) -> int:
    """Observations that fill the table to its least size, and surely hold one item."""
    layout = table.layout
    return max(table.min_size * layout.period, layout.length + 2 * block_length)


def _observations_per_step(agent: Agent) -> float:
    """Observations to each learner step. An item brings `period` new ones."""
    table = agent.tables[0]
    if table.samples_per_insert is not None:
        return agent.batch_size * table.layout.period / table.samples_per_insert
    return agent.batch_size * table.layout.length / PAPER_REPLAYS_PER_OBSERVATION
