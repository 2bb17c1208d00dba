"""Launch-time settings as data: what `--preset=paper` and `--preset=local` stand for.

`paper` changes nothing in an agent's Config, whose defaults are the paper's. `local` scales replay,
batch, sequence and rates so that two cores learn something in an hour; docs/r2d2.md says how its
values were found.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

from agents import torsos
from environments import suites
from replay.frames import is_image

PRESETS = ("local", "paper")

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
        num_actors=32,
        actors_per_node=32,
        max_actor_steps=None,
        max_learner_steps=None,
        seed=0,
        full_action_space=False,
        evaluation_episodes=4,
        evaluation_minutes=10.0,
        checkpoint_minutes=10.0,
    ),
}

# On DMLab each environment is a process that renders, and a slow reset holds up its whole node: few
# environments, and fewer a node. Saving R2D2's coloured frames stops everyone for a minute.
_LOCAL_DMLAB: dict[str, Any] = dict(
    num_actors=8, actors_per_node=4, evaluation_episodes=2, checkpoint_minutes=30.0
)

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

_LOCAL_R2D2_DMLAB = _LOCAL_R2D2_ATARI | dict(replay_size=10_000)  # frames of three colours

# Of other images, which may be coloured, the core sees by itself what moves.
_LOCAL_R2D2_IMAGE = _LOCAL_R2D2_DMLAB | dict(frame_stack=1)

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

_OF_IMAGE = dict(frame_stack=1, lstm_size=256)
_LOCAL_POPART_IMAGE = _LOCAL_POPART_ATARI | _OF_IMAGE
_LOCAL_IMPALA_IMAGE = _LOCAL_IMPALA_ATARI | _OF_IMAGE

# The paper's entropy costs of DMLab reach from 5e-5 to 1e-2 (Table C.1): with the code's 2.5e-4 and
# unclipped gradients the policy lost most of its entropy within 300 updates.
_LOCAL_POPART_DMLAB = _LOCAL_POPART_ATARI | dict(entropy_cost=0.01, max_gradient_norm=40.0)

# On DMLab it has a core, which longer unrolls teach to remember more. A step costs an engine 1 to
# 3 ms of a core, acting and learning 0.6 ms; with the deep torso it would be 4 ms.
_LOCAL_IMPALA_DMLAB = _LOCAL_IMPALA_ATARI | _LOCAL_POPART_DMLAB | dict(length=32)

_Kind = Literal["atari", "dmlab", "image", "small"]

_LOCAL_POPART: dict[_Kind, dict[str, Any]] = dict(
    atari=_LOCAL_POPART_ATARI,
    dmlab=_LOCAL_POPART_DMLAB,
    image=_LOCAL_POPART_IMAGE,
    small=_LOCAL_IMPALA_SMALL,
)
_LOCAL: dict[str, dict[_Kind, dict[str, Any]]] = dict(
    r2d2=dict(
        atari=_LOCAL_R2D2_ATARI,
        dmlab=_LOCAL_R2D2_DMLAB,
        image=_LOCAL_R2D2_IMAGE,
        small=_LOCAL_R2D2_SMALL,
    ),
    impala=dict(
        atari=_LOCAL_IMPALA_ATARI,
        dmlab=_LOCAL_IMPALA_DMLAB,
        image=_LOCAL_IMPALA_IMAGE,
        small=_LOCAL_IMPALA_SMALL,
    ),
    multihead=_LOCAL_POPART,
    popart=_LOCAL_POPART,
)

# Where several agents read one stream, the network that acted may be another's, and its state is
# unknown: the first rows of an unroll recover one. On Atari these agents have no core.
_SHARED = {family: dict(burn_in=16) for family in ("impala", "multihead", "popart")}


def settings(name: str, env: str, acting: Sequence[str]) -> dict[str, Any]:
    """The values of one preset for `launch.settings.Settings`.

    The local preset plays each of several tasks equally often, with one action set for all: Atari
    games in one process for each acting agent, DMLab levels without an evaluator, which would need
    an engine for each of them too.

    Args:
      name: of the preset.
      env: name of what is played.
      acting: the agents that share the actors. On DMLab IMPALA has actions of its own.

    Raises:
      ValueError: for a name that is none of `PRESETS`.
    """
    if name not in PRESETS:
        raise ValueError(f"--preset must be one of {', '.join(PRESETS)}, got {name!r}.")
    values, is_local, on_dmlab = dict(_SETTINGS[name]), name == "local", _is_dmlab(env)
    if on_dmlab:
        values |= _LOCAL_DMLAB if is_local else {}
        values |= dict(full_action_space=set(acting) != {"impala"})
    num_tasks = len(suites.tasks(env))
    if not is_local or num_tasks == 1:
        return values
    every_task_once = num_tasks * len(acting)
    num_actors = every_task_once * math.ceil(values["num_actors"] / every_task_once)
    if on_dmlab:
        return values | dict(num_actors=num_actors, evaluation_episodes=0)
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
      env: name of what is played. The local preset looks at what it shows, so it must exist here.
      shared: whether other agents read the same stream.
    """
    family = agent.split("_")[0]
    is_atari = env.startswith("atari")
    values: dict[str, Any] = dict(_SHARED.get(family, {})) if shared and not is_atari else {}
    if name == "local":
        values |= _LOCAL[family][_kind(env)]
        if agent == "r2d2_feedforward":
            del values["lstm_size"]
    return values


def _kind(env: str) -> _Kind:
    """What the local preset tells apart; of any but Atari and DMLab only what is seen matters."""
    if env.startswith("atari"):
        return "atari"
    if _is_dmlab(env):
        return "dmlab"
    shape = suites.observation_space(env).shape
    if shape is not None and is_image(len(shape)) and torsos.takes_images("shallow", shape):
        return "image"
    return "small"


def _is_dmlab(env: str) -> bool:
    return env.startswith("dmlab")
