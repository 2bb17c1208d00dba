"""What runs inside the replay, actor and evaluator processes."""

import contextlib
import time
from typing import Any

import launchpad as lp
import numpy as np
import reverb
import tensorflow as tf
from acme import specs

from agents import actor, environment_loop
from agents.contract import Agent
from environments import suites
from launch import catalogue, logs, process
from launch.settings import Settings
from replay import tables, writer
from replay.structures import Nest

REPORT_SECONDS = 1.0


def seed_of(settings: Settings, role: str, index: int = 0) -> int:
    """A seed of its own for every part of a run."""
    roles = ("network", "environment", "policy", "evaluation")
    words = np.random.SeedSequence([settings.seed, roles.index(role), index])
    return int(words.generate_state(1)[0] % 2**31)


def environment_spec(settings: Settings) -> specs.EnvironmentSpec:
    """What the run's environment takes and gives."""
    return suites.make_environment_spec(settings.env, full_action_space=settings.full_action_space)


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
