"""Run folders with made-up logs, whose numbers a report must show."""

import csv
import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from agents.environment_loop import Episode
from analysis.playing import files
from analysis.report import run
from run_folder import settings

LOG_SECONDS = 10
STEPS = 1_000  # of all actors, in that time


class Folder:
    """A run folder, at first with nothing but its config.json."""

    def __init__(
        self,
        path: pathlib.Path,
        agent: str = "r2d2",
        env: str = "catch",
        overrides: dict[str, dict[str, str]] | None = None,
        **given: Any,
    ) -> None:
        self.path = path
        names = (field.name for field in dataclasses.fields(settings.Settings))
        values = dict.fromkeys(name for name in names if name != "configs")
        values |= dict(agent=agent, env=env, run_dir=str(path), preset="local", **given)
        self.settings = settings.resolve(values, overrides or {})
        for name in ("logs", "nodes"):
            (path / name).mkdir(parents=True)
        (path / "config.json").write_text(self.settings.to_json())

    def log(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes a log; columns are those of the first row."""
        with (self.path / "logs" / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def act(self, returns: Sequence[float], *, actors: int = 4) -> None:
        """Logs an episode of 10 steps of every task for each return, and what actors log."""
        tasks = self.settings.tasks
        last = dict.fromkeys(tasks, 0.0)
        episodes, actor = [], []
        for i, value in enumerate(returns):
            counts = dict(actor_steps=STEPS * (i + 1), walltime=LOG_SECONDS * (i + 1))
            for j, task in enumerate(tasks):
                last[task] = value + j
                episodes.append(
                    dict(
                        counts,
                        actor=(i + j) % actors,
                        task=task,
                        episode_return=value + j,
                        episode_length=10,
                    )
                )
            actor.append(
                dict(
                    counts,
                    learner_steps=2 * (i + 1),
                    episodes=len(episodes),
                    episode_return=value,
                    replay_size=50 * (i + 1),
                    replays_per_observation=1.5,
                    environments_lost=0,
                )
            )
        self.log("episodes", episodes)
        self.log("actor", actor)

    def learn(self, agent: str, rows: int, **metrics: float) -> None:
        """Logs two updates every ten seconds."""
        self.log(
            f"learner-{agent}",
            [
                dict(
                    learner_steps=2 * (i + 1),
                    actor_steps=STEPS * (i + 1),
                    walltime=LOG_SECONDS * (i + 1),
                    parameter_lag=7.0,
                    **metrics,
                )
                for i in range(rows)
            ],
        )

    def evaluate(
        self,
        agent: str,
        learner_steps: int,
        returns: Mapping[str, Sequence[float]],
        epsilon: float | None = None,
        memory_steps: int | None = None,
    ) -> None:
        """Writes what `launch.evaluate` would, by default of the agent as it is evaluated."""
        if epsilon is None:
            epsilon = getattr(self.settings.configs[agent], "evaluation_epsilon", None)
        played = files.Played(agent, learner_steps, 1_000, 10.0, epsilon, memory_steps, 0)
        file = files.File(self.path, played)
        for task, values in returns.items():
            file.append(task, [Episode(0, value, 10) for value in values])

    def progress(self, **state: Any) -> None:
        """Writes what the coordinator last told."""
        (self.path / "nodes" / "progress.json").write_text(json.dumps(state))


def lines_of(*folders: Folder) -> list[run.Line]:
    """The lines of a report of these runs."""
    return run.lines(run.load([str(folder.path) for folder in folders]))
