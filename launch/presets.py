"""Launch-time settings as data: what `--preset=paper` and `--preset=local` stand for.

`paper` changes nothing in an agent's Config, whose defaults are the paper's. `local` scales replay,
batch, sequence and rates so that two cores learn something in an hour; docs/r2d2.md says how its
values were found.
"""

import math
from typing import Any

from environments import suites

PRESETS = ("local", "paper")
LOCAL_ACTORS = 32  # at least

_SETTINGS: dict[str, dict[str, Any]] = {
    "paper": dict(
        num_actors=256,
        actors_per_node=1,
        max_actor_steps=None,
        max_learner_steps=None,
        seed=0,
        full_action_space=True,
        evaluation_episodes=10,
        evaluation_minutes=10.0,
        checkpoint_minutes=30.0,
    ),
    "local": dict(
        num_actors=LOCAL_ACTORS,
        actors_per_node=LOCAL_ACTORS,
        max_actor_steps=None,
        max_learner_steps=None,
        seed=0,
        full_action_space=False,
        evaluation_episodes=4,
        evaluation_minutes=10.0,
        checkpoint_minutes=10.0,
    ),
}

# Small observations, short episodes: a small network that is updated often.
_LOCAL_R2D2_SMALL = dict(
    torso="mlp",
    lstm_size=64,
    head_size=64,
    frame_stack=1,
    burn_in=8,
    length=16,
    period=8,
    replay_size=10_000,
    min_replay_size=200,
    batch_size=32,
    samples_per_insert=4.0,
    learning_rate=1e-3,
    adam_epsilon=1e-5,
    discount=0.99,
    target_update_period=50,
    variable_update_period=50,
)

_LOCAL_R2D2_ATARI = dict(
    torso="shallow",
    lstm_size=256,
    head_size=256,
    burn_in=8,
    length=32,
    period=16,
    replay_size=20_000,
    min_replay_size=400,
    batch_size=16,
    samples_per_insert=2.0,
    learning_rate=3e-4,
    adam_epsilon=1e-5,
    discount=0.99,
    target_update_period=200,
    variable_update_period=100,
)

_LOCAL_IMPALA_SMALL = dict(
    torso="mlp",
    lstm_size=64,
    frame_stack=1,
    length=16,
    batch_size=8,
    queue_size=32,
    learning_rate=5e-3,
    rmsprop_decay=0.9,  # of 0.99 the first 500 updates are slow
    rmsprop_epsilon=1e-3,
    annealing_steps=1_000_000,
)

# Unrolls of 16, so that they and R2D2's items can be cut from blocks of 16 rows. Of several tasks a
# batch should hold all, so only IMPALA's is small.
_LOCAL_POPART_ATARI = dict(torso="shallow", length=16, rmsprop_epsilon=1e-3)
_LOCAL_IMPALA_ATARI = dict(**_LOCAL_POPART_ATARI, batch_size=8, queue_size=32)

_LOCAL = {  # family -> config on Atari, config elsewhere
    "r2d2": (_LOCAL_R2D2_ATARI, _LOCAL_R2D2_SMALL),
    "impala": (_LOCAL_IMPALA_ATARI, _LOCAL_IMPALA_SMALL),
    "multihead": (_LOCAL_POPART_ATARI, _LOCAL_IMPALA_SMALL),
    "popart": (_LOCAL_POPART_ATARI, _LOCAL_IMPALA_SMALL),
}

# Where several agents read one stream, the network that acted may be another's, and its state is
# unknown: the first rows of an unroll recover one. On Atari these agents have no core.
_SHARED = {family: dict(burn_in=16) for family in ("impala", "multihead", "popart")}


def settings(name: str, env: str, *, num_acting: int = 1) -> dict[str, Any]:
    """The values of one preset for `launch.settings.Settings`.

    The local preset plays each of several tasks equally often, in one process for each acting
    agent, with one action set for all.

    Args:
      name: of the preset.
      env: name of what is played.
      num_acting: agents that share the actors.

    Raises:
      ValueError: for a name that is none of `PRESETS`.
    """
    if name not in PRESETS:
        raise ValueError(f"--preset must be one of {', '.join(PRESETS)}, got {name!r}.")
    values = _SETTINGS[name]
    num_tasks = len(suites.tasks(env))
    if name == "paper" or num_tasks == 1:
        return values
    every_task_once = num_tasks * num_acting
    num_actors = every_task_once * math.ceil(LOCAL_ACTORS / every_task_once)
    return values | dict(
        num_actors=num_actors,
        actors_per_node=num_actors,
        full_action_space=True,
        evaluation_episodes=1,
    )


def config(name: str, agent: str, env: str, *, shared: bool = False) -> dict[str, Any]:
    """The values of one preset for an agent's Config.

    Args:
      name: of the preset.
      agent: name of the agent.
      env: name of what is played.
      shared: whether other agents read the same stream.
    """
    family = agent.split("_")[0]
    is_atari = env.startswith("atari")
    values: dict[str, Any] = dict(_SHARED.get(family, {})) if shared and not is_atari else {}
    if name == "local":
        values |= _LOCAL[family][0 if is_atari else 1]
        if agent == "r2d2_feedforward":
            del values["lstm_size"]
    return values
