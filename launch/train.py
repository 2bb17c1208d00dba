"""Trains an agent: python -m launch.train --agent=r2d2 --env=atari:pong --run_dir=runs/pong"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow is imported, by whatever follows

import dataclasses
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from absl import app, flags

from launch import checkpoints, command_line, presets, settings, supervisor
from launch.settings import Settings, SettingsError

_AGENT = flags.DEFINE_string("agent", None, "What learns: r2d2, r2d2_plus, r2d2_feedforward.")
_ENV = flags.DEFINE_string("env", None, "What is played: catch, memory:<task>, atari:<game>, gym:<id>.")
_RUN_DIR = flags.DEFINE_string("run_dir", None, "Folder for everything about the run.")
_RESUME = flags.DEFINE_boolean("resume", False, "Go on with the run in --run_dir.")
_PRESET = flags.DEFINE_string("preset", None, "local (default) or paper.")
_LIMITS = {
    name: flags.DEFINE_integer(name, None, text)
    for name, text in {
        "num_actors": "Environments that act, each with its own policy.",
        "actors_per_node": "How many of them share one process and one forward pass.",
        "max_actor_steps": "Agent steps, over all environments, to end after.",
        "max_learner_steps": "Updates to end after.",
        "seed": "Of environments, networks and policies.",
        "evaluation_episodes": "Episodes of one evaluation; 0 never evaluates.",
    }.items()
}
_MINUTES = {
    name: flags.DEFINE_float(name, None, text)
    for name, text in {
        "evaluation_minutes": "Minutes between evaluations.",
        "checkpoint_minutes": "Minutes between periodic checkpoints.",
    }.items()
}
_FULL_ACTIONS = flags.DEFINE_boolean("full_action_space", None, "All 18 actions on Atari.")


def given() -> dict[str, Any]:
    """Launch settings that flags gave; None where one was not given."""
    named = {"agent": _AGENT, "env": _ENV, "run_dir": _RUN_DIR, **_LIMITS, **_MINUTES}
    values = {name: flag.value for name, flag in named.items()}
    return values | {"preset": _PRESET.value, "full_action_space": _FULL_ACTIONS.value}


def new_run(values: dict[str, Any], overrides: dict[str, dict[str, str]]) -> Settings:
    """Settings of a run that begins.

    Raises:
      SettingsError: when they cannot be used, or the folder holds a run already.
    """
    for name in ("agent", "env", "run_dir"):
        if not values[name]:
            raise SettingsError(f"--{name} must be given.")
    values = values | {"preset": values["preset"] or presets.PRESETS[0]}
    made = settings.resolve(values, overrides)
    if (made.path / "config.json").exists():
        raise SettingsError(
            f"{made.path} holds a run already: add --resume to go on with it, or name another folder."
        )
    return made


def resumed_run(values: dict[str, Any], overrides: dict[str, dict[str, str]]) -> Settings:
    """Settings of a run that goes on: as recorded, but for what the command line changes.

    Raises:
      SettingsError: when there is no run, or the agent, environment or preset is another.
    """
    if not values["run_dir"]:
        raise SettingsError("--run_dir must be given.")
    recorded = settings.load(pathlib.Path(values["run_dir"]))
    for name in ("agent", "env", "preset"):
        if values[name] is not None and values[name] != getattr(recorded, name):
            raise SettingsError(
                f"{recorded.path} holds a run of --{name}={getattr(recorded, name)}; "
                f"it cannot go on as --{name}={values[name]}."
            )
    config = settings.make_config(
        recorded.agent, dataclasses.asdict(recorded.config), overrides.get(recorded.agent, {})
    )
    changed = {name: value for name, value in values.items() if value is not None}
    return dataclasses.replace(recorded, **{**changed, "config": config})


def main(_: Sequence[str]) -> None:
    overrides = command_line.config_overrides(sys.argv)
    try:
        chosen = (resumed_run if _RESUME.value else new_run)(given(), overrides)
        manifest = checkpoints.read(chosen.path / "checkpoints") if _RESUME.value else None
        if manifest is not None:
            checkpoints.check(chosen.path / "checkpoints", manifest, chosen.agent)
    except (SettingsError, checkpoints.CheckpointError, ValueError) as error:
        command_line.fail(str(error))
    sys.exit(supervisor.run(chosen, manifest))


if __name__ == "__main__":
    flags.FLAGS.set_default("lp_launch_type", "local_mp")
    app.run(main, flags_parser=command_line.parse_flags)
