"""The agents that can be named on the command line."""

import dataclasses
import difflib
from collections.abc import Callable
from typing import Any

from agents.contract import Agent
from agents.impala import agent as impala
from agents.impala import presets as impala_presets
from agents.popart import agent as popart
from agents.popart import presets as popart_presets
from agents.presets import Presets
from environments import suites
from r2d2 import agent as r2d2
from r2d2 import presets as r2d2_presets


@dataclasses.dataclass(frozen=True)
class Entry:
    """One name.

    Attributes:
      config: name of an environment -> the paper's Config for it.
      make: makes the agent of a Config and a name.
      presets: what it is on two cores, and beside other agents.
      all_dmlab_actions: whether it plays DeepMind Lab with the 15 actions of R2D2 and PopArt, or
        with IMPALA's nine.
    """

    config: Callable[[str], Any]
    make: Callable[[Any, str], Agent]
    presets: Presets
    all_dmlab_actions: bool = True


def _of_kind(atari: Any, dmlab: Any) -> Callable[[str], Any]:
    return lambda env: dmlab if env.startswith("dmlab") else atari


def _of_tasks(atari: popart.Config, dmlab: popart.Config) -> Callable[[str], popart.Config]:
    of_kind = _of_kind(atari, dmlab)
    return lambda env: dataclasses.replace(of_kind(env), num_tasks=len(suites.tasks(env)))


AGENTS: dict[str, Entry] = {
    **{
        name: Entry(
            _of_kind(config, r2d2.DMLAB_VARIANTS[name]),
            r2d2.make,
            r2d2_presets.PRESETS if config.lstm_size else r2d2_presets.FEEDFORWARD,
        )
        for name, config in r2d2.VARIANTS.items()
    },
    "impala": Entry(
        _of_kind(impala.ATARI, impala.DMLAB),
        impala.make,
        impala_presets.PRESETS,
        all_dmlab_actions=False,
    ),
    "multihead_impala": Entry(
        _of_tasks(popart.MULTIHEAD_ATARI, popart.MULTIHEAD_DMLAB),
        popart.make,
        popart_presets.PRESETS,
    ),
    "popart": Entry(_of_tasks(popart.ATARI, popart.DMLAB), popart.make, popart_presets.PRESETS),
}

PLANNED = ("stac", "stacx")


def check(name: str) -> None:
    """Accepts the name of an agent that exists.

    Raises:
      ValueError: for any other name; the nearest right one is suggested.
    """
    if name in AGENTS:
        return
    if name in PLANNED:
        raise ValueError(f"--agent={name} is not built yet; there are {', '.join(AGENTS)}.")
    near = difflib.get_close_matches(name, [*AGENTS, *PLANNED], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"--agent={name!r} is unknown; there are {', '.join(AGENTS)}.{hint}")


def make(name: str, config: Any) -> Agent:
    """The agent of a name that `check` accepts."""
    return AGENTS[name].make(config, name)
