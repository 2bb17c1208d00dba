"""The agent that is measured, by default on Atari, and a batch for it."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from agents.contract import Agent
from agents.entry import Entry
from environments import suites
from environments.dm import make_environment_spec
from replay.structures import Batch, NetworkInput
from run_folder import catalogue, settings

GAME = "atari:pong"  # all 18 actions, as every Atari game has them
_SUITE = "atari57"  # decides how many tasks a multi-task agent's network serves
_TABLE_SIZE = 100_000


class Subject(NamedTuple):
    """An agent, and its view of a game."""

    preset: str
    entry: Entry
    agent: Agent
    spec: specs.EnvironmentSpec
    num_tasks: int

    @property
    def image(self) -> list[int]:
        """Height, width and channels of one network input."""
        return [*self.spec.observations.shape, self.agent.frame_stack]

    @property
    def frames(self) -> float:
        """Rows of an update's items, burn-in included."""
        layout = self.agent.tables[0].layout
        return float(self.agent.batch_size * (layout.burn_in + layout.length))

    @property
    def core(self) -> str:
        """The kind of its core, as a Config names it; the rivals' are LSTMs."""
        return getattr(self.agent.config, "core", "lstm")

    @property
    def settings(self) -> dict[str, Any]:
        """Name, preset and Config, for the report."""
        return {
            "agent": self.agent.name,
            "preset": self.preset,
            "config": dataclasses.asdict(self.agent.config),
        }


def make(agent: str, preset: str, overrides: dict[str, dict[str, str]], env: str = GAME) -> Subject:
    """An agent with the Config of a preset and what the command line changes of it.

    Args:
      agent: as `launch.train` takes it.
      preset: `paper` or `local`.
      overrides: agent name -> {config field -> text}.
      env: what it plays.

    Raises:
      ValueError: a name or a value that there is not.
    """
    entry = catalogue.entry(agent)
    (name,) = named = catalogue.named(agent)
    suites.check(env)
    tasks = _SUITE if env == GAME and not entry.single_task else env
    values = catalogue.preset_config(preset, entry, tasks)
    config = settings.make_configs(tasks, named, {name: values}, overrides)[name]
    spec = make_environment_spec(env)
    return Subject(preset, entry, entry.make(config, name), spec, len(suites.tasks(tasks)))


def synthetic_batch(subject: Subject) -> Batch:
    """One batch of whole items in which no episode begins or ends: every row is trained.

    The frames are noise. The cost of a step does not depend on them, unless they make numbers
    denormal, and these do not.
    """
    agent, num_actions = subject.agent, subject.spec.actions.num_values
    layout, size = agent.tables[0].layout, agent.batch_size
    steps = layout.burn_in + layout.length
    rng = np.random.default_rng(0)

    def integers(high: int, *shape: int, dtype: tf.DType) -> tf.Tensor:
        return tf.constant(rng.integers(high, size=shape), dtype)

    def rewards(rows: int) -> tf.Tensor:
        return tf.constant(rng.normal(size=[rows, size]), tf.float32)

    none = tf.zeros([steps + 1, size], tf.bool)
    shape = [agent.frame_stack + steps, size, *subject.spec.observations.shape]
    frames = rng.integers(256, size=shape, dtype=np.uint8)
    return Batch(
        inputs=NetworkInput(
            observation=tf.constant(frames),
            previous_action=integers(num_actions, steps + 1, size, dtype=tf.int32),
            previous_reward=rewards(steps + 1),
        ),
        reset=none,
        valid=~none,
        life_lost=none,
        action=integers(num_actions, steps, size, dtype=tf.int32),
        log_probability=tf.fill([steps, size], -float(np.log(num_actions))),
        reward=rewards(steps),
        continuation=tf.ones([steps, size]),
        mask=tf.ones([steps, size]),
        core_state=tree.map_structure(
            lambda x: tf.constant(rng.normal(scale=0.1, size=x.shape), tf.float32),
            agent.make_network(subject.spec).initial_state(size),
        ),
        key=tf.constant(np.arange(size), tf.uint64),
        shard=tf.zeros([size], tf.int32),
        probability=tf.fill([size], tf.constant(1 / _TABLE_SIZE, tf.float64)),
        table_size=tf.fill([size], tf.constant(_TABLE_SIZE, tf.int64)),
        learner_step=tf.zeros([size], tf.int64),
        task=integers(subject.num_tasks, size, dtype=tf.int64),
        actor=tf.zeros([size], tf.int64),
        agent=tf.zeros([size], tf.int64),
    )
