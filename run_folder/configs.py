"""Each agent's Config: from a preset and the command line, or from a run folder's config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from agents import fields
from agents.requirements import COUNT
from environments import suites
from run_folder import catalogue, recorded, texts

EVERY_AGENT = ""  # in place of an agent's name: every agent that has the field


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
      overrides: name -> {config field -> text}. An agent's own go before those of `EVERY_AGENT`.

    Raises:
      ValueError: a field or value that a Config does not take, or a field of another agent.
    """
    shared = overrides.get(EVERY_AGENT, {})
    for field in shared:
        if not any(hasattr(catalogue.config(agent, env), field) for agent in agents.values()):
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
        name: _make(name, agent, env, presets[name], overrides.get(name, {}), shared)
        for name, agent in agents.items()
    }


def _make(
    name: str,
    agent: str,
    env: str,
    preset: Mapping[str, Any],
    own: Mapping[str, str],
    shared: Mapping[str, str],
) -> Any:
    _check_tasks(agent, env)
    default = catalogue.config(agent, env)
    declared = fields.declared(type(default))
    for field in own:
        if field not in declared:
            near = texts.nearest(field, declared)
            meant = f" Did you mean --{name}.{near}?" if near else ""
            raise ValueError(
                f"--{name}.{field} is no field of {name}'s Config.{meant} --help={agent} lists "
                "them."
            )
    typed = {field: text for field, text in shared.items() if field in declared} | dict(own)
    try:
        parsed = {
            field: texts.value_of(field, text, declared[field].annotation)
            for field, text in typed.items()
        }
        return _checked(agent, env, default, {**preset, **parsed})
    except ValueError as error:  # which begins with the field's name
        field = str(error).partition(" ")[0]
        of = "" if field in typed.keys() - own.keys() else f"{name}."
        raise ValueError(f"--{of}{error}") from None


def restored(env: str, agents: Mapping[str, str], said: Mapping[str, Any]) -> dict[str, Any]:
    """Each agent's Config from what config.json holds of them.

    Raises:
      ValueError: no run would have recorded it.
    """
    return {
        name: _restored(name, agents[name], env, _in_frames(name, agents[name], env, values))
        for name, values in said.items()
    }


def _in_frames(name: str, agent: str, env: str, said: Any) -> Any:
    """What config.json holds of an agent, with the horizon of annealing in frames.

    It was once recorded as a number of updates, `annealing_steps`.
    """
    today = hasattr(catalogue.config(agent, env), "annealing_frames")
    if not (today and isinstance(said, dict) and COUNT.holds(said.get("annealing_steps"))):
        return said
    rest = {field: value for field, value in said.items() if field != "annealing_steps"}
    config = _restored(name, agent, env, rest)
    return rest | {"annealing_frames": said["annealing_steps"] * config.frames_per_update}


def _restored(name: str, agent: str, env: str, said: Any) -> Any:
    if catalogue.entry(agent) is catalogue.NOT_IMPORTED:
        return _as_said(name, said)
    _check_tasks(agent, env)
    default, of = catalogue.config(agent, env), f"configs.{name}."
    values = recorded.fields(type(default), said, of=of)
    try:
        return _checked(agent, env, default, values)
    except ValueError as error:  # which begins with the field's name
        raise ValueError(f"{of}{error}") from None


def _as_said(name: str, said: Any) -> Any:
    """A stand-in for a Config whose type is not imported: it has the fields that were recorded."""
    try:
        return dataclasses.make_dataclass(name, said)(**said)
    except TypeError:
        raise ValueError(f"configs.{name} must be an object of fields, got {said!r}.") from None


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


def _check_tasks(agent: str, env: str) -> None:
    """Raises ValueError for a suite that an agent cannot play."""
    why, tasks = catalogue.entry(agent).single_task, suites.tasks(env)
    if why and len(tasks) > 1:
        raise ValueError(
            f"--env must be one task for --agent={agent}, got the {len(tasks)} of {env!r}: {why}."
        )
