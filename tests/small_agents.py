"""Small agents whose updates take milliseconds, and batches as they would sample them."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from acme import specs

from agents.contract import Agent
from agents.impala import agent as impala
from agents.popart import agent as popart
from agents.popart.statistics import PopArt
from agents.rsac import agent as rsac
from agents.stac import agent as stac
from r2d2 import agent as r2d2
from replay.structures import NO_ACTION, Batch
from tests.batches import environment_spec, random_batch, with_actions_of

R2D2: dict[str, Any] = dict(
    burn_in=3,
    length=6,
    period=3,
    frame_stack=1,
    n_step=3,
    discount=0.9,
    batch_size=4,
    learning_rate=1e-2,
    target_update_period=3,
    torso="mlp",
    hidden_sizes=(8,),
    lstm_size=6,
    head_size=7,
)
IMPALA: dict[str, Any] = dict(
    length=7,
    frame_stack=1,
    discount=0.9,
    batch_size=4,
    queue_size=8,
    reward_transform="none",
    learning_rate=1e-3,
    frames_per_step=1,
    torso="mlp",
    hidden_sizes=(8,),
    lstm_size=6,
)
NUM_TASKS = 4  # of PopArt, whose statistics follow within a few updates
POPART = IMPALA | dict(num_tasks=NUM_TASKS, statistics_decay=0.1)
STAC = IMPALA | dict(head_hidden_sizes=(8,))
RSAC: dict[str, Any] = {
    **{name: R2D2[name] for name in R2D2 if name not in ("target_update_period", "head_size")},
    "head_hidden_sizes": (7,),
    "tau": 0.1,
}

_KINDS: dict[str, Any] = dict(r2d2=r2d2, impala=impala, popart=popart, stac=stac, rsac=rsac)
_FIELDS = dict(r2d2=R2D2, impala=IMPALA, popart=POPART, stac=STAC, rsac=RSAC)
NAMES = pytest.mark.parametrize("name", _KINDS)

# An R2D2's items: three trained steps and a terminal; an episode's start; one trained step; a
# whole item.
ITEMS: dict[str, Any] = dict(
    num_real=[6, 6, 4, 9], padding=[0, 3, 0, 0], terminated=[True, False, True, False]
)
# (row, column) of each LAST row of an IMPALA's unrolls -> whether the environment terminated.
ENDS = {(3, 0): True, (3, 1): False, (1, 2): True, (5, 2): False, (6, 3): False}
TASKS = np.array([3, 0, 3, 1])  # of a PopArt's unrolls
ABSENT = 2  # the task that none of them plays


def small_config(name: str, **changes: Any) -> Any:
    """An agent's Config, for observations of OBSERVATION_SIZE floats."""
    return _KINDS[name].Config(**_FIELDS[name] | changes)


def make_agent(config: Any, given: Any = None) -> Agent:
    """The agent whose Config it is, made of that or of what is given in its place."""
    (kind,) = [kind for kind in _KINDS.values() if kind.Config is type(config)]
    made: Agent = kind.make(given or config)
    return made


def make_update(config: Any, seed: int = 0, spec: specs.EnvironmentSpec | None = None) -> Any:
    """A new update whose parameters follow from the seed; PopArt's tasks differ in statistics."""
    tf.random.set_seed(seed)
    spec = with_actions_of(config, spec or environment_spec())
    update = make_agent(config).make_update(spec)
    if isinstance(config, popart.Config) and config.normalise:
        statistics = statistics_of(update)
        mu = np.linspace(-1, 2, config.num_tasks)
        statistics.mu.assign(mu)
        statistics.nu.assign(mu**2 + np.linspace(0.5, 3, config.num_tasks) ** 2)
    return update


def statistics_of(update: Any) -> PopArt:
    """The statistics inside a PopArt's update."""
    (statistics,) = [m for m in update.submodules if isinstance(m, PopArt)]
    return statistics


def make_batch(config: Any, seed: int = 0, **options: Any) -> Batch:
    """A random batch with padding or ends of episodes, as the Config's agent would sample it."""
    if isinstance(config, r2d2.Config | rsac.Config):
        return random_batch(config, seed, **ITEMS | options)
    batch = with_ends(random_batch(config, seed, **options), ENDS)
    return batch._replace(task=tf.constant(TASKS)) if isinstance(config, popart.Config) else batch


def with_ends(batch: Batch, ends: dict[tuple[int, int], bool]) -> Batch:
    """The batch with episodes that end inside its unrolls, where ENDS says how."""
    fields = (batch.mask, batch.continuation, batch.reset, batch.inputs.previous_action)
    mask, continuation, reset, previous_action = (np.array(x) for x in fields)
    for (row, column), terminated in ends.items():
        mask[row, column] = 0
        continuation[row - 1, column] = 0 if terminated else 1
        reset[row + 1, column] = True
        is_discrete = previous_action.dtype.kind == "i"
        previous_action[row + 1, column] = NO_ACTION if is_discrete else 0
    return batch._replace(
        inputs=batch.inputs._replace(previous_action=tf.constant(previous_action)),
        reset=tf.constant(reset),
        mask=tf.constant(mask),
        continuation=tf.constant(continuation),
    )


def gradients_of(update: Any, batch: Batch) -> list[np.ndarray]:
    """The gradient of a batch's loss, before any clipping; not for STAC, which has two losses."""
    with tf.GradientTape() as tape:
        loss = update.evaluate(batch).loss
    network = getattr(update, "learned_network", update.network)
    return [g.numpy() for g in tape.gradient(loss, network.trainable_variables)]
