"""One run: every setting, checked before any process starts, recorded in the run folder.

A setting comes from the command line or else from the preset, and so does a field of an agent's
Config; those of a run that has begun come from its config.json.
"""

import dataclasses
import importlib
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents import fields
from agents.entry import Entry
from agents.fields import required
from agents.requirements import COUNT, Requirement, number, one_of, or_infinite, or_none, whole
from environments import suites
from run_folder import catalogue, layout, texts
from run_folder.catalogue import NamedAgent
from run_folder.layout import RunFolder
from run_folder.texts import SettingsError, reading

EVERY_AGENT = ""  # in place of an agent's name: every agent that has the field
MOST_NODES = 10_000  # that one launcher makes, and one coordinator listens to
_ACTORS = whole(1, 100_000)  # a thousand times the papers', in one array of a process
_DEMONSTRATING = "run_folder.demonstrating"  # which most runs do without
DEMO_FRACTION = 1 / 256  # Paine et al. 2019, Section 5, where less was better
_MINUTES = number(0.001, 60 * 24 * 366)  # to a year; a checkpoint takes longer than this least

_PROJECT = Requirement(  # as Weights & Biases has it
    "at most 128 characters without / \\ # ? % :",
    lambda name: len(name) <= 128 and not set(name) & set("/\\#?%:"),
)


# On DMLab each environment is a process that renders, and a slow reset holds up its whole node: few
# environments, and fewer a node. Saving R2D2's coloured frames stops everyone for a minute.
_LOCAL_DMLAB: dict[str, Any] = dict(
    num_actors=8, actors_per_node=4, evaluation_episodes=2, checkpoint_minutes=30.0
)

Overrides = Mapping[str, Mapping[str, str]]
"""Hyperparameters as they were typed: agent -> {field -> text}; an agent's own go before those of
`EVERY_AGENT`."""


