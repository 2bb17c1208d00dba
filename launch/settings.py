"""What one run is: every setting, checked before any process starts, recorded in the run folder."""

import dataclasses
import difflib
import json
import pathlib
from typing import Any

from environments import suites
from launch import bucket, catalogue, presets


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
        for name in (
            "num_actors",
            "actors_per_node",
            "max_actor_steps",
            "max_learner_steps",
            "num_replay_shards",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SettingsError(f"--{name} must be at least 1, got {value}.")
        for name in ("seed", "evaluation_episodes"):
            if getattr(self, name) < 0:
                raise SettingsError(f"--{name} must not be negative, got {getattr(self, name)}.")
        for name in ("evaluation_minutes", "checkpoint_minutes"):
            if not getattr(self, name) > 0:
                raise SettingsError(f"--{name} must be positive, got {getattr(self, name)}.")
        for flag, named in (("act_with", self.acting), ("paced_by", (self.paced_by,))):
            for name in named:
                if name not in self.configs:
                    raise SettingsError(
                        f"--{flag}={getattr(self, flag)} names {name!r}, but this run's agents are "
                        f"{', '.join(self.configs)}."
                    )
        if len(set(self.acting)) < len(self.acting):
            raise SettingsError(f"--act_with={self.act_with} names an agent twice.")
        needed = len(self.acting) * len(self.tasks)
        if self.num_actors < needed:
            raise SettingsError(
                f"--act_with={self.act_with} on --env={self.env} needs at least {needed} actors "
                f"(agents that act: {len(self.acting)}, tasks of each: {len(self.tasks)}), got "
                f"--num_actors={self.num_actors}."
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

    def to_json(self) -> str:
        """The text of config.json."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


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


def _make_config(agent: str, env: str, preset: dict[str, Any], overrides: dict[str, str]) -> Any:
    default = catalogue.AGENTS[agent].config(env)
    fields = {field.name: field.type for field in dataclasses.fields(default)}
    parsed = {}
    for name, text in overrides.items():
        if name not in fields:
            raise SettingsError(
                f"--{agent}.{name} is no field of {agent}'s Config." + suggest(name, fields)
            )
        parsed[name] = parse(f"--{agent}.{name}", text, type_name(fields[name]))
    try:
        config = dataclasses.replace(default, **{**preset, **parsed})
    except ValueError as error:  # which begins with the field's name
        raise SettingsError(f"--{agent}.{error}") from None
    if "num_tasks" in fields and config.num_tasks != default.num_tasks:
        raise SettingsError(
            f"--{agent}.num_tasks must be {default.num_tasks}, as many as --env={env} has, "
            f"got {config.num_tasks}."
        )
    return config


def load(run_dir: pathlib.Path) -> Settings:
    """The settings that a run folder's config.json records; the folder may have been moved since.

    Raises:
      SettingsError: when there is none, or it cannot be read.
    """
    path = run_dir / "config.json"
    try:
        recorded = json.loads(path.read_text())
        configs = {
            agent: _restored(catalogue.AGENTS[agent].config(recorded["env"]), values)
            for agent, values in recorded["configs"].items()
        }
        return Settings(**{**recorded, "configs": configs, "run_dir": str(run_dir)})
    except OSError:
        raise SettingsError(f"{run_dir} holds no run: there is no {path}.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}.") from None


def _restored(default: Any, recorded: dict[str, Any]) -> Any:
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in recorded.items()}
    return dataclasses.replace(default, **values)


def type_name(annotation: Any) -> str:
    """A field's type as it is written."""
    return annotation.__name__ if type(annotation) is type else str(annotation)


def parse(flag: str, text: str, kind: str) -> Any:
    """A value of the type that a Config field is annotated with.

    Raises:
      SettingsError: quoting flag and text, when the text is no such value.
    """
    if "None" in kind and text.lower() == "none":
        return None
    kind = kind.removesuffix(" | None")
    try:
        if kind == "bool":
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        if kind in ("int", "float"):
            return int(text) if kind == "int" else float(text)
        if kind.startswith("tuple[int"):
            return tuple(int(part) for part in text.split(",") if part)
    except (ValueError, KeyError):
        raise SettingsError(f"{flag} must be of type {kind}, got {text!r}.") from None
    return text


def suggest(name: str, known: Any) -> str:
    """` Did you mean "...?"` for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
