"""An agent's replay, learner and actors in one process; whose turn it is, the caller decides."""

import atexit
import dataclasses
import functools
import os
import weakref

import numpy as np
import reverb
import tensorflow as tf
import tree
from acme import specs

from agents.actor import make_actor
from agents.contract import Agent
from agents.learner import Learner
from replay import own_server, quiet, tables
from replay.dataset import make_dataset
from replay.priorities import PriorityUpdater
from replay.stream import Stream
from replay.writer import SequenceWriter


class InProcess:
    """All that an agent needs to act in N environments and to learn from them.

    One thread both acts and learns, so neither a rate limiter nor a queue may make it wait for
    itself: the tables here never do.

    Args:
      agent: what to run.
      environment_spec: of one environment.
      tasks: `[N]` int, the task that each environment plays.
      seed: of parameters and policy. It does not fix a run: Reverb's selectors take no seed.

    Attributes:
      learner: whose `step` waits for items, so the caller first sees that there are some.
      network: the learner's.
      actor: acts with the learner's parameters and writes into replay.
    """

    def __init__(
        self, agent: Agent, environment_spec: specs.EnvironmentSpec, *, tasks: np.ndarray, seed: int
    ) -> None:
        quiet.silence()
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
        self.actor = make_actor(
            agent,
            environment_spec,
            actors=range(len(tasks)),
            num_actors=len(tasks),
            seed=seed,
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
