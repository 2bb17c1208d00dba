"""What is measured: an agent on Atari, where nothing else is asked for."""

import dataclasses
from typing import Any, NamedTuple

from acme import specs

from agents.contract import Agent
from agents.entry import Entry
from environments import suites
from environments.dm import make_environment_spec
from run_folder import catalogue, settings

GAME = "atari:pong"  # what is played; all 18 actions, as every Atari game has them
_SUITE = "atari57"  # decides how many tasks a multi-task agent's network serves


class Subject(NamedTuple):
    """The agent, and what it sees of a game."""

    preset: str
    entry: Entry
    agent: Agent
    spec: specs.EnvironmentSpec
    num_tasks: int

    @property
    def image(self) -> list[int]:
        """Height, width and channels of one network input."""
        return [*self.spec.observations.shape, self.agent.frame_stack]

    @property
    def settings(self) -> dict[str, Any]:
        """All of it, for the record."""
        return {
            "agent": self.agent.name,
            "preset": self.preset,
            "config": dataclasses.asdict(self.agent.config),
        }


def make(agent: str, preset: str, overrides: dict[str, dict[str, str]], env: str = GAME) -> Subject:
    """An agent with the Config of a preset and what the command line changes of it.

    Args:
      agent: as `launch.train` takes it.
      preset: `paper` or `local`.
      overrides: agent name -> {config field -> text}.
      env: what it plays.

    Raises:
      ValueError: a name or a value that there is not.
    """
    entry = catalogue.entry(agent)
    (name,) = named = catalogue.named(agent)
    suites.check(env)
    tasks = _SUITE if env == GAME and not entry.single_task else env
    values = catalogue.preset_config(preset, entry, tasks)
    config = settings.make_configs(tasks, named, {name: values}, overrides)[name]
    spec = make_environment_spec(env)
    return Subject(preset, entry, entry.make(config, name), spec, len(suites.tasks(tasks)))
