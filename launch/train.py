"""Trains an agent: python -m launch.train --agent=r2d2 --env=atari:pong --run_dir=runs/pong"""

import os

os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "2"
)  # before TensorFlow is imported, by whatever follows

import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import flags

from agents.contract import Update
from launch import command_line
from launch.gcp import launcher, options
from launch.graph import shards
from launch.hosts import artefact
from launch.local import supervisor
from run_folder import (
    bucket,
    building,
    checkpoints,
    launches,
    presets,
    progress,
    resuming,
    rewinding,
    run_lock,
    settings,
)
from run_folder.settings import Settings, SettingsError


def _by_preset(name: str) -> str:
    """What a setting is on Atari where no flag gives it: by local [by paper]."""
    local, paper = (presets.settings(p, "atari:pong", ("r2d2",))[name] for p in presets.PRESETS)
    return f"{local:g} [{paper:g}]"


_ENV = flags.DEFINE_string(
    "env",
    None,
    "What is played: catch, memory:<task>, atari:<game>, dmlab:<level>, gym:<id>, several with "
    "commas; atari57, dmlab30.",
)
_RESUME = flags.DEFINE_boolean("resume", False, "Go on with the run in --run_dir.")
_RESUME_STEP = flags.DEFINE_integer(
    "resume_step",
    None,
    "Go on from a kept learner, that of this update, without replay.",
    lower_bound=0,
)
_WITHOUT_REPLAY = flags.DEFINE_boolean(
    "resume_without_replay", False, "Go on with the learner; fill the replay anew."
)
_PRESET = flags.DEFINE_string(
    "preset", None, "local (default) or paper, whose values are in brackets below."
)
_NUMBERS = {
    name: flags.DEFINE_integer(name, None, text)
    for name, text in {
        "num_actors": f"Environments that act, each its own policy: {_by_preset('num_actors')}.",
        "actors_per_node": f"Of them, those in one process: {_by_preset('actors_per_node')}.",
        "max_actor_steps": "Agent steps, over all environments, to end after.",
        "max_learner_steps": "Updates, of each learner, to end after.",
        "evaluation_episodes": "Of each task in one evaluation; 0 never evaluates: "
        f"{_by_preset('evaluation_episodes')}.",
        "num_replay_shards": "Reverb nodes that the replay is spread over: 1.",
    }.items()
}
_MINUTES = {
    name: flags.DEFINE_float(name, None, f"Minutes between {text}: {_by_preset(name)}.")
    for name, text in {
        "evaluation_minutes": "evaluations",
        "checkpoint_minutes": "periodic checkpoints",
    }.items()
}
_ACT_WITH = flags.DEFINE_string("act_with", None, "Those that act; all by default.")
_PACED_BY = flags.DEFINE_string(
    "paced_by", None, "The one that actors wait for; the first that acts by default."
)
_COLOCATE = flags.DEFINE_boolean("colocate_learners", None, "All learners in one process.")
_FULL_ACTIONS = flags.DEFINE_boolean(
    "full_action_space", None, "All 18 actions on Atari, 15 on DMLab."
)
_SECTIONS: command_line.Sections = {
    "What learns what, and where": (
        *("agent", "env", "run_dir", "preset", command_line.HYPERPARAMETER, "seed"),
        *("full_action_space", "resume", "resume_step", "resume_without_replay"),
    ),
    "How much, and how long": (
        *("num_actors", "actors_per_node", "num_replay_shards"),
        *("max_actor_steps", "max_learner_steps"),
    ),
    f"On several hosts: docs/clusters.md; docs/gcp.md, --lp_launch_type={options.LAUNCH_TYPE}": (
        *("job", *options.NAMES),
    ),
    "What it does meanwhile": ("evaluation_minutes", "evaluation_episodes", "checkpoint_minutes"),
    "Of several agents, --agent=r2d2,impala": ("act_with", "paced_by", "colocate_learners"),
}
flags.FLAGS.set_default("lp_launch_type", "local_mp")  # Launchpad's own default is threads


def given() -> dict[str, Any]:
    """Launch settings that flags gave; None where one was not given."""
    named = {
        "agent": command_line.AGENT,
        "env": _ENV,
        "run_dir": command_line.RUN_DIR,
        "preset": _PRESET,
        "seed": command_line.SEED,
        "full_action_space": _FULL_ACTIONS,
        "act_with": _ACT_WITH,
        "paced_by": _PACED_BY,
        "colocate_learners": _COLOCATE,
        **_NUMBERS,
        **_MINUTES,
    }
    return {name: flag.value for name, flag in named.items()}


def new_run(values: dict[str, Any], overrides: dict[str, dict[str, str]]) -> Settings:
    """Settings of a run that begins.

    Raises:
      SettingsError: when they cannot be used, or the folder holds a run already.
    """
    for name in ("agent", "env", "run_dir"):
        if not values[name]:
            raise SettingsError(f"--{name} must be given.")
    if values["preset"] is None:
        values = values | {"preset": presets.PRESETS[0]}
    made = settings.resolve(values, overrides)
    if made.folder.config.exists() or made.folder.checkpoints.exists():
        raise SettingsError(
            f"{made.path} holds a run already: add --resume to go on, or name another folder."
        )
    return made


