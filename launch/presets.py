"""Launch-time settings as data: what `--preset=paper` and `--preset=local` stand for.

`paper` changes nothing in an agent's Config, whose defaults are the paper's. `local` scales replay,
batch, sequence and rates so that two cores learn something in an hour; docs/r2d2.md says how its
values were found.
"""

import dataclasses
from typing import Any

PRESETS = ("local", "paper")


@dataclasses.dataclass(frozen=True)
class Preset:
    """Values for `launch.settings.Settings` and for the agent's Config."""

    settings: dict[str, Any]
    config: dict[str, Any]


_SETTINGS = {
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
    learning_rate=2e-3,
    rmsprop_epsilon=1e-3,
    annealing_steps=1_000_000,
)

# Unrolls of 16, so that they and R2D2's items can be cut from blocks of 16 rows.
_LOCAL_IMPALA_ATARI = dict(torso="shallow", lstm_size=256, length=16)

_LOCAL = {  # family -> config on Atari, config elsewhere
    "r2d2": (_LOCAL_R2D2_ATARI, _LOCAL_R2D2_SMALL),
    "impala": (_LOCAL_IMPALA_ATARI, _LOCAL_IMPALA_SMALL),
}

# Where several agents read one stream, the network that acted may be another's, and its state is
# unknown: the first rows of an unroll recover one.
_SHARED = {"impala": dict(burn_in=16)}


def get(name: str, agent: str, env: str, *, shared: bool = False) -> Preset:
    """The values of one preset for an agent on an environment.

    Args:
      name: of the preset.
      agent: its name.
      env: its name.
      shared: whether other agents read the same stream.

    Raises:
      ValueError: for a name that is none of `PRESETS`.
    """
    if name not in PRESETS:
        raise ValueError(f"--preset must be one of {', '.join(PRESETS)}, got {name!r}.")
    family = agent.split("_")[0]
    config: dict[str, Any] = dict(_SHARED.get(family, {})) if shared else {}
    if name == "local":
        config |= _LOCAL[family][0 if env.startswith("atari") else 1]
        if agent == "r2d2_feedforward":
            del config["lstm_size"]
    return Preset(_SETTINGS[name], config)
