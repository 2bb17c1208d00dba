"""An evaluator's process."""

import contextlib
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from acme.utils.loggers import base

from agents import actor, environment_loop
from agents.contract import Network
from agents.environment_loop import Episode
from environments import suites
from environments.copies import dead_simulators
from environments.copies.dead_simulators import CannotPlayError
from launch.graph import process
from run_folder import best, building, disk, log_writer, mirrors, task_returns
from run_folder.building import environment_spec, seed_of
from run_folder.checkpoints import DamagedError
from run_folder.layout import CHECKPOINTS, RunFolder, evaluator_label
from run_folder.settings import Settings


class EvaluatorNode:
    """Plays one agent as it is evaluated, on environments of its own."""

    def __init__(self, settings: Settings, agent: str, learner: Any, coordinator: Any) -> None:
        self._label = evaluator_label(agent, settings.agents)
        process.enter(
            settings.run_dir,
            f"{agent}'s evaluator",
            (str(RunFolder().log(self._label)), f"{CHECKPOINTS}/{best.file_name(agent)}"),
        )
        self._settings = settings
        self._tasks = [suites.evaluation_task(task) for task in settings.tasks]
        self._playable = list(self._tasks)
        self._agent = agent
        self._learner = learner
        self._coordinator = coordinator
        dead_simulators.on_new_kind = coordinator.notice
        self._is_over = process.Ending(coordinator)
        self._best_score = -math.inf

    def run(self) -> None:
        """Evaluates now and then until the run ends."""
        settings = self._settings
        seconds = 60 * settings.evaluation_minutes
        if self._wait(seconds):
            return
        logger = log_writer.make_logger(settings.path, self._label)
        self._read_best_score()
        while True:
            try:
                with contextlib.ExitStack() as stack:
                    # Not before: while a run begins, others need the CPU.
                    self._evaluate(*self._make_loop(stack), logger, seconds)
                    return
            except CannotPlayError as error:
                self._leave_out(error)

    def _evaluate(
        self,
        evaluator: actor.RecurrentActor,
        network: Network,
        loop: environment_loop.VectorEnvironmentLoop,
        logger: base.Logger,
        seconds: float,
    ) -> None:
        while True:
            evaluator.update(wait=True)
            counts = self._coordinator.get_counts()
            episodes = loop.run_episodes(self._is_over)
            if not episodes:
                return
            result = dict(
                learner_steps=evaluator.learner_step,
                actor_steps=counts["actor_steps"],
                walltime=counts["walltime"],
                **summary(self._tasks, self._playable, episodes),
            )
            self._keep_if_best(network, result)  # first: no row is better than what is kept
            logger.write(result)
            self._coordinator.report_evaluation(self._agent, result)
            if self._wait(seconds):
                return

    def _read_best_score(self) -> None:
        """Goes on from the best evaluation of an earlier part of the run."""
        try:
            found = best.read(self._settings.folder.checkpoints, self._agent)
        except DamagedError as error:
            self._coordinator.notice(f"{error} The next evaluation's take their place.")
        else:
            self._best_score = found.score if found else -math.inf

    @process.while_busy()
    def _keep_if_best(self, network: Network, result: dict[str, float]) -> None:
        """Keeps the parameters of an evaluation that is better than all before."""
        returns = task_returns.of_columns(result) or {self._tasks[0]: result["episode_return"]}
        score, step = task_returns.overall(returns), int(result["learner_steps"])
        if not score > self._best_score:  # nor is NaN better
            return
        parameters = [variable.numpy() for variable in network.variables]
        steps, walltime = int(result["actor_steps"]), result["walltime"]
        kept = best.Best(score, step, steps, walltime, parameters)
        try:
            best.write(self._settings.folder.checkpoints, self._agent, kept)
        except OSError as error:
            self._coordinator.notice(
                f"The best parameters so far, of update {step:,}, could not be kept: "
                f"{disk.said(error)}."
            )
            return
        self._best_score = score
        mirrors.of(self._settings.run_dir).push(checkpoints=True)

    def _leave_out(self, error: CannotPlayError) -> None:
        """Goes on without a task that cannot be played.

        Raises:
          CannotPlayError: that one, where it is the last.
        """
        task = error.task or self._playable[0]
        self._playable.remove(task)
        if not self._playable:
            raise error
        self._coordinator.notice(f"{task} is left out of evaluations: {error}")

    @process.while_busy()
    def _make_loop(
        self, stack: contextlib.ExitStack
    ) -> tuple[actor.RecurrentActor, Network, environment_loop.VectorEnvironmentLoop]:
        """Who plays what can be played, by which network, and where; a stack closes the latter."""
        settings = self._settings
        agent = building.make_agent(settings, self._agent)
        played = [task for task in self._playable for _ in range(settings.evaluation_episodes)]
        network = agent.make_network(environment_spec(settings))
        evaluator = actor.make_evaluator(
            agent,
            network,
            num_environments=len(played),
            seed=seed_of(settings, "policy"),
            source=self._learner,
        )
        environments = suites.make_each(
            played,
            seed=seed_of(settings, "evaluation"),
            full_action_space=settings.full_action_space,
            full_rendering=settings.full_rendering,
        )
        stack.enter_context(contextlib.closing(environments))
        loop = environment_loop.VectorEnvironmentLoop(environments, evaluator, played)
        return evaluator, network, loop

    def _wait(self, seconds: float) -> bool:
        """Waits; says whether the run is ending."""
        until = time.monotonic() + seconds
        while True:
            process.beat()
            if process.wait_for_stop(min(process.REPORT_SECONDS, max(until - time.monotonic(), 0))):
                return True
            if self._coordinator.should_stop():
                return True
            if time.monotonic() >= until:
                return False


def summary(
    tasks: Sequence[str], played: Sequence[str], episodes: Sequence[Episode]
) -> dict[str, float]:
    """Means of an evaluation, over all that was played and for each task.

    Args:
      tasks: their names.
      played: those that could be played; the others' returns are NaN.
      episodes: as many of each of these, in their order.
    """
    returns = np.array([episode.episode_return for episode in episodes])
    each = returns.reshape(len(played), -1).mean(axis=1)
    of_tasks = dict.fromkeys(tasks, math.nan) | dict(zip(played, each.tolist(), strict=True))
    return dict(
        episodes=len(episodes),
        episode_return=float(returns.mean()),
        episode_return_min=float(returns.min()),
        episode_return_max=float(returns.max()),
        episode_length=float(np.mean([episode.length for episode in episodes])),
        **task_returns.columns(of_tasks),
    )
