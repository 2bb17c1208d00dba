"""An agent's learners: how they find each other, and what each learns from.

One learner has all of a batch. Of several each has a part, and has to be told where the others are:
all come to the coordinator with an address of one meeting. A learner that is started again has a
new one, and then there is a new meeting, to which all have to come anew: what was agreed on with
the one that is gone is void.
"""

import importlib
import math
import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import portpicker
import reverb
import tensorflow as tf
from acme.utils import counting

from agents.batches import Fetched
from agents.learner import Learner
from agents.several_learners import ALONE, Learners, Together
from launch.graph import process
from launch.graph.servers import StoppedError
from replay import dataset, insistence, tables
from replay.priority_updater import PriorityUpdater
from run_folder.building import all_tables, core_state_spec, environment_spec, make_agents, seed_of
from run_folder.settings import Settings

T = TypeVar("T")
_DEMONSTRATIONS = "launch.graph.demonstrations"  # which most runs do without
ASK_SECONDS = 0.2  # between two looks whether all have come
# Held while a learner is made: its parameters follow from TensorFlow's seed, which threads of one
# process share, as the learners of several agents may be.
MAKING = threading.Lock()


class Meetings:
    """The coordinator's part: of each agent's learners, the newest. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._addresses: dict[str, dict[int, str]] = {}  # by agent, of those who have come

    def come(self, agent: str, rank: int, size: int, address: str) -> list[str]:
        """Takes the address of an agent's learner of that rank, `host:port`, for the others.

        Returns:
          All `size` addresses by rank; nothing until all have come, who ask again.
        """
        with self._lock:
            come = self._addresses.setdefault(agent, {})
            if len(come) == size and come[rank] != address:
                come.clear()
            come[rank] = address
            return [come[i] for i in range(size)] if len(come) == size else []


@process.while_busy()
def join(coordinator: Any, agent: str, rank: int, size: int) -> Learners:
    """An agent's learners as the one of that rank sees them, once all are there.

    It is called before the process runs a TensorFlow op: of several GPUs of one host each learner
    has its own.

    Raises:
      StoppedError: when this process is asked to end before they have come.
    """
    if size == 1:
        return ALONE
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[rank % len(gpus)], "GPU")
    coordinator.should_stop()  # which waits for it: its name may lead nowhere before it is there
    own = f"{_own_host(coordinator.server_address)}:{portpicker.pick_unused_port()}"
    while not (addresses := coordinator.meet(agent, rank, size, own)):
        if process.wait_for_stop(ASK_SECONDS):
            raise StoppedError(f"Asked to end while waiting for the other learners of {agent}.")
    return Together(addresses, rank)


def _own_host(server: str) -> str:
    """This host as those know it who reach a server, `host:port`, the way that this host does."""
    host, port = server.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        return str(probe.getsockname()[0])


class Learning(NamedTuple):
    """A learner and what it is made with."""

    learner: Learner
    priorities: Any  # a `PriorityUpdater`, or `launch.graph.demonstrations.Priorities`
    watch: insistence.Watch  # over the replay servers it samples
    batch_spec: Any  # of its part of a batch
    item_bytes: int  # of one, not compressed

    def try_step(self, timeout: float) -> None:
        """Learns from a batch, if one comes within so many seconds."""
        process.beat()
        if self.learner.try_step(timeout):
            self.watch.over()
        else:
            self.watch.wait()

    @process.while_busy()
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
    recorded: Sequence[reverb.Client] = (),
) -> Learning:
    """The learner of an agent, or one of its learners, in whose process this is called.

    Args:
      settings: of the run.
      name: the agent's.
      replays: clients of all shards.
      learners: of which it is one.
      counter, on_metrics: as of `Learner`.
      recorded: a client of the server of demonstrations, where the run has one.
    """
    tf.random.set_seed(seed_of(settings, "network"))
    agents = make_agents(settings)
    agent, spec = agents[name], environment_spec(settings)
    own = own_shards(replays, learners.rank, learners.size)
    table = agent.tables[0]
    update = agent.make_update(spec)
    if recorded:
        demonstrations = importlib.import_module(_DEMONSTRATIONS)
        batches, updater = demonstrations.batches(settings, name, own[0], recorded[0])
    else:
        updater = PriorityUpdater(own, table.name)
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
        Fetched(iter(batches)),
        burn_in=table.layout.burn_in,
        priorities=updater,
        counter=counter,
        on_metrics=on_metrics,
        learners=learners,
    )
    batch_spec, part = batches.element_spec, agent.batch_size // learners.size
    item_bytes = raw_item_bytes(batch_spec, part)
    watch = insistence.Watch([*own, *recorded])
    return Learning(learner, updater, watch, batch_spec, item_bytes)


def own_shards(shards: Sequence[T], rank: int, size: int) -> Sequence[T]:
    """The shards that one of several learners samples: some, or one that others sample too.

    Of the two numbers one divides the other.
    """
    if len(shards) < size:
        return [shards[rank % len(shards)]]
    return shards[rank * len(shards) // size : (rank + 1) * len(shards) // size]


def zeros(batch_spec: Any) -> Any:
    """A batch in which nothing happened."""
    return tf.nest.map_structure(lambda leaf: tf.zeros(leaf.shape, leaf.dtype), batch_spec)


def raw_item_bytes(batch_spec: Any, batch_size: int) -> int:
    """Uncompressed bytes of one item, from the shapes of a batch."""
    sizes = [
        spec.dtype.size * math.prod(d or batch_size for d in spec.shape)
        for spec in tf.nest.flatten(batch_spec)
    ]
    return int(sum(sizes) / batch_size)


class FurtherLearner:
    """A further learner of an agent, of rank 1 or more: a node that neither reports nor saves.

    It learns with the learner of rank 0, begins with its parameters, and ends when that one does.
    """

    def __init__(
        self,
        settings: Settings,
        name: str,
        rank: int,
        replays: Sequence[reverb.Client],
        coordinator: Any,
    ) -> None:
        process.enter(settings.run_dir, f"{name}'s learner of rank {rank}")
        process.stay_busy()  # it waits for the others, which may save; who stands still is seen
        learners = join(coordinator, name, rank, settings.learners_per_agent)
        self._learning = make_learning(settings, name, replays, learners)
        self._over = threading.Event()

    def run(self) -> None:
        """Learns until all learners end together."""
        stop = process.stop_event()
        threading.Thread(target=self._end_when_torn_down, args=(stop,), daemon=True).start()
        learner = self._learning.learner
        try:
            self._learning.warm_up()
            while not learner.has_ended:
                self._learning.try_step(timeout=process.REPORT_SECONDS)
            self._learning.priorities.close()
            self._over.set()
            while not process.wait_for_stop(0):  # it blocks no one meanwhile
                learner.skip(timeout=process.REPORT_SECONDS)
        except Exception:
            # After a crash elsewhere others may end before this node hears of it.
            if not process.wait_for_stop(process.GRACE_SECONDS):
                raise

    def _end_when_torn_down(self, stop: threading.Event) -> None:
        """Ends this process after a crash elsewhere: `run` may wait for one that is gone."""
        stop.wait()
        if not self._over.wait(process.GRACE_SECONDS):
            os._exit(process.TERMINATED)