class Crew(NamedTuple):
    """The actors of one node. Those that play the same task are neighbours."""

    agent: str  # whose policy they follow
    actors: tuple[int, ...]  # indices among all actors of the run
    ranks: tuple[int, ...]  # theirs among the actors that follow the same agent ...
    num_actors: int  # ... which are so many
    tasks: tuple[int, ...]  # what each plays: indices in `Settings.tasks`


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a launch. `preset` has already been folded in."""

    agent: str = required(None, "What learns, by `run_folder.catalogue`; several with commas.")
    env: str = required(None, "catch, memory:, atari:, dmlab:, gym:, control:, rwrl:, my.mod:make.")
    run_dir: str = required(None, "Folder for everything about the run, or where in a bucket.")
    preset: str = required(
        one_of(catalogue.PRESETS), "local (default) or paper, whose values are in brackets below."
    )
    num_actors: int = required(
        _ACTORS,
        "Environments, each with a policy; auto: docs/runs.md.",
        local=32,
        paper=256,
    )
    actors_per_node: int = required(_ACTORS, "Of them, those in one process.", local=32, paper=1)
    max_actor_steps: int | None = required(
        or_none(whole(0)),
        "Actor steps, over all environments, to end after; 0: offline.",
        local=None,
        paper=None,
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
    actor_device: str = fields.field(
        "cpu",
        one_of(("auto", "cpu", "gpu")),
        "What a local run acts on: cpu, gpu, or auto, whichever pays.",
    )
    max_minutes: float | None = fields.field(
        None, or_none(_MINUTES), "Minutes, of all its launches together, to end after."
    )
    until_return: float | None = fields.field(
        None,
        or_none(or_infinite(number(-1e15, 1e15))),
        "Mean return in evaluations, of each task and agent, to end at.",
    )
    until_evaluations: int = fields.field(
        1, whole(1, 10**6), "Evaluations in a row that have to reach that."
    )
    demonstrations: str = fields.field("", None, "Folder of episodes to learn from.")
    demo_fraction: float = fields.field(
        DEMO_FRACTION,
        number(1e-6, 0.999),
        "Their part of a batch, as 1/256.",
    )
    full_rendering: bool = fields.field(False, None, "Shadows and smooth edges in control-pixels.")

    restarts: int = fields.field(
        3, whole(0, 10**6), "Deaths that a local run mends in ten minutes or until a save."
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
        if tuple(catalogue.names(self.agent)) != self.agents:
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
        self._check_until()
        if self.demonstrations or self.is_offline or self.demo_fraction != DEMO_FRACTION:
            importlib.import_module(_DEMONSTRATING).check(self)

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

    def _check_until(self) -> None:
        """Refuses a return to end at that no evaluation would tell of."""
        until, wanted = self.until_return, self.until_evaluations
        if until is None and wanted > 1:
            raise SettingsError(
                f"--until_evaluations={wanted} counts evaluations that reach --until_return: add "
                "that, as --until_return=18."
            )
        if until not in (None, math.inf) and not self.evaluation_episodes:
            raise SettingsError(
                f"--until_return={until:g} is reached in an evaluation, and "
                "--evaluation_episodes=0 never evaluates: add --evaluation_episodes=4, or leave "
                "--until_return out."
            )

    @property
    def is_offline(self) -> bool:
        """Whether nobody acts: batches are of demonstrations alone."""
        return self.max_actor_steps == 0

    @property
    def demo_share(self) -> float:
        """The part of a batch that is from demonstrations."""
        return 1.0 if self.is_offline else self.demo_fraction

    @property
    def limits(self) -> dict[str, float | None]:
        """What the run ends after, by the name of what counts it; of `walltime` in seconds."""
        return dict(
            actor_steps=self.max_actor_steps or None,
            learner_steps=self.max_learner_steps,
            walltime=None if self.max_minutes is None else 60 * self.max_minutes,
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
        return layout.local(self.run_dir)

    @property
    def folder(self) -> RunFolder:
        """The paths of the run folder."""
        return RunFolder(self.path)

    def entry(self, name: str) -> Entry:
        """The entry of an agent, in the catalogue or of whoever wrote it."""
        return catalogue.entry(catalogue.names(self.agent)[name])

    def crews(self) -> list[Crew]:
        """Spreads the actors evenly over the agents that act, then over tasks, then processes.

        Offline there are none.

        Of those that follow one agent, the actor of rank i plays task i modulo the number of tasks:
        every task is played with policies from the whole range of the agent's. Sorted by task
        before they are cut into processes, so that a process holds few different environments.
        """
        found: list[Crew] = []
        if self.is_offline:
            return found
        num_tasks = len(self.tasks)
        shares = np.array_split(np.arange(self.num_actors), len(self.acting))
        for name, share in zip(self.acting, shares, strict=True):
            sorted_ranks = sorted(range(len(share)), key=lambda rank: (rank % num_tasks, rank))
            for begin in range(0, len(share), self.actors_per_node):
                ranks = sorted_ranks[begin : begin + self.actors_per_node]
                found.append(
                    Crew(
                        name,
                        actors=tuple(int(share[rank]) for rank in ranks),
                        ranks=tuple(ranks),
                        num_actors=len(share),
                        tasks=tuple(rank % num_tasks for rank in ranks),
                    )
                )
        return found

    def num_nodes(self) -> int:
        """How many processes the run's program has."""
        of_agents = self.learners_per_agent * len(self.agents)
        learners = 1 if self.colocate_learners else of_agents
        evaluators = len(self.agents) if self.evaluation_episodes else 0
        demonstrators = 1 + len(self.agents) if self.demonstrations else 0
        others = self.num_replay_shards + 1 + learners + len(self.crews())
        return others + evaluators + demonstrators

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
    missing = [f"--{name}" for name in names if not values.get(name)]
    if missing:
        *others, last = missing
        listed = f"{', '.join(others)} and {last}" if others else last
        raise SettingsError(f"{listed} must be given.")


def resolve(given: Mapping[str, Any], overrides: Overrides) -> Settings:
    """Settings from what the command line gave, the rest from the preset and the agent's Config.

    Raises:
      SettingsError: a value that is unknown, of the wrong type, or out of range.
    """
    values = {name: value for name, value in given.items() if value is not None}
    try:
        agents = catalogue.named(given["agent"])
        suites.check(given["env"])
        acting = values.get("act_with", ",".join(agents))
        preset, made = of_preset(
            given["preset"], given["env"], agents, acting.split(","), overrides
        )
    except ValueError as error:
        raise SettingsError(str(error)) from None
    who = dict(act_with=acting, paced_by=acting.split(",")[0], colocate_learners=False)
    return Settings(**{**preset, **who, **values, "configs": made})


