"""Members' learners, of sums, as runs save them; their replay is a stand-in."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from agents.batches import Fetched
from agents.learner import Learner
from population import adoption
from replay.structures import Batch
from run_folder import checkpoints, saver
from run_folder.checkpoints import Manifest
from run_folder.layout import RunFolder
from tests.agents.adding import AddReward, batch_of
from tests.population.populations import AGENT
from tests.run_folder.saving import Replay, save_all

STEPS = 10_000  # actor steps at which a member adopts


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
        self._learner = Learner(self.update, Fetched(self._batches()), burn_in=1)
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
        save = save_all if with_replay else saver.Saver.save
        return save(self.saver, self.learner_steps, self._counts)

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
