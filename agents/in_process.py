"""An agent's actor, replay and learner in one process, where the caller says who takes a turn."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from agents.actor import make_actor
from agents.batches import Ready
from agents.contract import Agent
from agents.learner import Learner
from replay import tables
from replay.in_memory import InMemoryReplay
from replay.structures import Step
from replay.writer import SequenceWriter


class InProcess:
    """An agent's actor, replay and learner, for N environments, all in the caller's thread.

    Nobody may make anybody wait here, so the tables neither ration nor fill up. All that chance
    decides follows from the seed.

    Args:
      agent: what to run.
      environment_spec: of one environment.
      tasks: `[N]` int, the task that each environment plays.
      seed: of parameters, policy and sampling.

    Attributes:
      learner: its `step` raises RuntimeError where replay holds too few items for a batch.
      update: the learner's, whose `network` is the newest.
      metrics: of the newest update, as tensors; empty before the first.
      replay: what the actor writes and the learner reads.
      actor: acts with the learner's parameters and writes into replay.
    """

    def __init__(
        self, agent: Agent, environment_spec: specs.EnvironmentSpec, *, tasks: np.ndarray, seed: int
    ) -> None:
        tf.random.set_seed(seed)
        # All environments may complete an unroll at once, and nobody can make them wait.
        sizes = [size + len(tasks) for size in agent.batch_sizes]
        self._tables = [
            dataclasses.replace(t, max_size=max(t.max_size, size if t.kind == "queue" else 0))
            for t, size in zip(agent.tables, sizes, strict=True)
        ]
        self._agent, self._tasks = agent, tasks
        self._blocks = tables.block_layout(agent.tables)
        self.update = update = agent.make_update(environment_spec)
        self.metrics: Mapping[str, tf.Tensor] = {}
        self.replay = InMemoryReplay(
            self._tables,
            environment_spec,
            tree.map_structure(lambda x: x[0], update.network.initial_state(1)),
            self._blocks,
            agent.batch_sizes,
            seed=seed,
        )
        self.learner = Learner(
            update,
            _Sampled(self.replay),
            burn_in=agent.tables[0].layout.burn_in,
            priorities=self.replay,
            on_metrics=self._remember,
            on_replaced=lambda: self.actor.update(wait=True),
        )
        network, actors = agent.make_network(environment_spec), np.arange(len(tasks))
        self.actor = make_actor(
            agent,
            network,
            agent.make_policy(network, actors, len(tasks), seed),
            num_environments=len(tasks),
            source=self.learner,
            writer=self,
        )
        self.begin()
        self.actor.update(wait=True)

    def begin(self) -> None:
        """Begins a stream: every environment is about to begin an episode, wherever it was.

        Rows of items that the stream before has not completed are lost.
        """
        self.actor.break_off()
        agent, (first, *_) = self._agent, self._tables
        initial = {first.name: agent.initial_priority} if agent.initial_priority else {}
        self._writer = SequenceWriter(
            self.replay,
            self._tables,
            blocks=self._blocks,
            actors=np.arange(len(self._tasks)),
            tasks=self._tasks,
            agent=0,
            initial_priorities=initial,
        )

    def append(self, step: Step, **more: Any) -> None:
        """Writes a row of every environment, as `SequenceWriter.append`."""
        self._writer.append(step, **more)

    def _remember(self, metrics: Mapping[str, tf.Tensor]) -> None:
        self.metrics = metrics


class _Sampled:
    """A learner's batches, each sampled when it is wanted."""

    def __init__(self, replay: InMemoryReplay) -> None:
        self._replay = replay

    def next(self, timeout: float) -> Ready | None:
        del timeout  # nobody else could write an item meanwhile
        if not self._replay.has_batch():
            raise RuntimeError("The learner cannot step: replay holds too few items for a batch.")
        return Ready.of(self._replay.sample())

    def close(self) -> None:
        """No thread is behind it."""
