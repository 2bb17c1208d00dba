"""A learner, alone or one of several, and the part of each batch that it learns from."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import reverb
import tensorflow as tf
from acme.utils import counting

from agents.learner import Learner
from agents.several_learners import Learners
from launch.graph import heartbeats
from replay import dataset, insistence, priorities, tables
from run_folder.building import all_tables, core_state_spec, environment_spec, make_agents, seed_of
from run_folder.settings import Settings

T = TypeVar("T")


class Learning(NamedTuple):
    """A learner and what it is made with."""

    learner: Learner
    priorities: priorities.PriorityUpdater
    watch: insistence.Watch  # over the replay servers it samples
    batch_spec: Any  # of its part of a batch
    item_bytes: int  # of one, not compressed

    def try_step(self, timeout: float) -> None:
        """Learns from a batch, if one comes within so many seconds."""
        heartbeats.beat()
        if self.learner.try_step(timeout):
            self.watch.over()
        else:
            self.watch.wait()

    @heartbeats.while_busy()
    def warm_up(self) -> None:
        """Takes what rank 0 has, and builds the update's graph."""
        self.learner.share()
        self.learner.warm_up(zeros(self.batch_spec))


def make_learning(
    settings: Settings,
    name: str,
    replays: Sequence[reverb.Client],
    learners: Learners,
    counter: counting.Counter | None = None,
    on_metrics: Callable[[Mapping[str, tf.Tensor]], None] = lambda metrics: None,
) -> Learning:
    """The learner of an agent, or one of its learners, in whose process this is called.

    Args:
      settings: of the run.
      name: the agent's.
      replays: clients of all shards.
      learners: of which it is one.
      counter, on_metrics: as of `Learner`.
    """
    tf.random.set_seed(seed_of(settings, "network"))
    agents = make_agents(settings)
    agent, spec = agents[name], environment_spec(settings)
    own = own_shards(replays, learners.rank, learners.size)
    table = agent.tables[0]
    updater = priorities.PriorityUpdater(own, table.name)
    update = agent.make_update(spec)
    batches = dataset.make_dataset(
        [replay.server_address for replay in own],
        agent.tables,
        spec,
        core_state_spec(agent, spec),
        tables.block_layout(all_tables(agents)),
        [size // learners.size for size in agent.batch_sizes],
    )
    learner = Learner(
        update,
        iter(batches),
        burn_in=table.layout.burn_in,
        priorities=updater,
        counter=counter,
        on_metrics=on_metrics,
        learners=learners,
    )
    batch_spec, part = batches.element_spec, agent.batch_size // learners.size
    item_bytes = raw_item_bytes(batch_spec, part, agent.frame_stack)
    return Learning(learner, updater, insistence.Watch(own), batch_spec, item_bytes)


def own_shards(shards: Sequence[T], rank: int, size: int) -> Sequence[T]:
    """What one of several learners samples: some of the shards, or one that others sample too.

    Of the two numbers one divides the other.
    """
    if len(shards) < size:
        return [shards[rank % len(shards)]]
    return shards[rank * len(shards) // size : (rank + 1) * len(shards) // size]


def zeros(batch_spec: Any) -> Any:
    """A batch in which nothing happened."""
    return tf.nest.map_structure(lambda leaf: tf.zeros(leaf.shape, leaf.dtype), batch_spec)


def raw_item_bytes(batch_spec: Any, batch_size: int, frame_stack: int) -> int:
    """Uncompressed bytes of one item, from the shapes of a batch (whose frames are stacked)."""
    sizes = [
        spec.dtype.size * math.prod(d or batch_size for d in spec.shape)
        for spec in tf.nest.flatten(batch_spec)
    ]
    return int(sum(sizes) / batch_size / frame_stack)
