"""Launch-time settings as data: what `--preset=paper` and `--preset=local` stand for.

`paper` changes nothing in an agent's Config, whose defaults are the paper's. `local` scales replay,
batch, sequence and rates so that two cores learn something in an hour: each agent's `presets`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agents.entry import Entry, Kind, Values
from agents.fields import Field
from agents.networks.named import CONVOLUTIONS, least_side
from environments import suites
from environments.copies import conversion

PRESETS = ("local", "paper")

# On DMLab each environment is a process that renders, and a slow reset holds up its whole node: few
# environments, and fewer a node. Saving R2D2's coloured frames stops everyone for a minute.
_LOCAL_DMLAB: dict[str, Any] = dict(
    num_actors=8, actors_per_node=4, evaluation_episodes=2, checkpoint_minutes=30.0
)


def settings(
    name: str, env: str, declared: Mapping[str, Field], acting: Sequence[Entry]
) -> dict[str, Any]:
    """The values of one preset for `run_folder.settings.Settings`.

    The local preset plays each of several tasks equally often, with one action set for all: Atari
    games in one process for each acting agent, DMLab levels without an evaluator, which would need
    an engine for each of them too. The paper preset's 256 actors are spread over whatever there is:
    of 57 games the first 28 have five each, and the others four.

    Args:
      name: of the preset.
      env: name of what is played.
      declared: the settings.
      acting: the agents that share the actors.

    Raises:
      ValueError: for a name that is none of `PRESETS`.
    """
    if name not in PRESETS:
        raise ValueError(f"--preset must be one of {', '.join(PRESETS)}, got {name!r}.")
    values = {key: field.presets[name] for key, field in declared.items() if field.presets}
    is_local, on_dmlab = name == "local", _is_dmlab(env)
    if on_dmlab:
        values |= _LOCAL_DMLAB if is_local else {}
        values |= dict(full_action_space=any(entry.all_dmlab_actions for entry in acting))
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


def config(name: str, agent: Entry, env: str, *, shared: bool = False) -> dict[str, Any]:
    """The values of one preset for an agent's Config.

    Args:
      name: of the preset.
      agent: whose.
      env: name of what is played. The local preset looks at what it shows, so it must exist here.
      shared: whether other agents read the same stream.
    """
    values = dict(agent.shared) if shared and suites.kind(env) != "atari" else {}
    return values | dict(_local(agent, kind_of(env))) if name == "local" else values


def _local(agent: Entry, kind: Kind) -> Values:
    """What an agent's local preset has; vectors of actions are none of every agent's kinds."""
    alike: dict[Kind, Kind] = {"control": "small", "control_image": "image"}
    return agent.local.get(kind, agent.local.get(alike.get(kind, kind), {}))


def kind_of(env: str) -> Kind:
    """What the local preset tells apart; of any but Atari and DMLab how it is seen and acted in."""
    if suites.kind(env) == "atari":
        return "atari"
    if _is_dmlab(env):
        return "dmlab"
    if suites.is_continuous(env):
        return "control_image" if suites.shows_pixels(env) else "control"
    shapes = conversion.images(suites.observation_space(env))
    least = least_side(CONVOLUTIONS["shallow"])
    large = shapes and all(min(shape[:2]) >= least for shape in shapes)
    return "image" if large else "small"


def _is_dmlab(env: str) -> bool:
    return suites.kind(env) == "dmlab"
