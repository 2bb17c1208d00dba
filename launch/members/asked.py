"""The settings of a population, from what was typed; checked as far as no TensorFlow is needed."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from launch.members import turn
from population import ranges, settings
from population.folder import PopulationFolder, is_population
from population.settings import Population
from run_folder import catalogue, configs
from run_folder.settings import SettingsError, require

_HORIZON = "annealing_frames"
_OWN = ("agent", "env", "seed", "run_dir")  # of the population; members share all else
_FIXED = ("preset", "act_with", "paced_by", "num_replay_shards")  # of a run that goes on

Overrides = Mapping[str, Mapping[str, str]]


class Asked(NamedTuple):
    """What was typed.

    Attributes:
      values: flags of `launch.train` by name; None where they were not given.
      overrides: hyperparameters, as `run_folder.configs.make` takes them.
      rule: the population's own flags that were given.
      sweep: each text after `--sweep=`.
    """

    values: Mapping[str, Any]
    overrides: Overrides
    rule: Mapping[str, Any]
    sweep: Sequence[str]

    @property
    def folder(self) -> PopulationFolder:
        """Where the population is."""
        return PopulationFolder(pathlib.Path(self.values["run_dir"]))

    @property
    def shared(self) -> dict[str, Any]:
        """Flags that were given for every member."""
        return {
            name: value
            for name, value in self.values.items()
            if value is not None and name not in _OWN
        }


def new(asked: Asked) -> Population:
    """The settings of a population that begins, of which every member's are checked.

    Raises:
      SettingsError: they cannot be used.
    """
    agent, env = asked.values["agent"], asked.values["env"]
    require(asked.values, "agent", "env", "run_dir")
    _check_vacant(asked.folder.path)
    name = _agent_name(agent)
    sweep = _sweep(asked, name)
    for field in sweep:
        if field in asked.overrides.get(name, {}):
            raise SettingsError(f"--{name}.{field} is what --sweep draws: give one of the two.")
    if not sweep:
        raise SettingsError(
            f"--sweep must say what to draw: of {name} the papers tune nothing, for example "
            f"--sweep={name}.learning_rate=log:1e-5:1e-3."
        )
    found = Population(
        agent=agent,
        env=env,
        seed=asked.values["seed"] or 0,
        sweep=sweep,
        train={},
        **(dict(members=settings.default_members(agent, env)) | dict(asked.rule)),
    )
    return _checked(found, asked, asked.shared, asked.overrides)


def resumed(asked: Asked) -> Population:
    """The settings of a population that goes on: as recorded, but for what was typed now.

    Raises:
      SettingsError: there is none, or it would be another.
    """
    if not asked.values["run_dir"]:
        raise SettingsError("--run_dir must be given.")
    found = settings.load(asked.folder.path)
    wanted = {name: asked.values[name] for name in ("agent", "env", "seed")}
    wanted |= {name: asked.rule.get(name) for name in ("members", "evolve")}
    _check_same(asked.folder, vars(found), wanted)
    if asked.sweep:
        raise SettingsError("--sweep is for a population that begins; this one has begun.")
    for field in asked.overrides.get(found.agent_name, {}):
        if field in found.sweep:
            raise SettingsError(
                f"--{found.agent_name}.{field} is what --sweep draws, and each member's own."
            )
    before = found.overrides
    overrides = {
        of: {**before.get(of, {}), **asked.overrides.get(of, {})}
        for of in (*before, *(of for of in asked.overrides if of not in before))
    }
    changed = dataclasses.replace(found, **asked.rule)
    made = _checked(changed, asked, {**found.flags, **asked.shared}, overrides)
    drawn = ranges.draw(found.ranges, 0, found.seed)
    one, other = (vars(turn.settings_of(each, asked.folder, 0, drawn)) for each in (found, made))
    _check_same(asked.folder, one, {name: other[name] for name in _FIXED})
    return made


def joined(asked: Asked) -> Population:
    """The settings of a population that another host has begun by the same command.

    Raises:
      SettingsError: it was another command.
    """
    found = settings.load(asked.folder.path)
    if asked.sweep:
        _check_same(asked.folder, vars(found), dict(sweep=_sweep(asked, found.agent_name)))
    return resumed(asked._replace(sweep=()))


def _checked(
    population: Population, asked: Asked, flags: Mapping[str, Any], overrides: Overrides
) -> Population:
    """A population whose members are told this, as `launch.train` takes it."""
    shared = {name: value for name, value in flags.items() if name not in _OWN}
    train = dict(values=shared, fields=_without_annealing(population, overrides))
    made = dataclasses.replace(population, train=train)
    for member in range(made.members):
        turn.settings_of(made, asked.folder, member, ranges.draw(made.ranges, member, made.seed))
    return made


def _check_vacant(path: pathlib.Path) -> None:
    """Raises SettingsError where a folder holds anything."""
    if is_population(path):
        raise SettingsError(
            f"{path} holds a population already: add --resume to go on, or name another folder."
        )
    try:
        held = [each.name for each in path.iterdir()] if path.exists() else []
        # Another host may be making the same population.
        if any(not name.startswith(PopulationFolder(path).settings.name) for name in held):
            raise SettingsError(f"{path} holds something already: name another folder.")
    except OSError as error:
        raise SettingsError(f"--run_dir={path} cannot be made: {error.strerror}.") from None


def _check_same(
    folder: PopulationFolder, found: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    """Raises SettingsError where a population would become another one; None asks for nothing."""
    for name, value in wanted.items():
        if value is not None and value != found[name]:
            raise SettingsError(
                f"{folder.path} holds a population of --{name}={found[name]}; it cannot go on as "
                f"--{name}={value}."
            )


def _agent_name(agent: str) -> str:
    try:
        named = catalogue.named(agent)
        for each in named.values():
            catalogue.entry(each)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if len(named) > 1:
        raise SettingsError(f"--agent must be one agent in a population, got {agent}.")
    (name,) = named
    return name


def _sweep(asked: Asked, name: str) -> dict[str, str]:
    """What was typed, by field; or else what the papers tune."""
    if not asked.sweep:
        return settings.default_sweep(asked.values["agent"], asked.values["env"])
    found: dict[str, str] = {}
    for typed in asked.sweep:
        left, equals, text = typed.partition("=")
        of, dot, field = left.rpartition(".")
        if not equals or (dot and of != name):
            raise SettingsError(f"--sweep must be {name}.<field>=<range>, got {typed!r}.")
        if field in found:
            raise SettingsError(f"--sweep names {name}.{field} twice.")
        found[field] = text
    return found


def _without_annealing(population: Population, overrides: Overrides) -> dict[str, dict[str, str]]:
    """Hyperparameters of all members: a rate that evolves does not fall by itself, too."""
    found = {of: dict(fields) for of, fields in overrides.items()}
    if not population.evolves:
        return found
    for of in (configs.EVERY_AGENT, population.agent_name):
        given = found.get(of, {}).get(_HORIZON, "none")
        if given.lower() != "none":
            raise SettingsError(
                f"--{_HORIZON}={given} is for members that do not evolve: leave it out, or add "
                f"--evolve={settings.NOTHING}."
            )
    if _HORIZON in population.declared:
        found[configs.EVERY_AGENT] = {_HORIZON: "none"}
    return found
