"""Demonstrations: recorded episodes in a table of their own, which a share of each batch is from.

R2D3 (Paine et al. 2019, Section 3): each item of a batch is drawn from the demonstrations with
probability ρ, else from the agent's own replay, from either by priority.

What plays the episodes is an actor. It takes the recorded actions with the learner's newest
parameters, so that core states and first priorities are those of a policy of today, and goes round
and round: the table always holds each item of each episode once, the one that was written last.
"""

import contextlib
import functools
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import launchpad as lp
import numpy as np
import reverb
import tensorflow as tf
import tree
from acme import specs

from agents import actor
from agents.contract import Agent, PolicyOutput
from launch.graph import process
from replay import dataset, insistence, tables, writer
from replay.layout import Layout
from replay.priority_updater import PriorityUpdater
from replay.structures import (
    DEMONSTRATOR,
    FIRST,
    LAST,
    MID,
    Batch,
    Item,
    Nest,
    NetworkInput,
    Step,
    TableSpec,
)
from run_folder import building, recordings
from run_folder.recordings import Episode
from run_folder.settings import Settings, SettingsError

# Samples of an item after which it is written anew, on average: at the least, and where batches are
# of demonstrations alone.
_FEW, _ALONE = 4.0, 32.0


def check(settings: Settings, agent: Agent, spec: specs.EnvironmentSpec) -> None:
    """Reads every episode, once an agent that is to learn from them has been made.

    Raises:
      SettingsError: there are none, one is damaged or of another environment, or the agent learns
        from its own actions only.
    """
    if agent.make_following is None:
        raise SettingsError(
            f"--demonstrations is not for --agent={agent.name}, which does not say how it follows "
            "what others did (docs/demonstrations.md)."
        )
    folder = folder_of(settings)
    recordings.check(folder, settings.tasks, spec)
    for path in recordings.files(folder):
        recordings.read(path, spec)


def folder_of(settings: Settings) -> pathlib.Path:
    """The folder of the recorded episodes."""
    return pathlib.Path(settings.demonstrations).expanduser()


def table_of(agent: Agent, fraction: float, steps: Sequence[int] = ()) -> TableSpec:
    """The table of an agent's demonstrations, full once it holds all items of all episodes.

    Args:
      agent: that learns from them.
      fraction: of a batch that is from them.
      steps: of each episode; a reader need not know.
    """
    (first, *_) = agent.tables
    size = max(1, sum(num_items(count, first.layout) for count in steps))
    return TableSpec(
        f"{agent.name}_demonstrations",
        "prioritized",
        first.layout,
        max_size=size,
        min_size=size,
        samples_per_insert=max(_FEW, _ALONE * fraction),
        priority_exponent=first.priority_exponent,
        waits=False,
    )


def num_items(steps: int, layout: Layout) -> int:
    """How many items an episode is cut into, as `replay.sequences.Cutter` cuts it."""
    return 1 + max(0, math.ceil((steps - layout.length) / layout.period))


def add_server(program: lp.Program, settings: Settings) -> Any:
    """A Reverb server of demonstrations alone: a run that goes on fills it anew, in seconds."""
    with program.group("replay"):
        return program.add_node(lp.ReverbNode(functools.partial(_make_tables, settings)))


def add_players(
    program: lp.Program, settings: Settings, learners: dict[str, Any], server: Any, coordinator: Any
) -> None:
    """For each agent a process that plays the episodes with its parameters."""
    with program.group("demonstrator"):
        for name, learner in learners.items():
            program.add_node(
                lp.PyClassNode(Demonstrator, settings, name, learner, server, coordinator)
            )


def _make_tables(settings: Settings) -> list[reverb.Table]:
    process.enter(settings.run_dir, "demonstrations' replay")
    process.stay_busy()
    agents, spec = building.make_agents(settings), building.environment_spec(settings)
    steps = recordings.lengths(folder_of(settings))
    made = {name: table_of(agent, settings.demo_share, steps) for name, agent in agents.items()}
    states = {made[name].name: building.core_state_spec(agents[name], spec) for name in agents}
    blocks = tables.block_layout(building.all_tables(agents))
    return tables.make_tables(list(made.values()), spec, states, blocks)


def batches(
    settings: Settings, name: str, replay: reverb.Client, server: reverb.Client
) -> tuple[tf.data.Dataset, "Priorities"]:
    """An agent's batches, and where its new priorities go.

    `Batch.shard` is 0 of an item of the agent's own replay and 1 of a demonstration.

    Args:
      settings: of the run.
      name: the agent's.
      replay: the server of its own replay.
      server: that of the demonstrations.
    """
    agents, spec = building.make_agents(settings), building.environment_spec(settings)
    agent, share = agents[name], settings.demo_share
    own, table = agent.tables[0], table_of(agents[name], share)
    at_a_time = max(1, round(share * agent.batch_size))

    def blend(items: tf.data.Dataset, item: Item) -> tf.data.Dataset:
        if share == 1:  # both are the same
            return items
        recorded = dataset.items_of(server.server_address, table.name, item, at_a_time)
        return tf.data.Dataset.sample_from_datasets([items, recorded], [1 - share, share])

    @tf.autograph.experimental.do_not_convert  # for which AutoGraph would look for seconds
    def marked(batch: Batch) -> Batch:
        return batch._replace(shard=tf.cast(batch.actor == DEMONSTRATOR, tf.int32))

    found = dataset.make_dataset(
        [(server if share == 1 else replay).server_address],
        [table if share == 1 else own],
        spec,
        building.core_state_spec(agent, spec),
        tables.block_layout(building.all_tables(agents)),
        [agent.batch_size],
        blend,
    )
    return found.map(marked), Priorities(
        [PriorityUpdater([replay], own.name), PriorityUpdater([server], table.name)]
    )


