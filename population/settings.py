"""A population: its rule, what its members draw, how they run; as typed, and as its folder has it.

All of it is checked without TensorFlow, so that what is mistyped is answered within a second.
"""

import contextlib
import dataclasses
import functools
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents import fields
from agents.fields import Field, field, required
from agents.requirements import COUNT, FRACTION, number, whole
from environments import suites
from population import ranges
from population.folder import PopulationFolder, is_population
from population.ranges import Range
from run_folder import catalogue, disk, texts
from run_folder import settings as runs
from run_folder.layout import RunFolder
from run_folder.settings import EVERY_AGENT, Overrides, Settings, SettingsError
from run_folder.texts import reading

_HORIZON = "annealing_frames"
ENDS = ("max_minutes", "until_return", "until_evaluations")  # of a run that takes no turns
_OWN = ("agent", "env", "seed", "run_dir", "configs", *ENDS)  # no flags that members share
_FIXED = ("preset", "act_with", "paced_by", "num_replay_shards")  # of a run that goes on
NOTHING, EVERYTHING = "none", "all"  # that is evolved


@dataclasses.dataclass(frozen=True)
class Population:
    """The settings of a population; the rule's defaults are Espeholt et al. 2018, Appendix E."""

    agent: str = required(None, "What every member learns with.")
    env: str = required(None, "What every member plays.")
    seed: int = required(whole(0), "Of all that is drawn.")
    sweep: dict[str, str] = required(
        None, "Where the fields' first values come from: field -> range, as it was typed."
    )
    flags: dict[str, Any] = required(None, "Other flags of launch.train, for every member.")
    overrides: dict[str, dict[str, str]] = required(
        None, "Hyperparameters of every member, as they were typed: agent -> field -> text."
    )
    members: int = field(24, whole(2, 1_000), "Runs that learn side by side, as in the paper.")
    evolve: str = field(
        EVERYTHING, None, "Which of the fields are taken over and multiplied: all, none, or some."
    )
    concurrent: int = field(1, COUNT, "Members that run at a time on this machine.")
    turn_steps: int = field(
        1_000_000, COUNT, "Actor steps after which the next member has its turn."
    )
    burn_in_frames: int = field(20_000_000, whole(0), "Frames of a member before it evolves.")
    ready_episodes: int = field(5_000, COUNT, "Episodes of a member between its decisions.")
    margin: float = field(
        0.05, number(0, 1e6), "By how much another's score must be higher to be adopted."
    )
    mutation_probability: float = field(0.33, FRACTION, "Of a value, in each decision.")
    mutation_factor: float = field(
        1.2, number(1, 1e6), "What it is multiplied with, or divided by."
    )

    def __post_init__(self) -> None:
        try:
            fields.check(self)
        except ValueError as error:  # which begins with the field's name
            raise SettingsError(f"--{error}") from None
        self._check_flags()
        self._check_sweep()

    def _check_flags(self) -> None:
        known = [name for name in fields.declared(Settings) if name not in _OWN]
        for name, value in self.flags.items():
            if name not in known:
                hint = texts.suggest(name, known)
                raise SettingsError(f"--flags has {name!r}, no flag that members share.{hint}")
            runs.check_value(name, value)

    def _check_sweep(self) -> None:
        if not self.sweep:
            raise SettingsError("--sweep must give a field at least.")
        grids = [name for name, found in self.ranges.items() if found.kind == "grid"]
        cells = ranges.cells(self.ranges)
        if self.members % cells:
            raise SettingsError(
                f"--members must be a multiple of {cells}, the combinations of "
                f"{', '.join(grids)}, got {self.members}."
            )
        if self.evolves and grids:
            raise SettingsError(
                f"--sweep={grids[0]}=grid: is for members that stay apart: add "
                f"--evolve={NOTHING}, or use choice:."
            )
        if self.evolve in (NOTHING, EVERYTHING):
            return
        for name in self.evolve.split(","):
            if name not in self.sweep:
                raise SettingsError(
                    f"--evolve={self.evolve} names {name!r}, which --sweep gives no range; it "
                    f"gives {', '.join(self.sweep)}."
                )

    @functools.cached_property
    def declared(self) -> Mapping[str, Field]:
        """The fields of the agent's Config. Raises ValueError where that is not imported."""
        if catalogue.entry(self.agent) is catalogue.NOT_IMPORTED:
            raise ValueError(f"only {self.agent} knows what its fields are: --trust imports it")
        return fields.declared(type(catalogue.config(self.agent, self.env)))

    @functools.cached_property
    def ranges(self) -> dict[str, Range]:
        """Where the fields' first values come from."""
        try:
            return {
                name: ranges.parse(name, text, self.declared) for name, text in self.sweep.items()
            }
        except ValueError as error:
            raise SettingsError(f"--sweep: {error}") from None

    def is_at_limit(self, actor_steps: float, learner_steps: float) -> bool:
        """Tells whether a member with these counts has reached a limit; NaN is no count yet."""
        counted = {"max_actor_steps": actor_steps, "max_learner_steps": learner_steps}
        limits = {name: self.flags.get(name) for name in counted}
        # Where nobody acts, no actor steps are a limit.
        return any(limit and counted[name] >= limit for name, limit in limits.items())

    @property
    def evolves(self) -> bool:
        """Whether members learn from each other."""
        return self.evolve != NOTHING

    @property
    def evolving(self) -> tuple[str, ...]:
        """The fields that are taken over with another's weights."""
        if not self.evolves:
            return ()
        return tuple(self.sweep) if self.evolve == EVERYTHING else tuple(self.evolve.split(","))

    @property
    def mutable(self) -> tuple[str, ...]:
        """The evolving fields whose values are multiplied."""
        found = self.ranges
        return tuple(name for name in self.evolving if found[name].mutates)

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises ValueError for values, by field, that no member can have."""
        if set(values) != set(self.sweep):
            raise ValueError(f"it must be of {', '.join(self.sweep)}, got {list(values)}.")
        for name, value in values.items():
            as_python = tuple(value) if isinstance(value, list) else value
            fields.check_value(name, self.declared[name], as_python)

    def draw(self, member: int) -> dict[str, Any]:
        """The values that a member begins with."""
        return ranges.draw(self.ranges, member, self.seed)

    def seed_of(self, member: int) -> int:
        """The seed of a member's run. Populations of neighbouring seeds hardly ever share one."""
        words = np.random.SeedSequence(self.seed, spawn_key=(member,))
        return int(words.generate_state(1)[0] % 2**31)

    def overrides_of(self, values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        """Hyperparameters of a member with these values of what is swept."""
        found = {of: dict(shared) for of, shared in self.overrides.items()}
        own = found.setdefault(self.agent_name, {})
        own.update((name, texts.typed(value)) for name, value in values.items())
        return found

    def run_of(self, folder: PopulationFolder, member: int, values: Mapping[str, Any]) -> Settings:
        """A member's run that began with these values of what is swept.

        Raises:
          SettingsError: `launch.train` takes no such run.
        """
        own = self.own_flags(folder, member)
        given = dict(preset=catalogue.PRESETS[0]) | self.flags | own
        return runs.resolve(given, self.overrides_of(values))

    def own_flags(self, folder: PopulationFolder, member: int) -> dict[str, Any]:
        """The flags of a member's first launch that `flags` does not have."""
        run_dir, seed = str(folder.member(member).path), self.seed_of(member)
        return dict(agent=self.agent, env=self.env, run_dir=run_dir, seed=seed)

    @property
    def agent_name(self) -> str:
        """The agent as its flags and logs call it."""
        (name,) = catalogue.names(self.agent)
        return name

    def to_json(self) -> str:
        """The text of population.json."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


def load(path: pathlib.Path) -> Population:
    """The population that a folder's population.json records.

    Raises:
      SettingsError: there is none, or it does not say what a population's would.
    """
    with _recorded(path) as values:
        return Population(**values)


def played(path: pathlib.Path) -> tuple[str, float | None]:
    """What the population of a folder plays, and its `hang_seconds` if it has any.

    `load` may make an environment to see what its actions are. Nothing is made here.

    Raises:
      SettingsError: there is none, or it does not say so.
    """
    with _recorded(path) as values:
        seconds = values["flags"].get("hang_seconds")
        if seconds is not None:
            runs.check_value("hang_seconds", seconds)
        return values["env"], seconds


@contextlib.contextmanager
def _recorded(path: pathlib.Path) -> Iterator[dict[str, Any]]:
    """The values of a folder's population.json; errors within are told of that file."""
    file = PopulationFolder(path).settings
    with reading(file, absent=f"{path} holds no population: there is no {file}."):
        yield texts.fields_of(Population, texts.read_json(file))


def record(folder: PopulationFolder, population: Population) -> None:
    """Writes population.json, unless it says so already: hosts may begin at the same time."""
    text = population.to_json()
    if not folder.settings.exists() or folder.settings.read_text() != text:
        try:
            disk.write(folder.settings, text)
        except FileNotFoundError:  # another host has put the same into its place
            if not folder.settings.exists():
                raise


def make_folder(folder: PopulationFolder) -> None:
    """Makes a population's folder, its user's alone; one that is there stays as open as it is."""
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--run_dir={folder.path} cannot be made: {error.strerror}.") from None


class Asked(NamedTuple):
    """The words that were typed."""

    values: Mapping[str, Any]  # flags of `launch.train` by name; None where they were not given
    overrides: Overrides  # hyperparameters
    rule: Mapping[str, Any]  # the population's own flags that were given
    sweep: Sequence[str]  # each text after `--sweep=`

    @property
    def folder(self) -> PopulationFolder:
        """Where the population is."""
        return PopulationFolder(pathlib.Path(self.values["run_dir"]))


def new(asked: Asked) -> Population:
    """The settings of a population that begins. The settings of every member are checked.

    Raises:
      SettingsError: they cannot be used.
    """
    agent, env = asked.values["agent"], asked.values["env"]
    runs.require(asked.values, "agent", "env", "run_dir")
    _check_vacant(asked.folder.path)
    try:
        agents = catalogue.named(agent)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if len(agents) > 1:
        raise SettingsError(f"--agent must be one agent in a population, got {agent}.")
    (name,) = agents
    sweep = _sweep(asked, name)
    for swept in sweep:
        if swept in asked.overrides.get(name, {}):
            raise SettingsError(f"--{name}.{swept} is what --sweep draws: give one of the two.")
    if not sweep:
        raise SettingsError(
            f"--sweep must say what to draw: of {name} the papers tune nothing, for example "
            f"--sweep={name}.learning_rate=log:1e-5:1e-3."
        )
    rule = dict(members=default_members(agent, env)) | dict(asked.rule)
    seed = asked.values["seed"] or 0
    found = Population(agent=agent, env=env, seed=seed, sweep=sweep, flags={}, overrides={}, **rule)
    return _checked(found, asked)


def resumed(asked: Asked) -> Population:
    """The settings of a population that goes on: as recorded, but for what was typed now.

    Raises:
      SettingsError: there is none, or it would be another.
    """
    runs.require(asked.values, "run_dir")
    found = load(asked.folder.path)
    wanted = {name: asked.values.get(name) for name in ("agent", "env", "seed")}
    wanted |= {name: asked.rule.get(name) for name in ("members", "evolve")}
    _check_same(asked.folder, found, wanted)
    if asked.sweep:
        raise SettingsError("--sweep is for a population that begins; this one has begun.")
    for name in asked.overrides.get(found.agent_name, {}):
        if name in found.sweep:
            raise SettingsError(
                f"--{found.agent_name}.{name} is what --sweep draws, and each member's own."
            )
    made = _checked(dataclasses.replace(found, **asked.rule), asked)
    one, other = (each.run_of(asked.folder, 0, found.draw(0)) for each in (found, made))
    _check_same(asked.folder, one, {name: getattr(other, name) for name in _FIXED})
    return made


def joined(asked: Asked) -> Population:
    """The settings of a population that another host has begun by the same command.

    Raises:
      SettingsError: it was another command.
    """
    found = load(asked.folder.path)
    if asked.sweep:
        _check_same(asked.folder, found, dict(sweep=_sweep(asked, found.agent_name)))
    return resumed(asked._replace(sweep=()))


def _checked(population: Population, asked: Asked) -> Population:
    """A population whose members are told what was typed now, too."""
    typed = {
        name: value
        for name, value in asked.values.items()
        if value is not None and name not in _OWN
    }
    overrides = {of: dict(said) for of, said in population.overrides.items()}
    for of, said in asked.overrides.items():
        overrides[of] = {**overrides.get(of, {}), **said}
    made = dataclasses.replace(
        population,
        flags=population.flags | typed,
        overrides=_without_annealing(population, overrides),
    )
    for member in range(made.members):
        made.run_of(asked.folder, member, made.draw(member))
    return made


def _check_vacant(path: pathlib.Path) -> None:
    """Raises SettingsError where a folder holds anything."""
    if is_population(path):
        raise SettingsError(
            f"{path} holds a population already: add --resume to go on, or name another folder."
        )
    try:
        held = [each.name for each in path.iterdir()] if path.exists() else []
    except OSError as error:
        raise SettingsError(f"--run_dir={path} cannot be made: {error.strerror}.") from None
    # Another host may be making the same population, or one was ended before it had.
    begun = PopulationFolder(path)
    locks = {RunFolder(path).lock.name, begun.host(0).parent.name}
    if any(not name.startswith(begun.settings.name) for name in held if name not in locks):
        raise SettingsError(f"{path} holds something already: name another folder.")


def _check_same(folder: PopulationFolder, found: Any, wanted: Mapping[str, Any]) -> None:
    """Raises SettingsError where a population would become another one; None asks for nothing."""
    for name, value in wanted.items():
        if value is not None and value != getattr(found, name):
            raise SettingsError(
                f"{folder.path} holds a population of --{name}={getattr(found, name)}; it cannot "
                f"go on as --{name}={value}."
            )


def _sweep(asked: Asked, agent: str) -> dict[str, str]:
    """The ranges that were typed, by field; or else those that the papers tune."""
    if not asked.sweep:
        return default_sweep(asked.values["agent"], asked.values["env"])
    found: dict[str, str] = {}
    for typed in asked.sweep:
        left, equals, text = typed.partition("=")
        of, dot, name = left.rpartition(".")
        if not equals or (dot and of != agent):
            raise SettingsError(f"--sweep must be {agent}.<field>=<range>, got {typed!r}.")
        if name in found:
            raise SettingsError(f"--sweep names {agent}.{name} twice.")
        found[name] = text
    return found


def default_sweep(agent: str, env: str) -> dict[str, str]:
    """The ranges of an agent's fields that the papers tuned; none of an agent they never did."""
    return dict(catalogue.entry(agent).evolved(env))


def default_members(agent: str, env: str) -> int:
    """The number of members that the papers' populations had."""
    found: int = fields.declared(Population)["members"].default
    of_dmlab = catalogue.entry(agent).dmlab_members
    return of_dmlab if of_dmlab is not None and suites.kind(env) == "dmlab" else found


def _without_annealing(
    population: Population, overrides: dict[str, dict[str, str]]
) -> dict[str, dict[str, str]]:
    """Hyperparameters of all members: a rate that evolves does not fall by itself, too."""
    if not population.evolves:
        return overrides
    for of in (EVERY_AGENT, population.agent_name):
        given = overrides.get(of, {}).get(_HORIZON, "none")
        if given.lower() != "none":
            raise SettingsError(
                f"--{_HORIZON}={given} is for members that do not evolve: leave it out, or add "
                f"--evolve={NOTHING}."
            )
    if _HORIZON in population.declared:
        overrides[EVERY_AGENT] = {_HORIZON: "none"}
    return overrides