def of_preset(
    preset: str,
    env: str,
    agents: Mapping[str, NamedAgent],
    acting: Sequence[str],
    overrides: Overrides,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings by name, and each agent's Config, of a preset and hyperparameters.

    The local preset plays each of several tasks equally often, with one action set for all: Atari
    games in one process for each acting agent, DMLab levels without an evaluator, which would need
    an engine for each of them too. The paper preset's 256 actors are spread over whatever there is:
    of 57 games the first 28 have five each, and the others four.

    Raises:
      ValueError: a name is unknown, or a field or value is none of a Config.
    """
    if preset not in catalogue.PRESETS:
        known = ", ".join(catalogue.PRESETS)
        raise ValueError(f"--preset must be one of {known}, got {preset!r}.")
    found = {
        name: catalogue.preset_config(preset, agent.entry, env, shared=len(agents) > 1)
        for name, agent in agents.items()
    }
    who_act = [agents[name].entry for name in acting if name in agents]
    return _of_preset(preset, env, who_act), make_configs(env, agents, found, overrides)


def _of_preset(preset: str, env: str, acting: Sequence[Entry]) -> dict[str, Any]:
    """The values of settings that depend on the preset and on what is played by whom."""
    declared = fields.declared(Settings).items()
    values = {name: field.presets[preset] for name, field in declared if field.presets}
    is_local, on_dmlab = preset == "local", suites.kind(env) == "dmlab"
    if on_dmlab:
        values |= _LOCAL_DMLAB if is_local else {}
        values |= dict(full_action_space=any(entry.all_dmlab_actions for entry in acting))
    num_tasks = len(suites.tasks(env))
    if not is_local or num_tasks == 1:
        return values
    every_task_once = num_tasks * len(acting)
    num_actors = every_task_once * math.ceil(values["num_actors"] / every_task_once)
    if on_dmlab:
        return values | dict(num_actors=num_actors, evaluation_episodes=0)
    return values | dict(
        num_actors=num_actors,
        actors_per_node=num_actors,
        full_action_space=True,
        evaluation_episodes=1,
    )


def make_configs(
    env: str,
    agents: Mapping[str, NamedAgent],
    presets: Mapping[str, Mapping[str, Any]],
    overrides: Overrides,
) -> dict[str, Any]:
    """Each agent's Config: its defaults, then the preset's values, then the command line's.

    Raises:
      ValueError: a field or value that a Config does not take, or a field of another agent.
    """
    papers = {name: catalogue.paper_config(agent.entry, env) for name, agent in agents.items()}
    for field in overrides.get(EVERY_AGENT, {}):
        if not any(hasattr(paper, field) for paper in papers.values()):
            flag = f"--{field}" if field.isidentifier() else repr(field)
            raise ValueError(
                f"{flag} sets a hyperparameter that none of this run's agents has: "
                f"{', '.join(agents)}."
            )
    for name in overrides:
        if name not in (*agents, EVERY_AGENT):
            raise ValueError(
                f"--{name}.{next(iter(overrides[name]))} sets a field of {name!r}, but this run's "
                f"agents are {', '.join(agents)}."
            )
    return {
        name: _make_config(name, agent, env, papers[name], presets[name], overrides)
        for name, agent in agents.items()
    }


def _make_config(
    name: str,
    agent: NamedAgent,
    env: str,
    paper: Any,
    preset: Mapping[str, Any],
    overrides: Overrides,
) -> Any:
    _check_tasks(agent, env)
    own, declared = overrides.get(name, {}), fields.declared(type(paper))
    for field in own:
        if field not in declared:
            near = texts.nearest(field, declared)
            meant = f" Did you mean --{name}.{near}?" if near else ""
            raise ValueError(
                f"--{name}.{field} is no field of {name}'s Config.{meant} "
                f"--help={agent.named_by} lists them."
            )
    shared = overrides.get(EVERY_AGENT, {})
    typed = {field: text for field, text in shared.items() if field in declared} | dict(own)
    try:
        parsed = {
            field: texts.value_of(field, text, declared[field].annotation)
            for field, text in typed.items()
        }
        return _with(agent, env, paper, {**preset, **_period(paper, preset, parsed), **parsed})
    except ValueError as error:  # which begins with the field's name
        field = str(error).partition(" ")[0]
        of = "" if field in typed.keys() - own.keys() else f"{name}."
        raise ValueError(f"--{of}{error}") from None


def _period(paper: Any, preset: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, int]:
    """What `period` has to be beside a shorter `length` that was typed alone.

    With the preset's own, steps between two items would never be trained.
    """
    length, period = typed.get("length"), preset.get("period", getattr(paper, "period", None))
    if isinstance(length, int) and isinstance(period, int) and 0 < length < period:
        return dict(period=length)
    return {}


def _with(agent: NamedAgent, env: str, paper: Any, values: Mapping[str, Any]) -> Any:
    """A Config with these values. Raises ValueError for another number of tasks than env has."""
    config, field = dataclasses.replace(paper, **values), agent.entry.num_tasks_field
    fields.check(config)  # as anybody's own need not do itself
    if field is not None and getattr(config, field) != getattr(paper, field):
        raise ValueError(
            f"{field} must be {getattr(paper, field)}, as many as --env={env} has, "
            f"got {getattr(config, field)}."
        )
    return config


def _check_tasks(agent: NamedAgent, env: str) -> None:
    """Raises ValueError for a suite that an agent cannot play."""
    why, tasks = agent.entry.single_task, suites.tasks(env)
    if why and len(tasks) > 1:
        raise ValueError(
            f"--env must be one task for --agent={agent.named_by}, got the {len(tasks)} of "
            f"{env!r}: {why}."
        )


def check_vacant(path: pathlib.Path) -> None:
    """Raises SettingsError where the folder of a run that begins holds one already."""
    if path.is_file():
        raise SettingsError(f"--run_dir={path} is a file: name a folder.")
    if RunFolder(path).config.exists() or RunFolder(path).checkpoints.exists():
        raise SettingsError(
            f"{path} holds a run already: add --resume to go on, or name another folder."
        )


def load(run_dir: pathlib.Path) -> Settings:
    """The settings that a run folder's config.json records; the folder may have been moved since.

    Raises:
      SettingsError: when there is none, or it does not say what a run's would.
    """
    path = RunFolder(run_dir).config
    with reading(path, absent=f"{run_dir} holds no run: there is no {path}."):
        values = texts.fields_of(Settings, texts.read_json(path))
        suites.check_names(values["env"])
        named = catalogue.names(values["agent"])
        for name in values["configs"]:
            if name not in named:
                wanted = ",".join(values["configs"])
                raise ValueError(
                    f"agent must be {wanted if wanted.isprintable() else repr(wanted)}, as configs "
                    f"are named, got {values['agent']!r}."
                )
        agents = catalogue.named(values["agent"])
        made = {
            name: _restored(name, agents[name], values["env"], said)
            for name, said in values["configs"].items()
        }
        return Settings(**{**values, "configs": made, "run_dir": str(run_dir)})


def _restored(name: str, agent: NamedAgent, env: str, said: Any) -> Any:
    """An agent's Config from what config.json holds of it.

    The horizon of annealing was once recorded as a number of updates, `annealing_steps`.
    """
    if agent.entry is catalogue.NOT_IMPORTED:
        try:  # a stand-in for a type that is not imported, with the fields that were recorded
            return dataclasses.make_dataclass(name, said)(**said)
        except TypeError:
            raise ValueError(f"configs.{name} must be an object of fields, got {said!r}.") from None
    _check_tasks(agent, env)
    paper = catalogue.paper_config(agent.entry, env)
    if isinstance(said, dict) and hasattr(paper, "annealing_frames"):
        updates = said.get("annealing_steps")
        if COUNT.holds(updates):
            said = {field: value for field, value in said.items() if field != "annealing_steps"}
            frames = _restored(name, agent, env, said).frames_per_update
            said["annealing_frames"] = updates * frames
    of = f"configs.{name}."
    values = texts.fields_of(type(paper), said, of=of)
    try:
        return _with(agent, env, paper, values)
    except ValueError as error:  # which begins with the field's name
        raise ValueError(f"{of}{error}") from None
