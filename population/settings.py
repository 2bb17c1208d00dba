"""What a population is: its rule, what its members draw, how they run; kept in its folder."""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents import fields
from agents.fields import Field, field, required
from agents.requirements import COUNT, FRACTION, number, of_type, whole
from environments import suites
from population import ranges
from population.folder import PopulationFolder
from population.ranges import Range
from run_folder import catalogue, recorded, texts, whole_files
from run_folder.settings import Settings, SettingsError, check_value, reading

NOTHING, EVERYTHING = "none", "all"  # that is evolved
_FLAGS, _FIELDS = "values", "fields"  # of `train`


@dataclasses.dataclass(frozen=True)
class Population:
    """The settings of a population; its rule's are those of Espeholt et al. 2018, Appendix E."""

    agent: str = required(None, "What every member learns with.")
    env: str = required(None, "What every member plays.")
    seed: int = required(whole(0), "Of all that is drawn.")
    sweep: dict[str, str] = required(
        None, "Where the fields' first values come from: field -> range, as it was typed."
    )
    train: dict[str, dict[str, Any]] = required(
        None, "What launch.train is told beside: `values` by flag, `fields` of the agent."
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
        self._check_train()
        self._check_sweep()

    def _check_train(self) -> None:
        """Refuses what no population would record."""
        known = fields.declared(Settings)
        for name, value in self.train.get(_FLAGS, {}).items():
            if name not in known or name == "configs":
                hint = texts.suggest(name, known)
                raise SettingsError(f"--train has {name!r}, no flag that members share.{hint}")
            check_value(name, value)
        for of, typed in self.train.get(_FIELDS, {}).items():
            if not of_type(dict[str, str]).holds(typed):
                raise SettingsError(f"--train has {of!r}, not text by field: {typed!r}.")

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

    @property
    def flags(self) -> dict[str, Any]:
        """What `launch.train` is told of every member: launch settings by name."""
        shared = self.train.get(_FLAGS, {})
        own = dict(agent=self.agent, env=self.env)
        return {name: shared[name] for name in shared if name not in ("run_dir", "seed")} | own

    def is_at_limit(self, actor_steps: float, learner_steps: float) -> bool:
        """Whether a member that has counted this much has reached a limit; NaN is no count yet."""
        counted = {"max_actor_steps": actor_steps, "max_learner_steps": learner_steps}
        limits = {name: self.flags.get(name) for name in counted}
        return any(limit is not None and counted[name] >= limit for name, limit in limits.items())

    @property
    def overrides(self) -> Mapping[str, Mapping[str, str]]:
        """What `launch.train` is told of every member: hyperparameters, by agent."""
        return self.train.get(_FIELDS, {})

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
        """Those of them that are multiplied."""
        found = self.ranges
        return tuple(name for name in self.evolving if found[name].mutates)

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises ValueError for what cannot be a member's values, by their fields."""
        if set(values) != set(self.sweep):
            raise ValueError(f"it must be of {', '.join(self.sweep)}, got {list(values)}.")
        declared = self.declared
        for name, value in values.items():
            wanted, given = declared[name], tuple(value) if isinstance(value, list) else value
            kind = of_type(wanted.annotation)
            if not (kind.holds(given) and wanted.requirement.holds(given)):
                raise ValueError(f"{name} must be {wanted.requirement.text}, got {value!r}.")

    def seed_of(self, member: int) -> int:
        """Of a member's run. Populations of neighbouring seeds share none, but by a rare chance."""
        words = np.random.SeedSequence(self.seed, spawn_key=(member,))
        return int(words.generate_state(1)[0] % 2**31)

    @property
    def agent_name(self) -> str:
        """The agent as its flags and logs call it."""
        (name,) = catalogue.named(self.agent)
        return name

    def to_json(self) -> str:
        """The text of population.json."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


def default_sweep(agent: str, env: str) -> dict[str, str]:
    """What the papers draw of an agent's fields, from where; nothing of an agent they never tuned.

    Args:
      agent: as the catalogue knows it.
      env: name of what is played.
    """
    return dict(catalogue.entry(agent).evolved(env))


def default_members(agent: str, env: str) -> int:
    """How many members the papers' populations had.

    Args:
      agent: as the catalogue knows it.
      env: name of what is played.
    """
    found: int = fields.declared(Population)["members"].default
    of_dmlab = catalogue.entry(agent).dmlab_members
    return of_dmlab if of_dmlab is not None and suites.kind(env) == "dmlab" else found


def make_folder(folder: PopulationFolder) -> None:
    """Makes a population's folder, its user's alone; one that is there stays as open as it is.

    Raises:
      SettingsError: it cannot be made.
    """
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--run_dir={folder.path} cannot be made: {error.strerror}.") from None


def record(folder: PopulationFolder, population: Population) -> None:
    """Writes population.json, unless it says so already: hosts may begin at the same time."""
    text = population.to_json()
    if not folder.settings.exists() or folder.settings.read_text() != text:
        whole_files.write(folder.settings, text)


def load(path: pathlib.Path) -> Population:
    """What a folder's population.json records.

    Raises:
      SettingsError: there is none, or it does not say what a population's would.
    """
    file = PopulationFolder(path).settings
    with reading(file, absent=f"{path} holds no population: there is no {file}."):
        return Population(**recorded.fields(Population, recorded.read(file)))
