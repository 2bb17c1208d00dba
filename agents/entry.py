"""Entries: an agent as the commands know it before it is made, in the catalogue or a user's own.

    --agent=my_package.agents:REINFORCE

names an `Entry` from anywhere on PYTHONPATH. Making one loads no TensorFlow: `imported` puts that
off until there is something to make.
"""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from agents.contract import Agent

EXAMPLE = "my_package.agents:REINFORCE"

Kind = Literal["atari", "dmlab", "control", "control_image", "image", "small"]
"""The kinds that presets tell apart: Atari, DeepMind Lab, actions that are vectors, from features
and from images, other images for convolutions, the rest."""

Values = Mapping[str, Any]  # of fields of the agent's Config


@dataclasses.dataclass(frozen=True)
class Band:
    """Two columns of an agent's log for each task, `<mean>/<task>` and `<deviation>/<task>`.

    The report draws them under `title` with `note`; a table has the two `letters`.
    """

    title: str
    mean: str
    deviation: str
    letters: tuple[str, str]
    note: str


@dataclasses.dataclass(frozen=True)
class Group:
    """Columns `<name>/<member>` of an agent's log, by name a chart with a line for each member.

    Attributes:
      names: name -> its meaning.
      member: a noun for the members, such as `head`; they are numbered from 1 on.
      field: of the Config, a tuple of the names that exist.
      title, note: of the report's charts.
    """

    title: str
    names: Mapping[str, str]
    member: str
    field: str
    note: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """An agent as it can be named.

    Attributes:
      config: the paper's hyperparameters, a frozen dataclass; its defaults are those for Atari. Its
        fields are best declared with `agents.fields.field`, which gives them a help text.
      make: (config, name) -> the agent.
      dmlab: the paper's hyperparameters for DeepMind Lab, where those are others.
      control: the paper's hyperparameters where actions are vectors and features are seen.
      control_image: the same where images are seen.
      of_env: the environment's name -> the paper's hyperparameters that follow from it.
      local: values of `--preset=local`, which is for two cores.
      shared: values where other agents read the same stream, except on Atari; `local` goes first.
      num_tasks_field: the field of the Config that holds the number of tasks, if one does.
      epsilon_field: the field that holds the probability of a random action in evaluation; None
        where actions are sampled from a policy.
      all_dmlab_actions: whether it plays DeepMind Lab with the 15 actions of R2D2 and PopArt, or
        with IMPALA's nine.
      columns: the meanings of its log's columns, beside those that every learner has.
      bands: pairs of columns for each task.
      groups: columns for each member of something else.
      evolved: the environment's name -> the fields that populations tune, each with the range of
        its first values, as `--sweep` of `launch.population` takes it.
      dmlab_members: of the paper's population on DeepMind Lab, where it had others there.
      single_task: why it plays no suite of several tasks, as a sentence; empty where it does.
      rivals: of `benchmarks.learner`: name -> its `module:name` in `benchmarks.rivals`.
      networks: the number that an update evaluates, 2 with a target network; 0 where it evaluates
        more than networks, so that a benchmark does not count its work.
    """

    config: Any
    make: "Callable[[Any, str], Agent]"
    dmlab: Any = None
    control: Any = None
    control_image: Any = None
    of_env: Callable[[str], Values] = dataclasses.field(default=lambda env: {})
    local: Mapping[Kind, Values] = dataclasses.field(default_factory=dict)
    shared: Values = dataclasses.field(default_factory=dict)
    num_tasks_field: str | None = None
    epsilon_field: str | None = None
    all_dmlab_actions: bool = True
    columns: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bands: tuple[Band, ...] = ()
    groups: tuple[Group, ...] = ()
    evolved: Callable[[str], Mapping[str, str]] = dataclasses.field(default=lambda env: {})
    dmlab_members: int | None = None
    single_task: str = ""
    rivals: Mapping[str, str] = dataclasses.field(default_factory=dict)
    networks: int = 1


def imported(path: str) -> Callable[..., Any]:
    """The function at a path such as `r2d2.builder:make`, which is imported when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        module, _, name = path.partition(":")
        return getattr(importlib.import_module(module), name)(*args, **kwargs)

    return call
