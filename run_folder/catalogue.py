"""The agents that can be named on the command line: by name, or by an import path.

`r2d2` is a name. `my_package.agents:REINFORCE` is an `agents.entry.Entry` of anybody's; the run
calls it `REINFORCE`, in logs, in tables and in `--REINFORCE.<field>`.
"""

import dataclasses
import difflib
import re
from typing import Any, NoReturn

from agents.entry import EXAMPLE, Entry
from agents.impala import entry as impala
from agents.popart import entry as popart
from agents.stac import entry as stac
from environments import import_path, suites
from r2d2 import entry as r2d2

_LONGEST = 64
_NAME = re.compile(rf"\w{{1,{_LONGEST}}}", re.ASCII)

AGENTS: dict[str, Entry] = {
    **r2d2.ENTRIES,
    **impala.ENTRIES,
    **popart.ENTRIES,
    **stac.ENTRIES,
}


@dataclasses.dataclass(frozen=True)
class _UnknownConfig:
    """Of an agent whose own one is not imported."""


def _make_unknown(config: Any, name: str) -> NoReturn:
    raise ValueError(f"{name} is somebody's own agent, which is not imported here.")


NOT_IMPORTED = Entry(config=_UnknownConfig(), make=_make_unknown)
"""Any agent of a user's own, within `import_path.nothing_imported`."""


def named(agents: str) -> dict[str, str]:
    """What the agents of a run are called -> what each was named by.

    Args:
      agents: with commas between them.

    Raises:
      ValueError: two are called alike.
    """
    each = agents.split(",")
    found = {agent.rpartition(":")[2]: agent for agent in each}
    if len(found) < len(each):
        raise ValueError(f"--agent={agents} names an agent twice.")
    return found


def entry(agent: str) -> Entry:
    """What an agent's name or import path stands for.

    Raises:
      ValueError: nothing; the nearest right name is suggested.

    Returns:
      The entry; `NOT_IMPORTED` of a user's own where nothing is imported.
    """
    if agent in AGENTS:
        return AGENTS[agent]
    if not import_path.is_import_path(agent):
        near = difflib.get_close_matches(agent, AGENTS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"--agent={agent!r} is unknown; there are {', '.join(AGENTS)}, or your own, such as "
            f"{EXAMPLE}.{hint}"
        )
    if import_path.imports_nothing():
        return NOT_IMPORTED
    try:
        found = import_path.load(agent, what="an agent", example=EXAMPLE)
    except ValueError as error:
        raise ValueError(f"--agent={agent}: {error}") from error
    name = agent.rpartition(":")[2]
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"--agent={agent} names files and flags by {name!r}, which must be of at most "
            f"{_LONGEST} letters from a to z, digits and _."
        )
    if not isinstance(found, Entry):
        raise ValueError(
            f"--agent={agent} must name an agents.entry.Entry, such as {EXAMPLE}; it is a "
            f"{type(found).__name__}."
        )
    return found


def config(agent: str, env: str) -> Any:
    """The paper's Config of an agent for an environment or suite."""
    found = entry(agent)
    paper = _paper(found, env)
    values = dict(found.of_env(env))
    if found.num_tasks_field is not None:
        values[found.num_tasks_field] = len(suites.tasks(env))
    return dataclasses.replace(paper, **values)


def _paper(found: Entry, env: str) -> Any:
    """The paper's Config for what is played, or else that for Atari."""
    special = None
    if suites.kind(env) == "dmlab":
        special = found.dmlab
    elif found.control is not None and suites.is_continuous(env):
        special = found.control_image if suites.shows_pixels(env) else found.control
    return found.config if special is None else special
