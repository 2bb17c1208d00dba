"""What runs inside an evaluator's process."""

import time
from collections.abc import Sequence
from typing import Any

import launchpad as lp
import numpy as np

from agents import actor, environment_loop
from agents.environment_loop import Episode
from environments import suites
from launch.graph import heartbeats, process
from launch.graph.actor_node import REPORT_SECONDS
from run_folder import building, log_writer, task_returns
from run_folder.building import environment_spec, seed_of
from run_folder.layout import RunFolder, evaluator_label
from run_folder.settings import Settings


class EvaluatorNode:
    """Plays one agent as it is evaluated, on environments of its own."""

    def __init__(self, settings: Settings, agent: str, learner: Any, coordinator: Any) -> None:
        self._label = evaluator_label(agent, settings.agents)
        process.enter(
            settings.run_dir, f"{agent}'s evaluator", (str(RunFolder().log(self._label)),)
        )
        self._settings = settings
        self._tasks = [suites.evaluation_task(task) for task in settings.tasks]
        self._agent = agent
        self._learner = learner
        self._coordinator = coordinator
        self._ask_at = 0.0

    def run(self) -> None:
        """Evaluates now and then until the run ends."""
        settings = self._settings
        seconds = 60 * settings.evaluation_minutes
        if self._wait(seconds):
            return
        evaluator, loop = self._make_loop()  # not before: while a run begins, others need the CPU
        logger = log_writer.make_logger(settings.path, self._label)
        ended = False
        while not ended:
            evaluator.update(wait=True)
            counts = self._coordinator.get_counts()
            episodes = loop.run_episodes(self._should_stop)
            if not episodes:
                return
            result = dict(
                learner_steps=evaluator.learner_step,
                actor_steps=counts["actor_steps"],
                walltime=counts["walltime"],
                **summary(self._tasks, episodes),
            )
            logger.write(result)
            self._coordinator.report_evaluation(self._agent, result)
            ended = self._wait(seconds)

    @heartbeats.while_busy()
    def _make_loop(self) -> tuple[actor.RecurrentActor, environment_loop.VectorEnvironmentLoop]:
        settings = self._settings
        agent = building.make_agent(settings, self._agent)
        played = [task for task in self._tasks for _ in range(settings.evaluation_episodes)]
        evaluator = actor.make_evaluator(
            agent,
            agent.make_network(environment_spec(settings)),
            num_environments=len(played),
            seed=seed_of(settings, "policy"),
            source=self._learner,
        )
        environments = suites.make_each(
            played,
            seed=seed_of(settings, "evaluation"),
            full_action_space=settings.full_action_space,
        )
        return evaluator, environment_loop.VectorEnvironmentLoop(environments, evaluator, played)

    def _should_stop(self) -> bool:
        """Whether the run is ending; the coordinator is asked now and then."""
        heartbeats.beat()
        if time.time() < self._ask_at:
            return False
        self._ask_at = time.time() + REPORT_SECONDS
        return self._wait(0)

    def _wait(self, seconds: float) -> bool:
        """Waits; says whether the run is ending."""
        until = time.time() + seconds
        while True:
            heartbeats.beat()
            if lp.wait_for_stop(min(REPORT_SECONDS, max(until - time.time(), 0))):
                return True
            if self._coordinator.should_stop():
                return True
            if time.time() >= until:
                return False


def summary(tasks: Sequence[str], episodes: Sequence[Episode]) -> dict[str, float]:
    """What an evaluation came to, over all tasks and for each.

    Args:
      tasks: their names.
      episodes: as many of each task, in the tasks' order.
    """
    returns = np.array([episode.episode_return for episode in episodes])
    each = returns.reshape(len(tasks), -1).mean(axis=1)
    return dict(
        episodes=len(episodes),
        episode_return=float(returns.mean()),
        episode_return_min=float(returns.min()),
        episode_return_max=float(returns.max()),
        episode_length=float(np.mean([episode.length for episode in episodes])),
        **task_returns.columns(dict(zip(tasks, each.tolist(), strict=True))),
    )