class Priorities:
    """Writes each priority back to the table that its item is from, by `Batch.shard`."""

    def __init__(self, updaters: Sequence[PriorityUpdater]) -> None:
        self._updaters = updaters

    def update(self, shard: np.ndarray, key: np.ndarray, priority: np.ndarray) -> None:
        """As `PriorityUpdater.update`."""
        for index, updater in enumerate(self._updaters):
            if (mine := shard == index).any():
                updater.update(np.zeros_like(shard[mine]), key[mine], priority[mine])

    def close(self) -> None:
        """Writes the priorities that still wait."""
        for updater in self._updaters:
            updater.close()


class Demonstrator:
    """Plays the recorded episodes, round and round, as far as batches take items of them.

    Its steps are none of the run's: no limit, log or return knows of them.
    """

    def __init__(
        self, settings: Settings, name: str, learner: Any, server: reverb.Client, coordinator: Any
    ) -> None:
        process.enter(settings.run_dir, f"{name}'s demonstrations")
        self._settings, self._name = settings, name
        self._learner, self._server = learner, server
        self._watch = insistence.Watch([server])
        self._is_over = process.Ending(coordinator)

    def run(self) -> None:
        """Plays until the run ends."""
        with process.while_busy():
            settings, agents = self._settings, building.make_agents(self._settings)
            agent, spec = agents[self._name], building.environment_spec(settings)
            folder = folder_of(settings)
            task = recordings.check(folder, settings.tasks, spec)
            table = table_of(agent, settings.demo_share, recordings.lengths(folder))
            # Of a demonstrator that died, and did not begin where this one does.
            insistence.insist(self._server, lambda: self._server.reset(table.name))
            sequences = writer.SequenceWriter(
                self._server,
                [table],
                blocks=tables.block_layout(building.all_tables(agents)),
                actors=np.array([DEMONSTRATOR]),
                tasks=np.array([settings.tasks.index(task)]),
                agent=list(agents).index(self._name),
                initial_priorities=(
                    {table.name: agent.initial_priority} if agent.initial_priority else {}
                ),
                should_stop=self._should_stop,
            )
            episodes = (
                recordings.read(path, spec)
                for _ in iter(int, 1)  # for ever
                for path in recordings.files(folder)
            )
            replays = play(agent, agent.make_network(spec), episodes, self._learner, sequences)
        with contextlib.suppress(writer.WriterStopped), contextlib.closing(sequences):
            for _ in replays:
                self._watch.over()
                if self._is_over():
                    return

    def _should_stop(self) -> bool:
        """Whether the run is ending; asked while the table takes no items."""
        self._watch.wait()
        return self._is_over()


def play(
    agent: Agent, network: Any, episodes: Iterator[Episode], source: Any, rows: actor.Writer
) -> Iterator[None]:
    """Steps an actor through episodes, whose actions it takes; yields after each row.

    Args:
      agent: whose policy it follows as far as the actions let it.
      network: the agent's.
      episodes: one after another.
      source: the learner whose parameters it follows; None keeps those of the network.
      rows: takes the rows of this one environment.
    """
    assert agent.make_following is not None
    follow = agent.make_following(network)
    action = tf.Variable(tf.zeros([1, *network.actions.shape], network.actions.dtype))

    @tf.autograph.experimental.do_not_convert
    def policy(inputs: NetworkInput, core_state: Nest) -> PolicyOutput:
        return follow(inputs, core_state, action.read_value())

    player = actor.make_actor(
        agent,
        network,
        policy,
        num_environments=1,
        source=source,
        writer=rows,
    )
    player.update(wait=True)
    for row in (row for episode in episodes for row in rows_of(episode)):
        action.assign(row.action)
        player.act(row.observation, row.step_type, row.lives)
        player.observe(row.reward, row.continuation)
        player.update()
        yield


def rows_of(episode: Episode) -> Iterator[Step]:
    """The T + 1 rows of an episode of T steps as one environment's, `[1, ...]` each."""
    steps = len(episode.rewards)
    for t in range(steps + 1):
        at = min(t, steps - 1)  # on the last row the action and its outcome mean nothing
        yield Step(
            observation=tree.map_structure(lambda x, t=t: x[t : t + 1], episode.observations),
            step_type=np.array([FIRST if t == 0 else LAST if t == steps else MID], np.uint8),
            lives=episode.lives[t : t + 1],
            action=episode.actions[at : at + 1],
            log_probability=np.zeros(1, np.float32),
            reward=episode.rewards[at : at + 1] * (t < steps),
            continuation=1 - episode.terminated[at : at + 1].astype(np.float32) * (t < steps),
        )
