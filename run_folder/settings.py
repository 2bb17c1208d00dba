"""What one run is: every setting, checked before any process starts, recorded in the run folder."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

from agents.requirements import COUNT, Requirement, check_fields, number, one_of, or_none, whole
from environments import suites
from run_folder import bucket, catalogue, presets, recorded, texts
from run_folder.layout import RunFolder


class SettingsError(ValueError):
    """A setting that cannot be used. The message is a sentence for the terminal."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a launch. `preset` has already been folded in.

    Attributes:
      agent: names in `catalogue.AGENTS`, with commas between them: what learns.
      env: name as `environments.suites` understands it: one environment or a suite of them.
      run_dir: folder that holds everything about the run, or where that is in a bucket.
      preset: `local` or `paper`; where the values that no flag gave come from.
      num_actors: environments that act; each has its own policy.
      actors_per_node: how many of them share a process and one batched forward pass.
      max_actor_steps: agent steps over all environments before the run ends; None is no limit.
      max_learner_steps: updates before the run ends; None is no limit.
      seed: of environments, networks and policies.
      full_action_space: all 18 actions on Atari, else the game's own; on DMLab the 15 of R2D2 and
        PopArt-IMPALA, else IMPALA's nine.
      evaluation_episodes: of each task in one evaluation, played at once; 0 starts no evaluator.
      evaluation_minutes: pause between evaluations.
      checkpoint_minutes: between two periodic checkpoints of learner and replay.
      act_with: the agents whose policies act, with commas; they share the actors evenly.
      paced_by: the agent whose tables hold the actors back; the others' accept everything.
      colocate_learners: whether all learners share one process.
      configs: each agent's own frozen Config, by name.
      num_replay_shards: Reverb nodes that the replay is spread over.
    """

    agent: str
    env: str
    run_dir: str
    preset: str
    num_actors: int
    actors_per_node: int
    max_actor_steps: int | None
    max_learner_steps: int | None
    seed: int
    full_action_space: bool
    evaluation_episodes: int
    evaluation_minutes: float
    checkpoint_minutes: float
    act_with: str
    paced_by: str
    colocate_learners: bool
    configs: dict[str, Any]
    num_replay_shards: int = 1

    def __post_init__(self) -> None:
        try:
            check_fields(self, _REQUIREMENTS)
        except ValueError as error:  # which begins with the field's name
            raise SettingsError(f"--{error}") from None
        if self.agent != ",".join(self.configs):
            raise SettingsError(
                f"--agent must be {','.join(self.configs)}, as configs are named, "
                f"got {self.agent!r}."
            )
        for flag, named in (("act_with", self.acting), ("paced_by", (self.paced_by,))):
            for name in named:
                if name not in self.configs:
                    raise SettingsError(
                        f"--{flag}={getattr(self, flag)} names {name!r}, but this run's agents are "
                        f"{', '.join(self.configs)}."
                    )
        if len(set(self.acting)) < len(self.acting):
            raise SettingsError(f"--act_with={self.act_with} names an agent twice.")
        self._check_numbers()

    def _check_numbers(self) -> None:
        """Refuses numbers of actors that do not fit together."""
        needed = len(self.acting) * len(self.tasks)
        if self.num_actors < needed:
            raise SettingsError(
                f"--act_with={self.act_with} on --env={self.env} needs at least {needed} actors "
                f"(agents that act: {len(self.acting)}, tasks of each: {len(self.tasks)}), got "
                f"--num_actors={self.num_actors}."
            )
        num_nodes = math.ceil(self.num_actors / self.actors_per_node)
        if num_nodes > _MOST_NODES:
            raise SettingsError(
                f"--num_actors={self.num_actors} and --actors_per_node={self.actors_per_node} make "
                f"{num_nodes:,} processes; they must be {_MOST_NODES:,} at most."
            )

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the environments that are played; an index in these is a task."""
        return suites.tasks(self.env)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of what learns."""
        return tuple(self.configs)

    @property
    def acting(self) -> tuple[str, ...]:
        """Names of the agents whose policies act."""
        return tuple(self.act_with.split(","))

    @property
    def path(self) -> pathlib.Path:
        """The run folder; of one in a bucket, this process's part of it."""
        return bucket.local(self.run_dir)

    @property
    def folder(self) -> RunFolder:
        """The paths of the run folder."""
        return RunFolder(self.path)

    def to_json(self) -> str:
        """The text of config.json."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


_MOST_NODES = 10_000  # that one launcher makes, and one coordinator listens to
_ACTORS = whole(1, 100_000)  # a thousand times the papers', in one array of a process
_MINUTES = number(0.001, 60 * 24 * 366)  # to a year; a checkpoint takes longer than this least
_REQUIREMENTS: Mapping[str, Requirement] = {
    "preset": one_of(presets.PRESETS),
    "configs": Requirement("an object with a Config for each agent", lambda value: len(value) > 0),
    "num_actors": _ACTORS,
    "actors_per_node": _ACTORS,
    "max_actor_steps": or_none(COUNT),
    "max_learner_steps": or_none(COUNT),
    "seed": whole(0),
    "evaluation_episodes": whole(0, 10_000),  # each an environment
    "evaluation_minutes": _MINUTES,
    "checkpoint_minutes": _MINUTES,
    "num_replay_shards": whole(1, _MOST_NODES),
}


def resolve(given: dict[str, Any], overrides: dict[str, dict[str, str]]) -> Settings:
    """Settings from what the command line gave, the rest from the preset and the agent's Config.

    Args:
      given: launch settings by name; None where the flag was not given.
      overrides: agent name -> {config field -> text}.

    Raises:
      SettingsError: a value that is unknown, of the wrong type, or out of range.
    """
    agents, env = given["agent"].split(","), given["env"]
    values = {name: value for name, value in given.items() if value is not None}
    acting = values.get("act_with", given["agent"])
    try:
        for agent in agents:
            catalogue.check(agent)
        if len(set(agents)) < len(agents):
            raise ValueError(f"--agent={given['agent']} names an agent twice.")
        suites.check(env)
        preset = presets.settings(given["preset"], env, acting.split(","))
        found = {
            agent: presets.config(given["preset"], agent, env, shared=len(agents) > 1)
            for agent in agents
        }
    except ValueError as error:
        raise SettingsError(str(error)) from None
    who = dict(act_with=acting, paced_by=acting.split(",")[0], colocate_learners=False)
    configs = make_configs(env, found, overrides)
    return Settings(**{**preset, **who, **values, "configs": configs})


def make_configs(
    env: str, presets: dict[str, dict[str, Any]], overrides: dict[str, dict[str, str]]
) -> dict[str, Any]:
    """Each agent's Config: its defaults, then the preset's values, then the command line's.

    Args:
      env: name of the environment.
      presets: agent name -> {config field -> value}.
      overrides: agent name -> {config field -> text}.

    Raises:
      SettingsError: a field or value that a Config does not take, or a field of another agent.
    """
    for name in overrides:
        if name not in presets:
            raise SettingsError(
                f"--{name}.{next(iter(overrides[name]))} sets a field of {name!r}, but this run's "
                f"agents are {', '.join(presets)}."
            )
    return {
        agent: _make_config(agent, env, preset, overrides.get(agent, {}))
        for agent, preset in presets.items()
    }


def _make_config(agent: str, env: str, preset: dict[str, Any], typed: dict[str, str]) -> Any:
    default = catalogue.AGENTS[agent].config(env)
    fields = {field.name: field.type for field in dataclasses.fields(default)}
    for name in typed:
        if name not in fields:
            raise SettingsError(
                f"--{agent}.{name} is no field of {agent}'s Config." + texts.suggest(name, fields)
            )
    try:
        parsed = {name: texts.value_of(name, text, fields[name]) for name, text in typed.items()}
        config = dataclasses.replace(default, **{**preset, **parsed})
        _check_num_tasks(env, default, config)
    except ValueError as error:  # which begins with the field's name
        raise SettingsError(f"--{agent}.{error}") from None
    return config


def load(run_dir: pathlib.Path) -> Settings:
    """The settings that a run folder's config.json records; the folder may have been moved since.

    Raises:
      SettingsError: when there is none, or it does not say what a run's would.
    """
    path = RunFolder(run_dir).config
    try:
        return _restored(recorded.read(path), run_dir)
    except (FileNotFoundError, NotADirectoryError):
        raise SettingsError(f"{run_dir} holds no run: there is no {path}.") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        said = str(error).removeprefix("--").removesuffix(".")
        raise SettingsError(f"{path} cannot be read: {said}.") from None


def _restored(said: Any, run_dir: pathlib.Path) -> Settings:
    """Settings from what config.json holds. Raises ValueError."""
    values = recorded.fields(Settings, said)
    suites.check_names(values["env"])
    for agent in values["configs"]:
        catalogue.check(agent)
    configs = {
        agent: _restored_config(agent, values["env"], config)
        for agent, config in values["configs"].items()
    }
    return Settings(**{**values, "configs": configs, "run_dir": str(run_dir)})


def _restored_config(agent: str, env: str, said: Any) -> Any:
    default, of = catalogue.AGENTS[agent].config(env), f"configs.{agent}."
    values = recorded.fields(type(default), said, of=of)
    try:
        config = dataclasses.replace(default, **values)
        _check_num_tasks(env, default, config)
    except ValueError as error:  # which begins with the field's name
        raise ValueError(f"{of}{error}") from None
    return config


def _check_num_tasks(env: str, default: Any, config: Any) -> None:
    """Raises ValueError for a Config of another number of tasks than the environment has."""
    if getattr(config, "num_tasks", None) != getattr(default, "num_tasks", None):
        raise ValueError(
            f"num_tasks must be {default.num_tasks}, as many as --env={env} has, "
            f"got {config.num_tasks}."
        )
