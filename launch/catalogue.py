"""The agents that can be named on the command line."""

import dataclasses
import difflib
from collections.abc import Callable
from typing import Any

from agents.contract import Agent
from agents.impala import agent as impala
from r2d2 import agent as r2d2


@dataclasses.dataclass(frozen=True)
class Entry:
    """One name: the paper's Config for an environment, and what makes the agent of a Config."""

    config: Callable[[str], Any]
    make: Callable[[Any, str], Agent]


def _always(config: Any) -> Callable[[str], Any]:
    return lambda env: config


AGENTS: dict[str, Entry] = {
    **{name: Entry(_always(config), r2d2.make) for name, config in r2d2.VARIANTS.items()},
    "impala": Entry(
        lambda env: impala.DMLAB if env.startswith("dmlab") else impala.ATARI, impala.make
    ),
}

PLANNED = ("multihead_impala", "popart", "stac", "stacx")


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
