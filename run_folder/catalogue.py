"""Names on the command line: agents, and presets of their Configs.

`r2d2` is a name. `my_package.agents:REINFORCE` is an `agents.entry.Entry` of anybody's; the run
calls it `REINFORCE`, in logs, in tables and in `--REINFORCE.<field>`.

The preset `paper` changes nothing in an agent's Config, whose defaults are the paper's. `local`
scales replay, batch, sequence and rates so that two cores learn something in an hour: each agent's
`local`.
"""

import dataclasses
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import r2d2  # noqa: F401 (its check of the installation; its entry is imported later)
from agents.entry import EXAMPLE, Entry, Kind
from agents.networks.named import CONVOLUTIONS, least_side
from environments import import_path, suites
from run_folder import texts

PRESETS = ("local", "paper")
_LONGEST = 64
_MODULES = {  # of the entries, `ENTRIES`, by the names that these have in it
    **dict.fromkeys(("r2d2", "r2d2_plus", "r2d2_feedforward"), "r2d2.entry"),
    "impala": "agents.impala.entry",
    **dict.fromkeys(("multihead_impala", "popart"), "agents.popart.entry"),
    **dict.fromkeys(("stac", "stacx"), "agents.stac.entry"),
    "rsac": "agents.rsac.entry",
}


class _Agents(Mapping[str, Entry]):
    """The project's agents by name. A run imports those that it names, and no others."""

    def __getitem__(self, name: str) -> Entry:
        entry: Entry = importlib.import_module(_MODULES[name]).ENTRIES[name]
        return entry

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


AGENTS = _Agents()


@dataclasses.dataclass(frozen=True)
class _UnknownConfig:
    """The Config of an agent whose own one is not imported."""


def _make_unknown(config: Any, name: str) -> NoReturn:
    raise ValueError(f"{name} is somebody's own agent, which is not imported here.")


NOT_IMPORTED = Entry(config=_UnknownConfig(), make=_make_unknown)
"""Any agent of a user's own, within `import_path.nothing_imported`."""


class NamedAgent(NamedTuple):
    """An agent of a run."""

    named_by: str  # its name, or its import path, after `--agent=`
    entry: Entry  # what that stands for


def names(agents: str) -> dict[str, str]:
    """The names of a run's agents -> what each was named by after `--agent=`; imports nothing.

    Raises:
      ValueError: two are called alike.
    """
    each = agents.split(",")
    found = {agent.rpartition(":")[2]: agent for agent in each}
    if len(found) < len(each):
        raise ValueError(f"--agent={agents} names an agent twice.")
    return found


def named(agents: str) -> dict[str, NamedAgent]:
    """The agents of a run by name. Raises ValueError as `names` and `entry` do."""
    return {name: NamedAgent(agent, entry(agent)) for name, agent in names(agents).items()}


def entry(agent: str) -> Entry:
    """The entry of a name or import path; `NOT_IMPORTED` of a user's own where none is imported.

    Raises:
      ValueError: there is none; the nearest right name is suggested.
    """
    if agent in AGENTS:
        return AGENTS[agent]
    if not import_path.is_import_path(agent):
        raise ValueError(
            f"--agent={agent!r} is unknown; there are {', '.join(AGENTS)}, or your own, such as "
            f"{EXAMPLE}.{texts.suggest(agent, AGENTS)}"
        )
    if import_path.imports_nothing():
        return NOT_IMPORTED
    try:
        found = import_path.load(agent, what="an agent", example=EXAMPLE)
    except ValueError as error:
        raise ValueError(f"--agent={agent}: {error}") from error
    name = agent.rpartition(":")[2]
    if not (name.isascii() and name.isidentifier() and len(name) <= _LONGEST):
        raise ValueError(
            f"--agent={agent} names files and flags by {name!r}, which must be of at most "
            f"{_LONGEST} letters from a to z, digits and _."
        )
    if not isinstance(found, Entry):
        raise ValueError(
            f"--agent={agent} must name an agents.entry.Entry, such as {EXAMPLE}; it is "
            f"{'a class' if isinstance(found, type) else f'of type {type(found).__name__}'}."
        )
    return found


def config(agent: str, env: str) -> Any:
    """The paper's Config of an agent, as `--agent` names it, for an environment or suite."""
    return paper_config(entry(agent), env)


def paper_config(agent: Entry, env: str) -> Any:
    """The paper's Config of an agent for what is played, or else that for Atari."""
    special = None
    if suites.kind(env) == "dmlab":
        special = agent.dmlab
    elif agent.control is not None and suites.is_continuous(env):
        special = agent.control_image if suites.images(env) else agent.control
    values = dict(agent.of_env(env))
    if agent.num_tasks_field is not None:
        values[agent.num_tasks_field] = len(suites.tasks(env))
    return dataclasses.replace(agent.config if special is None else special, **values)


def preset_config(preset: str, agent: Entry, env: str, *, shared: bool = False) -> dict[str, Any]:
    """The values of one preset for an agent's Config; other agents may read a shared stream.

    The local preset looks at what the environment shows, which so must exist here.
    """
    values = dict(agent.shared) if shared and suites.kind(env) != "atari" else {}
    if preset == "local":
        kind = kind_of(env)
        alike: dict[Kind, Kind] = {"control": "small", "control_image": "image"}
        values |= agent.local.get(kind, agent.local.get(alike.get(kind, kind), {}))
    return values


def kind_of(env: str) -> Kind:
    """The kind of an environment: any but Atari and DMLab by how it is seen and acted in."""
    match suites.kind(env):
        case "atari":
            return "atari"
        case "dmlab":
            return "dmlab"
    if suites.is_continuous(env):
        return "control_image" if suites.images(env) else "control"
    shapes = suites.images(env)
    least = least_side(CONVOLUTIONS["shallow"])
    large = shapes and all(min(shape[:2]) >= least for shape in shapes)
    return "image" if large else "small"
