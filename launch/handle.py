"""A run from Python: what `recurrent_replay.train` and `recurrent_replay.open` give.

What takes seconds to import is imported by the methods that need it.
"""

import dataclasses
import importlib.util
import numbers
import os
import pathlib
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from launch import trust as trusted
from launch import words
from launch.child import Child
from run_folder import log_reader, progress, run_lock, settings
from run_folder.layout import RunFolder
from run_folder.settings import Settings, SettingsError

if TYPE_CHECKING:
    from agents.single_process import SingleProcessAgent
    from analysis.playing.evaluation import Player
    from analysis.playing.intervals import Interval
    from analysis.playing.policy import Policy

_POLL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a run's parameters return.

    Attributes:
      mean: of all episodes.
      interval: of the mean, 95% (`analysis.playing.intervals`); NaN of a single episode.
      returns: task -> the returns of its episodes, `[episodes]`, undiscounted and unclipped.
    """

    mean: float
    interval: "Interval"
    returns: Mapping[str, np.ndarray]


class Run:
    """A run in a folder.

    Args:
      path: the folder.
      child: the process that runs it, if this process has started that.
    """

    def __init__(self, path: pathlib.Path, child: Child | None = None) -> None:
        self.path = path
        self._folder = RunFolder(path)
        self._child = child

    def __repr__(self) -> str:
        counts = (progress.read(self.path) or {}).get("counts", {})
        made = "".join(
            f", {counts[count]:,.0f} {what}"
            for count, what in (("learner_steps", "updates"), ("actor_steps", "actor steps"))
            if count in counts  # a small run has none
        )
        try:
            run = self.settings
        except SettingsError:
            return f"Run({str(self.path)!r})"
        state = ", running" * self.is_running
        return f"Run({str(self.path)!r}: {run.agent} on {run.env}{made}{state})"

    @property
    def settings(self) -> Settings:
        """All settings, as config.json has them now. Raises SettingsError before it has begun."""
        return settings.load(self.path)

    @property
    def returns(self) -> Any:
        """A row for each episode that has ended so far, in training and then in evaluations.

        A pandas.DataFrame where pandas is installed, else a dictionary of numpy's columns `[rows]`:
        `actor_steps` and `walltime` of the run, `task`, `episode_return`, `episode_length`,
        `actor`, -1 in an evaluation, and `evaluation`, its file's name, empty in training.
        """
        from analysis.playing import files

        log = log_reader.read(self._folder.log("episodes"), texts=("task",))
        evaluations = files.read_all(self.path).items()
        names = [name for name, rows in evaluations for _ in rows]
        played = [row for _, rows in evaluations for row in rows]
        whole = ("actor_steps", "episode_length", "actor")
        tasks = log.texts.get("task", np.empty(0, object))
        table: dict[str, np.ndarray] = {
            "task": np.concatenate([tasks, np.array([row.task for row in played], object)]),
            "evaluation": np.array([""] * len(log) + names, object),
        }
        for name in ("actor_steps", "walltime", "episode_return", "episode_length", "actor"):
            column = np.concatenate([log[name], [getattr(row, name, -1) for row in played]])
            table[name] = column.astype(int) if name in whole else column
        if importlib.util.find_spec("pandas") is None:
            return table
        return importlib.import_module("pandas").DataFrame(table)

    @property
    def is_running(self) -> bool:
        """Whether a process runs it, started here or elsewhere."""
        if self._child is not None and self._child.is_running:
            return True
        return run_lock.is_held(self.path)

    def wait(self) -> None:
        """Waits for the run's end. Where it was started here, Ctrl-C stops it, and is raised then.

        A second Ctrl-C does not wait any more; the run still ends in order.

        Raises:
          SettingsError, RunCrashedError: as for `recurrent_replay.train`, of a run started here.
        """
        if self._child is not None:
            try:
                self._child.wait()
            except KeyboardInterrupt:
                self.stop()
                raise
        while self.is_running:
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """Asks the run to end in order, wherever it was started, and waits until it has saved."""
        if self._child is not None and self._child.is_running:
            self._child.ask_to_end()
        while self.is_running:
            if self._folder.nodes.is_dir():
                self._folder.stop.touch()  # again and again: a run that begins forgets it
            time.sleep(_POLL_SECONDS)

    def resume(self, *, wait: bool = True, **flags: Any) -> "Run":
        """Goes on with the run, as `recurrent_replay.train` with the same flags and `resume`."""
        return train(dict(run_dir=self.path, resume=True, **flags), wait=wait)

    def evaluate(
        self,
        episodes: int | None = None,
        agent: str | None = None,
        checkpoint: int | str | None = None,
        epsilon: float | None = None,
        memory_steps: int | None = None,
        seed: int = 0,
    ) -> Evaluation:
        """Plays what was learned and records it in evaluations/, as `launch.evaluate` does.

        Args:
          episodes: of each task; None for as many as the papers play.
          agent: who plays; this and the others are as for `policy`.

        Raises:
          SettingsError: there is no such agent or checkpoint, or it cannot play so.
        """
        from analysis.playing import intervals, session

        if episodes is not None:
            _check_whole("episodes", episodes, 1)
        how = dict(checkpoint=checkpoint, epsilon=epsilon, memory_steps=memory_steps, seed=seed)
        player = self._player(agent, **how)
        returns = session.play_all(player, episodes, _nothing)
        mean = float(np.mean([values.mean() for values in returns.values()]))
        return Evaluation(mean, intervals.of_mean(*returns.values()), returns)

    def policy(
        self,
        agent: str | None = None,
        checkpoint: int | str | None = None,
        epsilon: float | None = None,
        memory_steps: int | None = None,
        seed: int = 0,
    ) -> "Policy":
        """What was learned, to be stepped by hand.

        Args:
          agent: None for the run's first.
          checkpoint: the update whose parameters play; "best" for those of the run's best
            evaluation; None for the newest.
          epsilon: probability of a random action; None for the agent's own.
          memory_steps: the agent remembers its last k inputs only; None for all.
          seed: of random actions.

        Raises:
          SettingsError: there is no such agent or checkpoint, or it cannot play so.
        """
        from analysis.playing.policy import Policy

        how = dict(checkpoint=checkpoint, epsilon=epsilon, memory_steps=memory_steps, seed=seed)
        return Policy(self._player(agent, **how))

    def learner(
        self,
        num_environments: int = 1,
        agent: str | None = None,
        checkpoint: int | None = None,
        seed: int = 0,
    ) -> "SingleProcessAgent":
        """What was learned, as an agent that goes on learning in this process: docs/library.md.

        Args:
          num_environments: that it plays; the others are as for `policy`.

        Raises:
          SettingsError: there is no such agent or checkpoint.
        """
        from agents.single_process import SingleProcessAgent
        from analysis.playing import evaluation
        from run_folder import building

        run = self.settings
        name = agent or run.agents[0]
        evaluation.check_agent(run, name)
        prefix = run.folder.checkpoints / evaluation.find(run, name, checkpoint).learner
        made, spec = building.make_agent(run, name), building.environment_spec(run)
        learner = SingleProcessAgent(made, spec, num_environments=num_environments, seed=seed)
        learner.load(prefix)
        return learner

    def adopt(self, learner: "SingleProcessAgent") -> int:
        """Has the run, which must not be running, go on from what an agent of this process learned.

        Returns:
          The update that this is in the run.

        Raises:
          SettingsError: the run is running or has saved nothing, or the agent's network is another.
        """
        from population import adoption

        run_lock.take(self.path)
        try:
            updates, write = learner.learner.learner_steps, learner.save
            return adoption.take(self._folder, learner.name, updates, write)
        finally:
            run_lock.release()

    def film(self, **who: Any) -> list[pathlib.Path]:
        """Films an episode of each task; returns the films. Arguments and errors as `policy`."""
        from analysis.playing import session

        player = self._player(**who)
        session.check_film(player)
        return session.film_all(player, _nothing)

    def export(
        self,
        folder: "str | os.PathLike[str] | None" = None,
        *,
        as_run: bool = False,
        **who: Any,
    ) -> pathlib.Path:
        """Writes a policy that plays without this project, as `launch.export`; returns its folder.

        Args:
          folder: a new one; None for one below the run's exports/.
          as_run: whether it is a small run folder instead, which `open` takes; it is to be named.
          **who: arguments of `policy`.
        """
        from analysis.playing import saved_model, small_run

        path = None if folder is None else words.folder(folder, "folder")
        if path is None and as_run:
            raise SettingsError("as_run writes a run folder: name it with folder.")
        if path is not None and path.exists():
            raise SettingsError(f"folder must be a new one, got {os.fspath(path)!r}.")
        player = self._player(**who)
        if as_run and path is not None:
            return small_run.write(player, path)
        return saved_model.write(player, path)

    def report(self, output: "str | os.PathLike[str] | None" = None) -> pathlib.Path:
        """Makes a page of the run, as `launch.report`; returns its path.

        Args:
          output: a folder; None for the run's report/.
        """
        from analysis.report import pages

        where = None if output is None else words.folder(output, "output")
        return pages.write([str(self.path)], where)

    def _player(self, agent: str | None = None, **how: Any) -> "Player":
        from analysis.playing import evaluation

        _check_whole("seed", how.get("seed", 0), 0)
        return evaluation.load(self.settings, agent, **how)


def train(flags: Mapping[str, Any], *, wait: bool) -> Run:
    """Starts a run with flags by their names; `recurrent_replay.train` tells the rest."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name.startswith("launch."):
        raise SettingsError(
            "recurrent_replay.train was called by a module that a run imports. Put the call, and "
            'what is done with its result, under `if __name__ == "__main__":`.'
        )
    typed = words.flags(flags)
    path = words.folder(flags["run_dir"] or "").absolute()  # a script may go elsewhere
    run = Run(path, Child(typed, RunFolder(path), is_watched=wait))
    if wait:
        run.wait()
    return run


def open_run(run_dir: "str | os.PathLike[str]", *, trust: bool) -> Run:
    """As `recurrent_replay.open`."""
    path = words.folder(run_dir).absolute()
    trusted.load(path, trust)
    settings.load(path)  # imports what is named
    return Run(path)


def _check_whole(name: str, value: Any, least: int) -> None:
    if not isinstance(value, numbers.Integral) or value < least:
        raise SettingsError(f"{name} must be a whole number from {least} on, got {value!r}.")


def _nothing(line: str) -> None:
    """Says nothing: the caller has the results."""
