"""Each agent's Config: from a preset and the command line, or from a run folder's config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from agents import fields
from run_folder import catalogue, recorded, texts


def make(
    env: str,
    agents: Mapping[str, str],
    presets: Mapping[str, Mapping[str, Any]],
    overrides: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Each agent's Config: its defaults, then the preset's values, then the command line's.

    Args:
      env: name of the environment.
      agents: name -> as the catalogue knows it.
      presets: name -> {config field -> value}.
      overrides: name -> {config field -> text}.

    Raises:
      ValueError: a field or value that a Config does not take, or a field of another agent.
    """
    for name in overrides:
        if name not in agents:
            raise ValueError(
                f"--{name}.{next(iter(overrides[name]))} sets a field of {name!r}, but this run's "
                f"agents are {', '.join(agents)}."
            )
    return {
        name: _make(name, agent, env, presets[name], overrides.get(name, {}))
        for name, agent in agents.items()
    }


def _make(
    name: str, agent: str, env: str, preset: Mapping[str, Any], typed: Mapping[str, str]
) -> Any:
    default = catalogue.config(agent, env)
    declared = fields.declared(type(default))
    for field in typed:
        if field not in declared:
            raise ValueError(
                f"--{name}.{field} is no field of {name}'s Config." + texts.suggest(field, declared)
            )
    try:
        parsed = {
            field: texts.value_of(field, text, declared[field].annotation)
            for field, text in typed.items()
        }
        return _checked(agent, env, default, {**preset, **parsed})
    except ValueError as error:  # which begins with the field's name
        raise ValueError(f"--{name}.{error}") from None


def restored(env: str, agents: Mapping[str, str], said: Mapping[str, Any]) -> dict[str, Any]:
    """Each agent's Config from what config.json holds of them.

    Raises:
      ValueError: no run would have recorded it.
    """
    return {name: _restored(name, agents[name], env, values) for name, values in said.items()}


def _restored(name: str, agent: str, env: str, said: Any) -> Any:
    default, of = catalogue.config(agent, env), f"configs.{name}."
    values = recorded.fields(type(default), said, of=of)
    try:
        return _checked(agent, env, default, values)
    except ValueError as error:  # which begins with the field's name
        raise ValueError(f"{of}{error}") from None


def _checked(agent: str, env: str, default: Any, values: Mapping[str, Any]) -> Any:
    """A Config with these values. Raises ValueError for another number of tasks than env has."""
    config = dataclasses.replace(default, **values)
    field = catalogue.entry(agent).num_tasks_field
    if field is not None and getattr(config, field) != getattr(default, field):
        raise ValueError(
            f"{field} must be {getattr(default, field)}, as many as --env={env} has, "
            f"got {getattr(config, field)}."
        )
    return config
