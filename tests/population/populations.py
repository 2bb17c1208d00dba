"""Populations and their members, as runs leave them: learners of sums, replay of stand-ins."""

import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from agents.learner import Learner
from population import adoption, decisions
from population.decisions import Decision
from population.folder import PopulationFolder
from population.settings import Population
from replay.structures import Batch
from run_folder import checkpoints, saver
from run_folder.checkpoints import Manifest
from run_folder.layout import RunFolder
from tests.agents.adding import AddReward, batch_of
from tests.run_folder.saving import Replay

AGENT = "impala"
STEPS = 10_000  # actor steps at which a member adopts
SWEEP = dict(learning_rate="log:1e-4:1e-2", entropy_cost="choice:0.01,0.001")


def settings_of(**given: Any) -> Population:
    """Three members on catch, which decide soon."""
    values: dict[str, Any] = dict(
        agent=AGENT,
        env="catch",
        seed=0,
        sweep=SWEEP,
        train=dict(values=dict(num_actors=4), fields={}),
        members=3,
        turn_steps=1_000,
        burn_in_frames=0,
        ready_episodes=10,
    )
    return Population(**(values | given))


def decision_of(member: int, number: int, **given: Any) -> Decision:
    """A decision by which nothing was adopted."""
    values: dict[str, Any] = dict(
        member=member,
        number=number,
        time=1_000.0 + 10 * number + member,
        actor_steps=100 * number,
        episodes=10 * number,
        learner_step=5 * number,
        score=None,
        rival=None if number == 0 else (member + 1) % 3,
        rival_score=None,
        adopted=None,
        rival_learner_step=None,
        old={} if number == 0 else dict(learning_rate=1e-3, entropy_cost=0.01),
        new=dict(learning_rate=1e-3, entropy_cost=0.01),
    )
    return Decision(**(values | given))


def decide(folder: PopulationFolder, member: int, numbers: int) -> list[Decision]:
    """Makes so many decisions of a member, of which none adopts anything."""
    made = [decision_of(member, number) for number in range(numbers)]
    for decision in made:
        assert decisions.write(folder, decision)
    return made


def newest(folder: PopulationFolder, member: int) -> Decision | None:
    """The last decision of a member; None before its first."""
    made = decisions.of_member(folder, member)
    return made[-1] if made else None


def listed(folder: PopulationFolder) -> list[Decision]:
    """What population.jsonl says."""
    return [Decision(**json.loads(line)) for line in folder.listing.read_text().splitlines()]


def names(folder: PopulationFolder) -> set[str]:
    """Of all that stands among the decisions."""
    return {path.name for path in folder.decisions.iterdir()}


class Update(AddReward):
    """Adds rewards up, and has statistics as PopArt's update has."""

    def __init__(self) -> None:
        super().__init__()
        self.statistics = tf.Variable([0.0, 1.0], name="statistics")

    def __call__(self, batch: Batch) -> Any:
        self.statistics.assign(0.9 * self.statistics + 0.1 * tf.reduce_sum(batch.reward))
        return super().__call__(batch)


class Learning:
    """The learner of a member, whose rewards are its own.

    Args:
      run: the member's folder.
      reward: of each of its batches.
      goes_on: whether from what the run has saved.
    """

    def __init__(self, run: RunFolder, reward: float, *, goes_on: bool = False) -> None:
        self.run = run
        self.update = Update()
        self._reward = reward
        self._counts = dict.fromkeys(("actor_steps", "episodes", "trained_steps"), 0.0)
        self._counts["walltime"] = 0.0
        last = checkpoints.read(run.checkpoints) if goes_on else None
        self._learner = Learner(self.update, self._batches(), burn_in=1)
        if last is not None:
            prefix = str(run.checkpoints / last.learner)
            self._learner.read_checkpoint(prefix, last.learner_step)
            self._counts |= {name: getattr(last, name) for name in self._counts}
        replay: Any = Replay(run.checkpoints / "staging" / "0")
        self.saver = saver.Saver(
            run.checkpoints, AGENT, self._learner.write_checkpoint, [replay], 1, last
        )

    @property
    def learner_steps(self) -> int:
        """Updates that it counts."""
        return self._learner.learner_steps

    def values(self) -> dict[str, list[float]]:
        """Everything that it learns with, by name."""
        return {variable.name: variable.numpy().tolist() for variable in self.update.variables}

    def learn(self, updates: int) -> None:
        """Makes updates, each of ten actor steps and an episode."""
        for _ in range(updates):
            self._learner.step()
        for name, each in (("actor_steps", 10), ("episodes", 1), ("trained_steps", 4)):
            self._counts[name] += each * updates

    def save(self, *, with_replay: bool = False) -> Manifest:
        """Saves it as a run does."""
        self.run.checkpoints.mkdir(parents=True, exist_ok=True)
        return self.saver.save(self.learner_steps, self._counts, with_replay=with_replay)

    def _batches(self) -> Any:
        while True:
            yield batch_of(self._reward)


def saved(run: RunFolder, reward: float, saves: Sequence[int]) -> Learning:
    """A member's learner that has saved after each so many more updates, replay at last."""
    learning = Learning(run, reward)
    for i, updates in enumerate(saves):
        learning.learn(updates)
        learning.save(with_replay=i == len(saves) - 1)
    return learning


def adopt(rival: Learning, own: Learning) -> int:
    """Lets a run take over another's learner; returns the update of that one."""
    step = own.learner_steps + 1
    taken = adoption.stage(rival.run, own.run, AGENT, step)
    adoption.publish(own.run, AGENT, step, STEPS)
    return taken


def again(run: RunFolder, reward: float) -> Learning:
    """A run's learner, as its next turn begins it."""
    return Learning(run, reward, goes_on=True)


def refuse(code: int) -> Callable[..., None]:
    """What stands for a call of the system that fails."""

    def call(path: object, *_: object) -> None:
        raise OSError(code, os.strerror(code), str(path))

    return call


def log_episodes(run: RunFolder, returns: Sequence[tuple[int, str, float]]) -> None:
    """Adds episodes to a run's log: actor steps, task, return."""
    run.logs.mkdir(parents=True, exist_ok=True)
    path = run.log("episodes")
    if not path.exists():
        path.write_text("actor_steps,walltime,actor,task,episode_return,episode_length\n")
    with path.open("a") as file:
        for actor_steps, task, episode_return in returns:
            file.write(f"{actor_steps},1.0,0,{task},{episode_return},9\n")


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
