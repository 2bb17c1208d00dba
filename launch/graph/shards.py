"""Whether a run's replay can be spread over as many nodes as it is asked to."""

from replay import dataset, tables
from run_folder import building
from run_folder.crews import crews
from run_folder.settings import Settings, SettingsError


def check(settings: Settings) -> None:
    """Checks that every shard has its writers, its share of each table and of each batch.

    Raises:
      SettingsError: one has not.
    """
    num_shards, num_nodes = settings.num_replay_shards, len(crews(settings))
    if num_shards > num_nodes:
        raise SettingsError(
            f"--num_replay_shards={num_shards} needs as many actor nodes, each of which writes to "
            f"one shard; --num_actors={settings.num_actors} and "
            f"--actors_per_node={settings.actors_per_node} make {num_nodes}."
        )
    for name in settings.agents:
        agent = building.make_agent(settings, name)
        try:
            dataset.check_shares(agent.tables, agent.batch_sizes, num_shards)
            for table in agent.tables:
                tables.shard_of(table, num_shards - 1, num_shards)
        except ValueError as error:
            raise SettingsError(
                f"--num_replay_shards={num_shards} does not fit --agent={name}: {error}"
            ) from None
