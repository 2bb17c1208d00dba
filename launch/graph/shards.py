"""Whether a run's replay and learners can be spread over as many nodes as they are asked to."""

import inspect

from agents.contract import Agent
from agents.peers import ALONE
from replay import dataset, tables
from run_folder import building
from run_folder.settings import Settings, SettingsError


def check(settings: Settings) -> None:
    """Checks that every shard has its writers, its share of each table and of each batch.

    Of a batch each of an agent's learners has its share, too.

    Raises:
      SettingsError: one has not.
    """
    num_shards, num_nodes = settings.num_replay_shards, len(settings.crews())
    if num_shards > num_nodes:
        raise SettingsError(
            f"--num_replay_shards={num_shards} needs as many actor nodes, each of which writes to "
            f"one shard; --num_actors={settings.num_actors} and "
            f"--actors_per_node={settings.actors_per_node} make {num_nodes}."
        )
    learners = settings.learners_per_agent
    if num_shards % learners and learners % num_shards:
        raise SettingsError(
            f"Of --learners_per_agent={learners} and --num_replay_shards={num_shards} one must "
            "divide the other: each learner samples as many shards, or each shard serves as many "
            "learners."
        )
    if learners > 1 and settings.colocate_learners:
        raise SettingsError(
            f"--learners_per_agent={learners} gives each learner a process of its own, and "
            "--colocate_learners puts them into one: leave one of the two out."
        )
    for name in settings.agents:
        agent = building.make_agent(settings, name)
        _check_learners(settings, agent)
        try:
            dataset.check_shares(agent.tables, agent.batch_sizes, num_shards)
            for table in agent.tables:
                tables.shard_of(table, num_shards - 1, num_shards)
        except ValueError as error:
            raise SettingsError(
                f"--num_replay_shards={num_shards} does not fit --agent={name}: {error}"
            ) from None


def _check_learners(settings: Settings, agent: Agent) -> None:
    """Checks that several learners of an agent can share its batches.

    Raises:
      SettingsError: they cannot.
    """
    learners = settings.learners_per_agent
    if learners == 1:
        return
    for table, size in zip(agent.tables, agent.batch_sizes, strict=True):
        if size % learners:
            fitting = [str(n) for n in range(2, size + 1) if not size % n][:4]
            raise SettingsError(
                f"--learners_per_agent={learners} must divide what a batch of {agent.name} takes "
                f"from table {table.name!r}, {size} items"
                + (f", as {', '.join(fitting)} would." if fitting else ".")
            )
    try:
        inspect.signature(agent.make_update).bind(None, ALONE)
    except TypeError:
        raise SettingsError(
            f"--learners_per_agent={learners} is not for --agent={agent.name}: its make_update "
            "takes no peers (docs/extending.md)."
        ) from None
