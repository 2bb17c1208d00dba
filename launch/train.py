"""Trains an agent: python -m launch.train --agent=r2d2 --env=atari:pong --run_dir=runs/pong"""

import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from agents import fields
from agents.requirements import LARGEST
from environments import import_path
from launch import command_line, gcp_flags, trial
from run_folder import catalogue, layout, places, run_lock, settings
from run_folder.settings import Settings, SettingsError

RESUME = flags.DEFINE_boolean("resume", False, "Go on with the run in --run_dir.")
_RESUME_STEP = command_line.define_whole(
    "resume_step",
    None,
    "Go on from a kept learner, that of this update, without replay.",
    0,
    LARGEST,
)
_WITHOUT_REPLAY = flags.DEFINE_boolean(
    "resume_without_replay", False, "Go on with the learner; fill the replay anew."
)
_ANNEALING_FRAMES = flags.DEFINE_string(
    "annealing_frames", None, "Until learning rates have fallen, or none; the paper's by default."
)
_SIZING = "launch.sizing"  # which most runs do without
_ELSEWHERE = {
    "agent": command_line.AGENT,
    "run_dir": command_line.RUN_DIR,
    "seed": command_line.SEED,
}
_SETTINGS = _ELSEWHERE | {
    name: command_line.define(name, field, or_auto=name == "num_actors")
    for name, field in fields.declared(Settings).items()
    if name not in (*_ELSEWHERE, "configs")
}
_SECTIONS: command_line.Sections = {
    "What learns what, and where": (
        *("agent", "env", "run_dir", "preset", command_line.HYPERPARAMETER, "seed"),
        *("full_action_space", "full_rendering", "act_with", "paced_by", "colocate_learners"),
        *("resume", "resume_step", "resume_without_replay"),
    ),
    "How much, how long, and what it does meanwhile": (
        *("num_actors", "actors_per_node", "num_replay_shards", "learners_per_agent"),
        "actor_device",
        *("max_actor_steps", "max_learner_steps", "max_minutes"),
        *("until_return", "until_evaluations", _ANNEALING_FRAMES.name),
        *("demonstrations", "demo_fraction"),
        *("evaluation_minutes", "evaluation_episodes", "checkpoint_minutes"),
        *("restarts", "hang_seconds", "private_network", "wandb"),
    ),
    f"On several hosts: docs/clusters.md; docs/gcp.md, --lp_launch_type={gcp_flags.LAUNCH_TYPE}": (
        *("job", *gcp_flags.NAMES),
    ),
}


def asked() -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Launch settings that were typed, None where no flag was given; and hyperparameters.

    A number of actors that is to be found, `finds_actors`, is None too.

    Raises:
      SettingsError: a setting cannot have that value, whatever is run with it.
    """
    overrides = command_line.config_overrides(sys.argv)
    if _ANNEALING_FRAMES.value is not None:
        overrides[settings.EVERY_AGENT] = {_ANNEALING_FRAMES.name: _ANNEALING_FRAMES.value}
    values = {name: flag.value for name, flag in _SETTINGS.items()}
    if finds_actors():
        values["num_actors"] = None
    for name, value in values.items():
        if value is not None:
            settings.check_value(name, value)
    places.check_name(values["run_dir"] or "")
    if values["demonstrations"]:  # a run is resumed from anywhere
        values["demonstrations"] = os.path.abspath(os.path.expanduser(values["demonstrations"]))
    return values, overrides


def finds_actors() -> bool:
    """Whether the number of actors is to be found by measuring."""
    return bool(_SETTINGS["num_actors"].value == command_line.AUTO)


def new_run(values: dict[str, Any], overrides: dict[str, dict[str, str]]) -> Settings:
    """Settings of a run that begins.

    Raises:
      SettingsError: when they cannot be used, or the folder holds a run already.
    """
    if values["run_dir"]:
        settings.check_vacant(layout.local(values["run_dir"]))
    settings.require(values, "agent", "env", "run_dir")
    if values["preset"] is None:
        values = values | {"preset": catalogue.PRESETS[0]}
    trial.try_each(values["env"], values["hang_seconds"])
    return settings.resolve(values, overrides)


def _check_recorded(values: dict[str, Any]) -> None:
    """Tries what a run that goes on plays, if its folder is here; it is locked then.

    Raises:
      SettingsError: the folder holds no run, or another process runs it.
    """
    settings.require(values, "run_dir")
    if layout.is_bucket(values["run_dir"]):
        return
    run_dir = pathlib.Path(values["run_dir"])
    with import_path.nothing_imported():  # an agent's Config may depend on what is seen
        seen = settings.load(run_dir)
    run_lock.take_if_there(run_dir)  # or what is played would be tried beside itself
    trial.try_each(seen.env, values["hang_seconds"] or seen.hang_seconds)
    settings.load(run_dir)


def _first_line(run: Settings | None) -> str:
    """A line for the seconds before there is more to say; empty where no run starts here."""
    if command_line.JOB.value or command_line.of_launchpad(sys.argv):
        return ""
    if run is None:
        return f"Going on with {command_line.RUN_DIR.value} ..."
    if finds_actors():
        return f"Measuring how many environments play best: {run.agent} on {run.env} ..."
    return f"Starting {run.num_nodes():,} processes: {run.agent} on {run.env} ..."


@command_line.ending()
def main(_: Sequence[str]) -> None:
    """Checks names and values first, which takes no TensorFlow and so no time."""
    try:
        values, overrides = asked()
        for flag in (_RESUME_STEP, _WITHOUT_REPLAY):
            if flag.value not in (None, False) and not RESUME.value:
                raise SettingsError(f"--{flag.name} says how a run goes on: add --resume.")
        if RESUME.value:
            _check_recorded(values)
        run = None if RESUME.value else new_run(values, overrides)
        starting = command_line.later("launch.starting", _first_line(run))
        command_line.parse_flags(sys.argv)
        going_on = (values, overrides, _RESUME_STEP.value, not _WITHOUT_REPLAY.value)
        wanted = starting.Resumption(*going_on) if run is None else run
        find = None
        if run is not None and finds_actors():
            find = command_line.later(_SIZING).finder(run, values["actors_per_node"])
        sys.exit(starting.start(wanted, command_line.JOB.value, find))
    finally:
        run_lock.release()


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
