"""What runs inside the learner, actor and evaluator processes."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import launchpad as lp
import numpy as np
import reverb
import tensorflow as tf
from acme import specs
from acme.utils import counting

from agents import actor, environment_loop
from agents.contract import Agent
from agents.learner import Learner
from environments import suites
from launch import catalogue, checkpoints, logs, process
from launch.settings import Settings
from replay import dataset, priorities, tables, writer
from replay.structures import Nest

REPORT_SECONDS = 1.0
LOG_SECONDS = 10.0
LAST_SAVE_SECONDS = 6.0  # what a stopping learner may spend on writing the replay


def seed_of(settings: Settings, role: str, index: int = 0) -> int:
    """A seed of its own for every part of a run."""
    roles = ("network", "environment", "policy", "evaluation")
    words = np.random.SeedSequence([settings.seed, roles.index(role), index])
    return int(words.generate_state(1)[0] % 2**31)


def environment_spec(settings: Settings) -> specs.EnvironmentSpec:
    """What the run's environment takes and gives."""
    return suites.make_environment_spec(
        settings.env, full_action_space=settings.full_action_space
    )


def make_tables(settings: Settings) -> list[reverb.Table]:
    """The tables of the replay node."""
    process.enter(settings.run_dir, "replay")
    agent = catalogue.make(settings.agent, settings.config)
    spec = environment_spec(settings)
    return tables.make_tables(
        agent.tables,
        spec,
        {table.name: core_state_spec(agent, spec) for table in agent.tables},
        tables.block_length(agent.tables),
    )


def core_state_spec(agent: Agent, spec: specs.EnvironmentSpec) -> Nest:
    """Shapes and types of the recurrent state that an item carries, without a batch axis."""
    state = agent.make_network(spec).initial_state(1)
    return tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape[1:], x.dtype), state)


class LearnerNode:
    """One agent's learner: learns, serves parameters, reports, saves."""

    def __init__(
        self,
        settings: Settings,
        manifest: checkpoints.Manifest | None,
        replay: reverb.Client,
        coordinator: Any,
    ) -> None:
        process.enter(settings.run_dir, "learner")
        self._settings = settings
        self._coordinator = coordinator
        tf.random.set_seed(seed_of(settings, "network"))
        agent = catalogue.make(settings.agent, settings.config)
        spec = environment_spec(settings)
        self._counter = counting.Counter()
        self._metrics: dict[str, float] = {}
        table = agent.tables[0]
        self._priorities = priorities.PriorityUpdater(replay, table.name)
        update = agent.make_update(spec)
        batches = dataset.make_dataset(
            replay.server_address,
            table,
            spec,
            core_state_spec(agent, spec),
            tables.block_length(agent.tables),
            agent.batch_size,
        )
        self._learner = Learner(
            update,
            iter(batches),
            burn_in=table.layout.burn_in,
            priorities=self._priorities,
            counter=self._counter,
            on_metrics=self._metrics.update,
        )
        folder = settings.path / "checkpoints"
        if manifest is not None:
            self._learner.read_checkpoint(str(folder / manifest.learner))
            self._counter.increment(trained_steps=manifest.trained_steps)
        signature = batches.element_spec
        self._saver = checkpoints.Saver(
            folder,
            settings.agent,
            self._learner.write_checkpoint,
            replay,
            raw_item_bytes(signature, agent.batch_size, agent.frame_stack),
            manifest,
        )

    def get_variables(self, names: list[str]) -> list[list[np.ndarray]]:
        """The parameters, for actors and evaluators."""
        return self._learner.get_variables(names)

    def run(self) -> None:
        """Learns until the run ends or this learner's own limit is reached, then saves."""
        self._learn()
        self._save_last()
        self._priorities.close()
        lp.wait_for_stop()

    def _learn(self) -> None:
        limit = self._settings.max_learner_steps
        logger = logs.make_logger(
            self._settings.path,
            f"learner-{self._settings.agent}",
            seconds=LOG_SECONDS,
            steps_key="learner_steps",
        )
        save_at = time.time() + 60 * self._settings.checkpoint_minutes
        for _ in self._every(REPORT_SECONDS):
            if self._report(logger):
                return
            if limit is not None and self._learner.num_steps >= limit:
                return
            if time.time() >= save_at:
                self._save(with_replay=True)
                save_at = time.time() + 60 * self._settings.checkpoint_minutes

    def _every(self, seconds: float) -> Iterator[None]:
        """Learns, and yields whenever `seconds` have passed or the learner's limit is reached."""
        limit = self._settings.max_learner_steps
        while True:
            until = time.time() + seconds
            while time.time() < until and (limit is None or self._learner.num_steps < limit):
                self._learner.try_step(timeout=max(until - time.time(), 0.01))
            yield

    def _report(self, logger: Any) -> bool:
        if lp.wait_for_stop(0):
            return True
        step = self._learner.num_steps
        trained = int(self._counter.get_counts().get("trained_steps", 0))
        metrics = {k: float(v) for k, v in self._metrics.items()}
        stop = self._coordinator.report_learner(step, trained, metrics)
        if metrics:
            counts = self._coordinator.get_counts()
            logger.write(
                dict(
                    learner_steps=step,
                    actor_steps=counts["actor_steps"],
                    walltime=counts["walltime"],
                    **metrics,
                )
            )
        return bool(stop)

    def _save(self, *, with_replay: bool) -> None:
        counts = self._coordinator.get_counts()
        counts["trained_steps"] = self._counter.get_counts().get("trained_steps", 0)
        manifest = self._saver.save(self._learner.num_steps, counts, with_replay=with_replay)
        self._coordinator.report_saved(self._settings.agent, describe(manifest), False)

    def _save_last(self) -> None:
        """Saves the learner; the replay too if that takes no longer than stopping may take."""
        if not lp.wait_for_stop(0):
            self._save(with_replay=self._saver.replay_seconds() <= LAST_SAVE_SECONDS)
            saved = describe(self._saver.last) if self._saver.last else {}
            self._coordinator.report_saved(self._settings.agent, saved, True)
            return
        # The whole program is being torn down after a crash: other nodes may already be gone.
        counts = dict(actor_steps=0, episodes=0, walltime=0.0, trained_steps=0)
        if self._saver.last is not None:
            last = self._saver.last
            counts = {name: getattr(last, name) for name in counts}
        self._saver.save(self._learner.num_steps, counts, with_replay=False)


