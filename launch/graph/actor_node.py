"""An actor's process."""

import contextlib
import functools
import time
from collections.abc import Mapping, Sequence
from concurrent import futures
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
from acme import specs

from agents import actor, environment_loop
from agents.contract import Agent
from agents.environment_loop import Episode
from environments import suites
from environments.copies import dead_simulators
from environments.copies.dead_simulators import CannotPlayError
from launch.graph import logs, process
from replay import insistence, tables, writer
from replay.structures import Nest, PriorityInput, Step
from run_folder import building
from run_folder.episodes import Ended
from run_folder.settings import Crew, Settings

# That an actor node may have of a GPU's memory. The deep network's largest layers, for 256
# environments, are 120 MB each, and its parameters 30 MB; the rest is for cuDNN's kernels.
GPU_MB = 1_024


class OverlappedWriter:
    """Writes each row while the policy and the environments make the next one.

    So they do not wait until a row has been cut into items, nor the writer for them. Its errors are
    raised at the next row.

    Args:
      writer: is called from one thread, which is not the caller's.
    """

    def __init__(self, writer: actor.Writer) -> None:
        self._writer = writer
        self._thread = futures.ThreadPoolExecutor(1, "rows")
        self._written: futures.Future[None] | None = None

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        """Waits for the row before, and begins to write this one."""
        if self._written is not None:
            self._written.result()
        self._written = self._thread.submit(
            self._writer.append,
            step,
            core_state=core_state,
            values=values,
            learner_step=learner_step,
        )

    def close(self) -> None:
        """Waits for the last row, and gives the thread back."""
        self._thread.shutdown()


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
        gpus = tf.config.list_physical_devices("GPU")
        process.enter(settings.run_dir, f"actor {crew.actors[0]}{' (on a GPU)' * bool(gpus)}")
        if settings.actor_device == "gpu" and not gpus:
            raise RuntimeError("--actor_device=gpu, but TensorFlow sees no GPU in an actor node.")
        for gpu in gpus:  # which the learner and other nodes share
            part = tf.config.LogicalDeviceConfiguration(memory_limit=GPU_MB)
            tf.config.set_logical_device_configuration(gpu, [part])
        self._settings = settings
        self._coordinator = coordinator
        dead_simulators.on_new_kind = coordinator.notice
        self._replay = replay
        self._learner = learner
        self._watch = insistence.Watch([replay])
        self._stop = process.stop_event()  # which the thread that writes could not ask for
        self._is_over = process.Ending(coordinator)

    def run(self) -> None:
        """Acts until the run ends.

        Raises:
          CannotPlayError: what it plays cannot be played, and there is nothing else in the run.
        """
        with contextlib.suppress(writer.WriterStopped):
            while self._crew.actors:
                try:
                    self._play()
                    return
                except CannotPlayError as error:
                    self._leave_out(error)
            while not self._should_stop():  # others play on
                time.sleep(process.REPORT_SECONDS)

    def _play(self) -> None:
        with contextlib.ExitStack() as stack:
            with process.while_busy():  # a level loads, the policy is compiled
                loop = self._make_loop(stack)
                first = loop.step()
            self._act(loop, *first)

    def _leave_out(self, error: CannotPlayError) -> None:
        """Goes on without the actors that play a task which cannot be played.

        Raises:
          CannotPlayError: that one, where the run does not go on without it.
        """
        crew, tasks = self._crew, self._settings.tasks
        task = error.task or tasks[crew.tasks[0]]
        rows = zip(crew.actors, crew.ranks, crew.tasks, strict=True)
        kept = [row for row in rows if tasks[row[2]] != task]
        actors, ranks, played = zip(*kept, strict=True) if kept else ((), (), ())
        left_out = sorted(set(crew.actors) - set(actors))
        if not self._coordinator.leave_out(task, left_out, str(error)):
            raise error
        self._crew = crew._replace(actors=actors, ranks=ranks, tasks=played)

    def _make_loop(self, stack: contextlib.ExitStack) -> environment_loop.VectorEnvironmentLoop:
        """The loop of what the crew plays now; what it uses is closed with a stack."""
        settings, crew = self._settings, self._crew
        agents = building.make_agents(settings)
        spec = building.environment_spec(settings)
        since = self._coordinator.steps_before(crew.actors)
        sequences = stack.enter_context(contextlib.closing(self._make_writer(agents, spec)))
        rows = stack.enter_context(contextlib.closing(OverlappedWriter(sequences)))
        return make_loop(
            settings,
            crew,
            agents[crew.agent],
            spec,
            stack,
            since=since,
            source=self._learner,
            writer=rows,
        )

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
            blocks=tables.block_layout(specs),
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
        share = len(crew.actors) / self._settings.num_actors
        most = logs.steps_between(self._settings.max_actor_steps, share)
        episodes = self._told(ended, steps)
        while True:
            until = time.monotonic() + process.REPORT_SECONDS
            while time.monotonic() < until and steps < most:
                process.beat()
                new_steps, new_ended = loop.step()
                self._watch.over()
                steps += new_steps
                episodes += self._told(new_ended, steps)
            lost, reported = loop.lost - reported, loop.lost
            ends = self._coordinator.report_steps(crew.actors, steps, episodes, lost)
            if ends or self._stop.is_set():
                return
            steps, episodes = 0, []

    def _told(self, ended: Sequence[Episode], steps: int) -> list[Ended]:
        """Episodes as the coordinator hears of them, which ended after so many steps."""
        actors, tasks = self._crew.actors, self._crew.tasks
        return [
            (actors[e.environment], tasks[e.environment], e.episode_return, e.length, steps)
            for e in ended
        ]

    def _should_stop(self) -> bool:
        """Whether the run is ending; asked while the replay takes no items."""
        self._watch.wait()
        return self._is_over()


def make_loop(
    settings: Settings,
    crew: Crew,
    agent: Agent,
    spec: specs.EnvironmentSpec,
    stack: contextlib.ExitStack,
    *,
    since: int = 0,
    source: Any = None,
    writer: actor.Writer | None = None,
) -> environment_loop.VectorEnvironmentLoop:
    """The loop in which a crew plays; its environments are closed with a stack.

    Args:
      agent: the crew's.
      spec: of the run's environment.
      since: actor steps after which it begins, so that its seeds are others.
      source: the learner whose parameters it follows; None keeps the first ones.
      writer: takes its rows; None where nobody does.
    """
    names = [settings.tasks[task] for task in crew.tasks]
    environments = suites.make_each(
        names,
        seed=building.seed_of(settings, "environment", crew.actors[0], since),
        full_action_space=settings.full_action_space,
        full_rendering=settings.full_rendering,
    )
    stack.enter_context(contextlib.closing(environments))
    network = agent.make_network(spec)
    seed = building.seed_of(settings, "policy", crew.actors[0], since)
    policy = agent.make_policy(network, np.asarray(crew.ranks), crew.num_actors, seed)
    recurrent = actor.make_actor(
        agent, network, policy, num_environments=len(names), source=source, writer=writer
    )
    recurrent.update(wait=True)
    return environment_loop.VectorEnvironmentLoop(environments, recurrent, names)


def _zeros(core_state: Nest) -> Nest:
    return tf.nest.map_structure(lambda x: np.zeros(x.shape, x.dtype.as_numpy_dtype), core_state)
