"""What one run is: every setting, checked before any process starts, recorded in the run folder."""

import contextlib
import dataclasses
import json
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents import fields
from agents.entry import Entry
from agents.fields import required
from agents.requirements import COUNT, Requirement, number, one_of, or_none, whole
from environments import suites
from run_folder import bucket, catalogue, configs, presets, recorded
from run_folder.layout import RunFolder

MOST_NODES = 10_000  # that one launcher makes, and one coordinator listens to
_ACTORS = whole(1, 100_000)  # a thousand times the papers', in one array of a process
_MINUTES = number(0.001, 60 * 24 * 366)  # to a year; a checkpoint takes longer than this least

_PROJECT = Requirement(  # as Weights & Biases has it
    "at most 128 characters without / \\ # ? % :",
    lambda name: len(name) <= 128 and not set(name) & set("/\\#?%:"),
)


class SettingsError(ValueError):
    """A setting that cannot be used. The message is a sentence for the terminal."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a launch. `preset` has already been folded in."""

    agent: str = required(None, "What learns, by `run_folder.catalogue`; several with commas.")
    env: str = required(None, "catch, memory:, atari:, dmlab:, gym:, control:, rwrl:, my.mod:make.")
    run_dir: str = required(None, "Folder for everything about the run, or where in a bucket.")
    preset: str = required(
        one_of(presets.PRESETS), "local (default) or paper, whose values are in brackets below."
    )
    num_actors: int = required(
        _ACTORS, "Environments that act, each its own policy.", local=32, paper=256
    )
    actors_per_node: int = required(_ACTORS, "Of them, those in one process.", local=32, paper=1)
    max_actor_steps: int | None = required(
        or_none(COUNT), "Actor steps, over all environments, to end after.", local=None, paper=None
    )
    max_learner_steps: int | None = required(
        or_none(COUNT), "Updates, of each learner, to end after.", local=None, paper=None
    )
    seed: int = required(
        whole(0), "Of environments, networks and policies; runs differ still.", local=0, paper=0
    )
    full_action_space: bool = required(
        None, "All 18 actions on Atari, 15 on DMLab.", local=False, paper=True
    )
    evaluation_episodes: int = required(
        whole(0, 10_000),  # each an environment
        "Of each task in one evaluation; 0 never evaluates.",
        local=4,
        paper=10,
    )
    evaluation_minutes: float = required(
        _MINUTES, "Minutes between evaluations.", local=10.0, paper=10.0
    )
    checkpoint_minutes: float = required(
        _MINUTES, "Minutes between periodic checkpoints.", local=10.0, paper=30.0
    )
    act_with: str = required(None, "Of several agents, those that act; all by default.")
    paced_by: str = required(None, "Of those, the one that actors wait for; the first by default.")
    colocate_learners: bool = required(None, "The learners of several agents in one process.")
    configs: dict[str, Any] = required(
        Requirement("an object with a Config for each agent", lambda value: len(value) > 0),
        "Each agent's own frozen Config, by name.",
    )
    num_replay_shards: int = fields.field(
        1, whole(1, MOST_NODES), "Reverb nodes that the replay is spread over."
    )
    learners_per_agent: int = fields.field(
        1, whole(1, 1_000), "Processes that learn as one, each from a part of a batch."
    )
    full_rendering: bool = fields.field(False, None, "Shadows and smooth edges in control-pixels.")

    restarts: int = fields.field(
        3, whole(0, 10**6), "Deaths that a local run mends in ten minutes, or until it saves anew."
    )
    hang_seconds: float = fields.field(
        120.0, number(5.0, 10**6), "Seconds of standing still that are a death."
    )
    private_network: bool = fields.field(
        True, None, "A network of its own for a local run, where Linux allows."
    )
    wandb: str = fields.field(
        "", _PROJECT, "Project of Weights & Biases that hears of a local run."
    )

    def __post_init__(self) -> None:
        try:
            fields.check(self)
        except ValueError as error:  # which begins with the field's name
            raise SettingsError(f"--{error}") from None
        if tuple(catalogue.named(self.agent)) != self.agents:
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
        if num_nodes > MOST_NODES:
            raise SettingsError(
                f"--num_actors={self.num_actors} and --actors_per_node={self.actors_per_node} make "
                f"{num_nodes:,} processes; they must be {MOST_NODES:,} at most."
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

    def entry(self, name: str) -> Entry:
        """What the catalogue, or whoever wrote the agent, says of it."""
        return catalogue.entry(catalogue.named(self.agent)[name])

    def to_json(self) -> str:
        """The text of config.json."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


def check_value(name: str, value: Any) -> None:
    """Raises SettingsError where a launch setting cannot have a value."""
    try:
        fields.check_value(name, fields.declared(Settings)[name], value)
    except ValueError as error:  # which begins with the field's name
        raise SettingsError(f"--{error}") from None


def require(values: Mapping[str, Any], *names: str) -> None:
    """Checks that flags were given.

    Raises:
      SettingsError: it names all that were not.
    """
    missing = [f"--{name}" for name in names if not values[name]]
    if missing:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        raise SettingsError(f"{listed} must be given.")


def resolve(given: dict[str, Any], overrides: dict[str, dict[str, str]]) -> Settings:
    """Settings from what the command line gave, the rest from the preset and the agent's Config.

    Args:
      given: launch settings by name; None where the flag was not given.
      overrides: as `configs.make` takes them.

    Raises:
      SettingsError: a value that is unknown, of the wrong type, or out of range.
    """
    env, name = given["env"], given["preset"]
    values = {name: value for name, value in given.items() if value is not None}
    try:
        agents = catalogue.named(given["agent"])
        suites.check(env)
        acting = values.get("act_with", ",".join(agents))
        preset, found = of_preset(name, env, agents, acting.split(","))
        made = configs.make(env, agents, found, overrides)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    who = dict(act_with=acting, paced_by=acting.split(",")[0], colocate_learners=False)
    return Settings(**{**preset, **who, **values, "configs": made})


def of_preset(
    preset: str, env: str, agents: Mapping[str, str], acting: Sequence[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The values of a preset: settings by name, and fields of each agent's Config.

    Args:
      preset: its name.
      env: name of what is played.
      agents: name -> as the catalogue knows it.
      acting: names of those whose policies act; others' are passed over.

    Raises:
      ValueError: a name is unknown.
    """
    entries = {name: catalogue.entry(agent) for name, agent in agents.items()}
    who_act = [entries[name] for name in acting if name in entries]
    values = presets.settings(preset, env, fields.declared(Settings), who_act)
    return values, {
        name: presets.config(preset, entry, env, shared=len(agents) > 1)
        for name, entry in entries.items()
    }


def check_vacant(run: Settings) -> None:
    """Raises SettingsError where the folder of a run that begins holds one already."""
    if run.folder.config.exists() or run.folder.checkpoints.exists():
        raise SettingsError(
            f"{run.path} holds a run already: add --resume to go on, or name another folder."
        )


def load(run_dir: pathlib.Path) -> Settings:
    """The settings that a run folder's config.json records; the folder may have been moved since.

    Raises:
      SettingsError: when there is none, or it does not say what a run's would.
    """
    path = RunFolder(run_dir).config
    with reading(path, absent=f"{run_dir} holds no run: there is no {path}."):
        return _restored(recorded.read(path), run_dir)


@contextlib.contextmanager
def reading(path: pathlib.Path, *, absent: str = "") -> Iterator[None]:
    """Turns what is wrong with a file that is read into a sentence that names it.

    Args:
      path: of the file.
      absent: the sentence where there is no such file.

    Raises:
      SettingsError: it cannot be read, or a ValueError told what it says in vain.
    """
    try:
        yield
    except OSError as error:
        if absent and isinstance(error, FileNotFoundError | NotADirectoryError):
            raise SettingsError(absent) from None
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # which may begin as a flag does
        said = str(error).removeprefix("--").removesuffix(".")
        raise SettingsError(f"{path} cannot be read: {said}.") from None


def _restored(said: Any, run_dir: pathlib.Path) -> Settings:
    """Settings from what config.json holds. Raises ValueError."""
    values = recorded.fields(Settings, said)
    suites.check_names(values["env"])
    agents = catalogue.named(values["agent"])
    for name in values["configs"]:
        if name not in agents:
            raise ValueError(
                f"agent must be {','.join(values['configs'])}, as configs are named, "
                f"got {values['agent']!r}."
            )
    made = configs.restored(values["env"], agents, values["configs"])
    return Settings(**{**values, "configs": made, "run_dir": str(run_dir)})
