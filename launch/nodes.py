"""What runs inside the replay and actor processes, and what all nodes build alike."""

import contextlib
import dataclasses
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
from environments import suites
from launch import bucket, catalogue, process, replay_files, saver
from launch.crews import Crew
from launch.settings import Settings
from replay import tables, writer
from replay.structures import Nest, PriorityInput, TableSpec

REPORT_SECONDS = 1.0


def seed_of(settings: Settings, role: str, index: int = 0) -> int:
    """A seed of its own for every part of a run."""
    roles = ("network", "environment", "policy", "evaluation")
    words = np.random.SeedSequence([settings.seed, roles.index(role), index])
    return int(words.generate_state(1)[0] % 2**31)


def environment_spec(settings: Settings) -> specs.EnvironmentSpec:
    """What the run's environment takes and gives."""
    return suites.make_environment_spec(settings.env, full_action_space=settings.full_action_space)


def make_agents(settings: Settings) -> dict[str, Agent]:
    """The run's agents by name. Only the tables of one of them hold the actors back."""
    agents = {name: catalogue.make(name, config) for name, config in settings.configs.items()}
    return {
        name: dataclasses.replace(
            agent,
            tables=tuple(
                dataclasses.replace(table, paces=name == settings.paced_by)
                for table in agent.tables
            ),
        )
        for name, agent in agents.items()
    }


def all_tables(agents: Mapping[str, Agent]) -> list[TableSpec]:
    """Every table of a run: one stream feeds them all."""
    return [table for agent in agents.values() for table in agent.tables]


def make_tables(settings: Settings, shard: int) -> list[reverb.Table]:
    """The tables of a replay node, in whose process this is called."""
    process.enter(settings.run_dir, f"replay {shard}")
    return tables_of_shard(settings, shard)


def replay_checkpointer(
    settings: Settings, replay: str | None, shard: int
) -> reverb.checkpointers.CheckpointerBase:
    """Where a replay node writes its checkpoints, and the one it begins with, if there is one."""
    mirror = bucket.mirror(settings.run_dir)
    if replay is not None:
        mirror.fetch(f"checkpoints/{replay}/{shard}/*")
    checkpointer = saver.replay_checkpointer(settings.path / "checkpoints", replay, shard)
    if bucket.is_bucket(settings.run_dir):
        staging = f"checkpoints/staging/{shard}"
        replay_files.keep_shipping(mirror.path / staging, f"{mirror.root}/{staging}")
    return checkpointer


def tables_of_shard(settings: Settings, shard: int) -> list[reverb.Table]:
    """A shard of every table of a run."""
    agents = make_agents(settings)
    spec = environment_spec(settings)
    core_states = {
        table.name: core_state_spec(agent, spec)
        for agent in agents.values()
        for table in agent.tables
    }
    specs = all_tables(agents)
    shards = [tables.shard_of(table, shard, settings.num_replay_shards) for table in specs]
    return tables.make_tables(shards, spec, core_states, tables.block_length(specs))


def core_state_spec(agent: Agent, spec: specs.EnvironmentSpec) -> Nest:
    """Shapes and types of the recurrent state that an item carries, without a batch axis."""
    state = agent.make_network(spec).initial_state(1)
    return tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), state)


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
        loop = self._make_loop()
        with contextlib.suppress(writer.WriterStopped):
            self._act(loop)

    def _make_loop(self) -> environment_loop.VectorEnvironmentLoop:
        settings, crew = self._settings, self._crew
        agents = make_agents(settings)
        spec = environment_spec(settings)
        recurrent = actor.make_actor(
            agents[crew.agent],
            spec,
            actors=crew.ranks,
            num_actors=crew.peers,
            seed=seed_of(settings, "policy", crew.actors[0]),
            source=self._learner,
            writer=self._make_writer(agents, spec),
        )
        names = [settings.tasks[task] for task in crew.tasks]
        environments = suites.make_each(
            names,
            seed=seed_of(settings, "environment", crew.actors[0]),
            full_action_space=settings.full_action_space,
        )
        recurrent.update(wait=True)
        return environment_loop.VectorEnvironmentLoop(environments, recurrent, names)

    def _make_writer(
        self, agents: Mapping[str, Agent], spec: specs.EnvironmentSpec
    ) -> writer.SequenceWriter:
        specs = all_tables(agents)
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
                table.name: _zeros(core_state_spec(other, spec))
                for other in others
                for table in other.tables
            },
            should_stop=self._should_stop,
        )

    def _largest(self, agent: str, items: PriorityInput) -> np.ndarray:
        """The first priority of items in which another network acted: the reader's largest yet."""
        return np.full(items.mask.shape[1], self._coordinator.largest_priority(agent))

    def _act(self, loop: environment_loop.VectorEnvironmentLoop) -> None:
        crew = self._crew
        while True:
            steps, episodes, lost = 0, [], loop.lost
            until = time.time() + REPORT_SECONDS
            while time.time() < until:
                new_steps, ended = loop.step()
                steps += new_steps
                episodes += [
                    (crew.actors[e.environment], crew.tasks[e.environment], *e[1:]) for e in ended
                ]
            lost = loop.lost - lost
            if self._coordinator.report_steps(steps, episodes, lost) or lp.wait_for_stop(0):
                return

    def _should_stop(self) -> bool:
        return bool(lp.wait_for_stop(0) or self._coordinator.should_stop())


def _zeros(core_state: Nest) -> Nest:
    return tf.nest.map_structure(lambda x: np.zeros(x.shape, x.dtype.as_numpy_dtype), core_state)