def make_updates(run: Settings) -> dict[str, Update]:
    """Each agent's update, made to see that it can be.

    Raises:
      SettingsError: for tasks that no one network plays, and an agent that cannot learn what they
        show.
    """
    try:
        spec = building.environment_spec(run)
    except ValueError as error:
        raise SettingsError(f"--env={run.env} cannot be played: {error}") from None
    updates = {}
    for name in run.agents:
        try:
            updates[name] = building.make_agent(run, name).make_update(spec)
        except ValueError as error:
            raise SettingsError(
                f"--agent={name} cannot play --env={run.env} with these settings: {error}"
            ) from None
        except (tf.errors.ResourceExhaustedError, MemoryError):
            raise SettingsError(
                f"--agent={name} has more parameters with these settings than this machine's "
                "memory holds."
            ) from None
    return updates


def prepare(overrides: dict[str, dict[str, str]]) -> tuple[Settings, checkpoints.Manifests]:
    """What the command line asks for, checked to the end; then the run folder is made.

    Raises:
      SettingsError, CheckpointError: it cannot be done. The folder is as it was.
    """
    values = given()
    if options.wanted():
        launcher.check(options.check(values["run_dir"]), values["run_dir"], resume=_RESUME.value)
    elif flags.FLAGS.lp_launch_type != "local_mp":
        raise SettingsError(
            f"--lp_launch_type must be local_mp or {options.LAUNCH_TYPE}, "
            f"got {flags.FLAGS.lp_launch_type}."
        )
    elif options.given():
        raise SettingsError(
            f"{' and '.join(options.given())} must come with "
            f"--lp_launch_type={options.LAUNCH_TYPE}, got --lp_launch_type=local_mp."
        )
    elif bucket.is_bucket(values["run_dir"] or ""):
        raise SettingsError(
            f"--run_dir={values['run_dir']} is for --lp_launch_type={options.LAUNCH_TYPE}; "
            "a run on hosts of your own needs a folder on a disk."
        )
    _check_resume_flags()
    run = (resuming.resumed if _RESUME.value else new_run)(values, overrides)
    shards.check(run)
    if options.wanted():
        artefact.check_nodes(run)
    if command_line.JOB.value is not None:
        if not command_line.JOB.value:
            raise SettingsError("--job must name a new folder, got ''.")
        artefact.check(run, pathlib.Path(command_line.JOB.value))
    updates = make_updates(run)
    manifests: checkpoints.Manifests = {}
    if _RESUME.value:
        manifests = resuming.manifests(
            run, updates, step=_RESUME_STEP.value, with_replay=not _WITHOUT_REPLAY.value
        )
    if command_line.JOB.value:
        _make_folder("job", pathlib.Path(command_line.JOB.value))
    begin(run, manifests)
    return run, manifests


def _check_resume_flags() -> None:
    for flag in (_RESUME_STEP, _WITHOUT_REPLAY):
        if flag.value not in (None, False) and not _RESUME.value:
            raise SettingsError(f"--{flag.name} says how a run goes on: add --resume.")


def begin(run: Settings, manifests: checkpoints.Manifests) -> None:
    """Makes the run folder, or readies it for another launch; this process holds its lock then.

    Raises:
      SettingsError: another process runs it, or it cannot be written.
    """
    if options.wanted() and options.check(run.run_dir).dry_run:
        return
    _make_folder("run_dir", run.path)
    try:
        if not bucket.is_bucket(run.run_dir):
            run_lock.take(run.path)
        counts = checkpoints.counts(manifests)
        launches.record(
            run.path,
            sys.argv[1:],
            actor_steps=int(counts["actor_steps"]),
            walltime=float(counts["walltime"]),
        )
        in_order = progress.ended_in_order(run.path) and _RESUME_STEP.value is None
        supervisor.begin(run)
        if _RESUME.value and not in_order and not bucket.is_bucket(run.run_dir):
            rewinding.rewind(run.folder, manifests, run.paced_by)
    except OSError as error:
        raise SettingsError(
            f"{error.filename or run.run_dir} cannot be written: {error.strerror}."
        ) from None


def _make_folder(flag: str, path: pathlib.Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--{flag}={path} cannot be made: {error.strerror}.") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise SettingsError(f"--{flag}={path} cannot be written into.")


def write_job(run: Settings, manifests: checkpoints.Manifests, job: pathlib.Path) -> int:
    """Writes a run as files for the hosts of a cluster; returns the exit code."""
    pools = artefact.write(run, manifests, job)
    for pool in pools:
        print(f"{job / pool.name}: {', '.join(pool.labels)}")
    count = sum(len(pool.nodes) for pool in pools)
    print(
        f"Start {count} processes, --rank=0 to {count - 1}, each in its pool's folder:\n"
        f"  CLUSTER_SPEC=$(python -m launch.cluster --job={job} --hosts=... --rank=...) "
        f"python -m launch.node --job={job}"
    )
    return 0


def main(_: Sequence[str]) -> None:
    try:
        run, manifests = prepare(command_line.config_overrides(sys.argv))
        sys.exit(_start(run, manifests))
    except (SettingsError, checkpoints.CheckpointError) as error:
        command_line.fail(str(error))
    finally:
        run_lock.release()


def _start(run: Settings, manifests: checkpoints.Manifests) -> int:
    """Starts a run where the command line wants it; returns the exit code."""
    if command_line.JOB.value:
        return write_job(run, manifests, pathlib.Path(command_line.JOB.value))
    if options.wanted():
        return launcher.launch(run, manifests, options.check(run.run_dir))
    return supervisor.run(run, manifests)


if __name__ == "__main__":
    tf.config.set_visible_devices([], "GPU")  # the learner's process needs it for itself
    command_line.run(main, _SECTIONS)