def describe(manifest: checkpoints.Manifest) -> dict[str, Any]:
    """What the terminal says of a checkpoint."""
    return dict(
        learner_step=manifest.learner_step,
        replay_items=manifest.replay_items if manifest.replay else 0,
        replay_saved_at=manifest.replay_saved_at,
    )


def raw_item_bytes(batch_spec: Any, batch_size: int, frame_stack: int) -> int:
    """Uncompressed bytes of one item, from the shapes of a batch (whose frames are stacked)."""
    sizes = [
        spec.dtype.size * np.prod([d or batch_size for d in spec.shape])
        for spec in tf.nest.flatten(batch_spec)
    ]
    return int(sum(sizes) / batch_size / frame_stack)


class ActorNode:
    """Some of a run's actors: one process, one batched forward pass."""

    def __init__(
        self,
        settings: Settings,
        first: int,
        count: int,
        learner: Any,
        replay: reverb.Client,
        coordinator: Any,
    ) -> None:
        process.enter(settings.run_dir, f"actor {first}")
        self._settings = settings
        self._actors = range(first, first + count)
        self._coordinator = coordinator
        self._replay = replay
        self._learner = learner

    def run(self) -> None:
        """Acts until the run ends."""
        loop = self._make_loop()
        with contextlib.suppress(writer.WriterStopped):
            self._act(loop)

    def _make_loop(self) -> environment_loop.VectorEnvironmentLoop:
        settings, n = self._settings, len(self._actors)
        agent = catalogue.make(settings.agent, settings.config)
        spec = environment_spec(settings)
        sequences = writer.SequenceWriter(
            self._replay,
            agent.tables,
            block_length=tables.block_length(agent.tables),
            actors=np.asarray(self._actors),
            tasks=np.zeros(n, np.int64),
            agent=0,
            initial_priorities={agent.tables[0].name: agent.initial_priority}
            if agent.initial_priority
            else {},
            should_stop=self._should_stop,
        )
        recurrent = actor.make_actor(
            agent,
            spec,
            actors=self._actors,
            num_actors=settings.num_actors,
            seed=seed_of(settings, "policy", self._actors.start),
            source=self._learner,
            writer=sequences,
        )
        environments = suites.make(
            settings.env,
            n,
            seed=seed_of(settings, "environment", self._actors.start),
            full_action_space=settings.full_action_space,
        )
        recurrent.update(wait=True)
        return environment_loop.VectorEnvironmentLoop(environments, recurrent)

    def _act(self, loop: environment_loop.VectorEnvironmentLoop) -> None:
        while True:
            steps, episodes = 0, []
            until = time.time() + REPORT_SECONDS
            while time.time() < until:
                new_steps, ended = loop.step()
                steps += new_steps
                episodes += [(self._actors[e.environment], *e[1:]) for e in ended]
            if self._coordinator.report_steps(steps, episodes) or lp.wait_for_stop(0):
                return

    def _should_stop(self) -> bool:
        return bool(lp.wait_for_stop(0) or self._coordinator.should_stop())


class EvaluatorNode:
    """Plays the agent as it is evaluated, on environments of its own."""

    def __init__(self, settings: Settings, learner: Any, coordinator: Any) -> None:
        process.enter(settings.run_dir, "evaluator")
        self._settings = settings
        self._learner = learner
        self._coordinator = coordinator

    def run(self) -> None:
        """Evaluates now and then until the run ends."""
        settings = self._settings
        agent = catalogue.make(settings.agent, settings.config)
        evaluator = actor.make_evaluator(
            agent,
            environment_spec(settings),
            num_environments=settings.evaluation_episodes,
            seed=seed_of(settings, "policy"),
            source=self._learner,
        )
        environments = suites.make(
            settings.env,
            settings.evaluation_episodes,
            seed=seed_of(settings, "evaluation"),
            full_action_space=settings.full_action_space,
        )
        loop = environment_loop.VectorEnvironmentLoop(environments, evaluator)
        logger = logs.make_logger(settings.path, "evaluator")
        while not self._wait(60 * settings.evaluation_minutes):
            evaluator.update(wait=True)
            counts = self._coordinator.get_counts()
            episodes = loop.run_episodes(lambda: self._wait(0))
            if not episodes:
                return
            returns = [e.episode_return for e in episodes]
            result = dict(
                learner_steps=evaluator.learner_step,
                actor_steps=counts["actor_steps"],
                walltime=counts["walltime"],
                episodes=len(episodes),
                episode_return=float(np.mean(returns)),
                episode_return_min=min(returns),
                episode_return_max=max(returns),
                episode_length=float(np.mean([e.length for e in episodes])),
            )
            logger.write(result)
            self._coordinator.report_evaluation(result)

    def _wait(self, seconds: float) -> bool:
        """Waits; says whether the run is ending."""
        until = time.time() + seconds
        while True:
            if lp.wait_for_stop(min(REPORT_SECONDS, max(until - time.time(), 0))):
                return True
            if self._coordinator.should_stop():
                return True
            if time.time() >= until:
                return False
