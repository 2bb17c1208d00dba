"""What runs inside an actor's process."""

import contextlib
import functools
import time
from collections.abc import Mapping
from typing import Any

import launchpad as lp
import numpy as np
import reverb
import tensorflow as tf
from acme import specs

from agents import actor, environment_loop
from agents.contract import Agent
from agents.environment_loop import Episode
from environments import suites
from launch.graph import heartbeats, process
from replay import tables, writer
from replay.structures import Nest, PriorityInput
from run_folder import building
from run_folder.crews import Crew
from run_folder.settings import Settings

REPORT_SECONDS = 1.0


class ActorNode:
    """Some of a run's actors: one process, one policy, one batched forward pass."""

    def __init__(
        self,
        settings: Settings,
        crew: Crew,
        learner: Any,
        replay: reverb.Client,
        coordinator: Any,
    ) -> None:
        self._crew = crew
        process.enter(settings.run_dir, f"actor {crew.actors[0]}")
        self._settings = settings
        self._coordinator = coordinator
        self._replay = replay
        self._learner = learner

    def run(self) -> None:
        """Acts until the run ends."""
        with contextlib.suppress(writer.WriterStopped):
            with heartbeats.while_busy():  # a level loads, the policy is compiled
                loop = self._make_loop()
                first = loop.step()
            self._act(loop, *first)

    def _make_loop(self) -> environment_loop.VectorEnvironmentLoop:
        settings, crew = self._settings, self._crew
        agents = building.make_agents(settings)
        spec = building.environment_spec(settings)
        recurrent = actor.make_actor(
            agents[crew.agent],
            spec,
            actors=crew.ranks,
            num_actors=crew.num_actors,
            seed=building.seed_of(settings, "policy", crew.actors[0]),
            source=self._learner,
            writer=self._make_writer(agents, spec),
        )
        names = [settings.tasks[task] for task in crew.tasks]
        environments = suites.make_each(
            names,
            seed=building.seed_of(settings, "environment", crew.actors[0]),
            full_action_space=settings.full_action_space,
        )
        recurrent.update(wait=True)
        return environment_loop.VectorEnvironmentLoop(environments, recurrent, names)

    def _make_writer(
        self, agents: Mapping[str, Agent], spec: specs.EnvironmentSpec
    ) -> writer.SequenceWriter:
        specs = building.all_tables(agents)
        others = [agent for name, agent in agents.items() if name != self._crew.agent]
        mine = agents[self._crew.agent]
        priorities = {mine.tables[0].name: mine.initial_priority} if mine.initial_priority else {}
        for other in others:
            if other.initial_priority is not None:
                priorities[other.tables[0].name] = functools.partial(self._largest, other.name)
        return writer.SequenceWriter(
            self._replay,
            specs,
            block_length=tables.block_length(specs),
            actors=np.asarray(self._crew.actors),
            tasks=np.asarray(self._crew.tasks),
            agent=list(agents).index(self._crew.agent),
            initial_priorities=priorities,
            foreign_core_states={
                table.name: _zeros(building.core_state_spec(other, spec))
                for other in others
                for table in other.tables
            },
            should_stop=self._should_stop,
        )

    def _largest(self, agent: str, items: PriorityInput) -> np.ndarray:
        """The first priority of items in which another network acted: the reader's largest yet."""
        return np.full(items.mask.shape[1], self._coordinator.largest_priority(agent))

    def _act(
        self, loop: environment_loop.VectorEnvironmentLoop, steps: int, ended: list[Episode]
    ) -> None:
        """Acts until the run ends.

        Args:
          loop: that has begun.
          steps: that it has made.
          ended: its episodes that have ended.
        """
        crew, reported = self._crew, 0
        while True:
            until = time.time() + REPORT_SECONDS
            while time.time() < until:
                heartbeats.beat()
                new_steps, new_ended = loop.step()
                steps += new_steps
                ended += new_ended
            episodes = [
                (crew.actors[e.environment], crew.tasks[e.environment], *e[1:]) for e in ended
            ]
            lost, reported = loop.lost - reported, loop.lost
            if self._coordinator.report_steps(steps, episodes, lost) or lp.wait_for_stop(0):
                return
            steps, ended = 0, []

    def _should_stop(self) -> bool:
        heartbeats.beat()
        return bool(lp.wait_for_stop(0) or self._coordinator.should_stop())


def _zeros(core_state: Nest) -> Nest:
    return tf.nest.map_structure(lambda x: np.zeros(x.shape, x.dtype.as_numpy_dtype), core_state)
