"""Agents, tables, specs and seeds, which the processes of a run build alike from its settings."""

import dataclasses
import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
from acme import specs

from agents.contract import Agent
from environments.copies.dead_simulators import first_line
from environments.dm import make_environment_spec
from replay import tables
from replay.structures import Nest, TableSpec
from run_folder.settings import Settings, SettingsError


def seed_of(settings: Settings, role: str, index: int = 0, since: int = 0) -> int:
    """A seed of its own for every part of a run.

    Args:
      settings: of the run.
      role: network, environment, policy or evaluation.
      index: of the part.
      since: actor steps after which it begins, so that it does not begin twice alike.
    """
    roles = ("network", "environment", "policy", "evaluation")
    place = [settings.seed, roles.index(role), index, *([since] if since else [])]
    words = np.random.SeedSequence(place)
    return int(words.generate_state(1)[0] % 2**31)


def environment_spec(settings: Settings) -> specs.EnvironmentSpec:
    """Actions that the run's environment takes, and observations and rewards that it gives."""
    return make_environment_spec(settings.env, full_action_space=settings.full_action_space)


def make_agent(settings: Settings, name: str, config: Any = None) -> Agent:
    """One agent of a run, with its Config there or another one.

    Raises:
      SettingsError: its entry makes no agent, or one of another name.
    """
    try:
        agent = settings.entry(name).make(config or settings.configs[name], name)
    except ValueError as error:
        raise SettingsError(f"--agent={name} cannot be made with these settings: {error}") from None
    except Exception as error:  # whatever somebody's agent raises; its author needs to see it
        traceback.print_exc()
        raise SettingsError(
            f"--agent={name} cannot be made with these settings: {first_line(error)}"
        ) from None
    if not isinstance(agent, Agent) or agent.name != name:
        what = f"one named {agent.name!r}" if isinstance(agent, Agent) else repr(agent)
        raise SettingsError(
            f"--agent={name}: make(config, {name!r}) must give an agents.contract.Agent of that "
            f"name, got {what}."
        )
    return agent


def make_agents(settings: Settings) -> dict[str, Agent]:
    """The run's agents by name. Only the tables of one of them hold the actors back."""
    agents = {name: make_agent(settings, name) for name in settings.agents}
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
    return tables.make_tables(shards, spec, core_states, tables.block_layout(specs))


def core_state_spec(agent: Agent, spec: specs.EnvironmentSpec) -> Nest:
    """Shapes and types of the recurrent state that an item carries, without a batch axis."""
    state = agent.make_network(spec).initial_state(1)
    return tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), state)
