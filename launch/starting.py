"""Checks all of a run but its names and values, which `launch.train` has checked, and starts it.

Importing this takes seconds: TensorFlow and Launchpad.
"""

import contextlib
import os
import pathlib
import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from absl import flags

from agents.contract import Agent, Update
from agents.networks.network import is_discrete
from environments.copies.dead_simulators import first_line
from environments.copies.vector import has_mask
from launch import command_line, gcp_flags, trial
from launch.local import fork_server, processes, supervisor, temporary_files
from replay import dataset, tables
from run_folder import (
    building,
    checkpoints,
    launches,
    layout,
    places,
    progress,
    resuming,
    rewinding,
    run_lock,
    settings,
)
from run_folder.checkpoints import Manifests
from run_folder.settings import Settings, SettingsError
from tensor_ops import llvm

flags.FLAGS.set_default("lp_launch_type", "local_mp")  # Launchpad's own default is threads
flags.FLAGS.set_default("lp_termination_notice_secs", -1)  # the launching process has its own
# Which most runs do without.
_ARTEFACT, _TRACKER = "launch.hosts.artefact", "launch.local.tracker"
_GPUS, _MASKS = "launch.local.gpus", "agents.legal_actions"
_DEMONSTRATIONS = "launch.graph.demonstrations"
_OPTIONS, _LAUNCHER = "launch.gcp.options", "launch.gcp.launcher"
_NETWORK = ("actions", "initial_state", "step", "unroll", "trainable_variables", "variables")


class Resumption(NamedTuple):
    """A run that is to go on."""

    values: dict[str, Any]  # launch settings by name; None where no flag was given
    overrides: dict[str, dict[str, str]]  # as `configs.make` takes them
    step: int | None  # of the kept learner to go back to; None goes on from the newest
    with_replay: bool  # whether the replay is wanted


Find = Callable[[Settings], tuple[Settings, str]]
"""Settings with numbers of actors that suit this machine, and a line about them."""


def start(asked: Settings | Resumption, job: str | None, find: Find | None = None) -> int:
    """Starts a run where the command line wants it; returns the exit code.

    Args:
      asked: the settings of a run that begins, or what one goes on with.
      job: folder for the run as files; None runs it.
      find: what finds the numbers of actors of a run that begins here; None leaves them.

    Raises:
      SettingsError: it cannot be done; the folder is as it was.
    """
    resumption = asked if isinstance(asked, Resumption) else None
    run = _accept(asked, job)
    if job is None and not gcp_flags.wanted():
        return _run_here(run, resumption, find)
    tf.config.set_visible_devices([], "GPU")  # no node runs here
    manifests = _manifests(run, resumption)
    if job is not None:
        _make_folder("job", pathlib.Path(job))
        _begin(run, manifests, resumption)
        command_line.later(_ARTEFACT).write(run, manifests, pathlib.Path(job))
        return 0
    wanted = command_line.later(_OPTIONS).check(run.run_dir)
    if not wanted.dry_run:
        _begin(run, manifests, resumption)
    code: int = command_line.later(_LAUNCHER).launch(run, manifests, wanted)
    return code


def _run_here(run: Settings, resumption: Resumption | None, find: Find | None) -> int:
    """Runs all nodes on this machine, as forks; this process itself runs no TensorFlow op."""
    acting_on: list[str] = []
    if run.actor_device != "cpu":
        acting_on, why_not = command_line.later(_GPUS).of_actors(run)
        command_line.say(why_not)
    why_open = "--noprivate_network was given"
    if run.private_network:
        why_open = processes.why_no_private_network()
    if why_open:
        who = processes.reached_by()
        command_line.say(f"Open to {who} ({why_open}): see docs/security.md.")
    with (
        temporary_files.folder_of_a_run(),
        fork_server.ForkServer(private=not why_open, gpus=acting_on) as server,
        contextlib.ExitStack() as stack,
    ):
        if run.actor_device == "gpu":
            server.call(command_line.later(_GPUS).check_seen, acting_on)
        manifests = server.call(_manifests, run, resumption)
        if find is not None:
            run, found = server.call(find, run)
            command_line.say(found)
        _make_folder("run_dir", run.path)
        report: Callable[[], None] = lambda: None  # noqa: E731
        if run.wandb:
            report = stack.enter_context(command_line.later(_TRACKER).Tracker(run)).update
        _begin(run, manifests, resumption)

        at_launch = supervisor.saved(run)

        def go_on() -> Manifests:
            # Until it has saved, what was left behind is the newest that is there.
            is_same = resumption is not None and supervisor.saved(run) == at_launch
            again = resumption if is_same else Resumption({}, {}, step=None, with_replay=True)
            manifests: Manifests = server.call(_manifests, run, again)
            _begin(run, manifests, again)
            return manifests

        return supervisor.run(run, manifests, server, go_on, report)


def _accept(asked: Settings | Resumption, job: str | None) -> Settings:
    """The settings, checked as far as no agent is made."""
    run_dir = asked.values["run_dir"] if isinstance(asked, Resumption) else asked.run_dir
    _check_place(run_dir, resume=isinstance(asked, Resumption))
    if isinstance(asked, Resumption):
        run = resuming.resumed(asked.values, asked.overrides)
        if layout.is_bucket(run.run_dir):  # else it was tried before it was read
            trial.try_each(run.env, run.hang_seconds)
        resuming.check_limits(run, asked.step)
    else:
        run = asked
        settings.check_vacant(run.path)  # of a bucket, only now is it known
    check_shares(run)
    if run.actor_device == "gpu" and (job is not None or gcp_flags.wanted()):
        raise SettingsError(
            "--actor_device=gpu is for a run on this machine; on other hosts actors act on "
            "processors, so --actor_device=cpu."
        )
    if run.demonstrations and (job is not None or gcp_flags.wanted()):
        raise SettingsError(
            f"--demonstrations={run.demonstrations} is a folder of this machine, and the run's "
            "processes are on others: leave it out, or run here."
        )
    if run.wandb:
        command_line.later(_TRACKER).check(run, here=job is None and not gcp_flags.wanted())
    if gcp_flags.wanted():
        command_line.later(_LAUNCHER).check_program(run)
    if job is not None:
        if not job:
            raise SettingsError("--job must name a new folder, got ''.")
        command_line.later(_ARTEFACT).check(run, pathlib.Path(job))
    return run


def _check_place(run_dir: str | None, *, resume: bool) -> None:
    """Accepts a place for a run and a run folder that belong together."""
    if gcp_flags.wanted():
        wanted = command_line.later(_OPTIONS).check(run_dir)
        command_line.later(_LAUNCHER).check(wanted, run_dir or "", resume=resume)
    elif (launch_type := flags.FLAGS.lp_launch_type) != "local_mp":
        raise SettingsError(
            f"--lp_launch_type must be local_mp or {gcp_flags.LAUNCH_TYPE}, got {launch_type}."
        )
    elif gcp_flags.given():
        raise SettingsError(
            f"{' and '.join(gcp_flags.given())} must come with "
            f"--lp_launch_type={gcp_flags.LAUNCH_TYPE}, got --lp_launch_type=local_mp."
        )
    elif layout.is_bucket(run_dir or ""):
        raise SettingsError(
            f"--run_dir={run_dir} is for --lp_launch_type={gcp_flags.LAUNCH_TYPE}; "
            "a run on hosts of your own needs a folder on a disk."
        )


def check_shares(run: Settings) -> None:
    """Checks that every shard has its writers, its share of each table and of each batch.

    Of a batch each of an agent's learners has its share, too.

    Raises:
      SettingsError: one has not.
    """
    shards, nodes, learners = run.num_replay_shards, len(run.crews()), run.learners_per_agent
    if shards > nodes and not run.is_offline:
        raise SettingsError(
            f"--num_replay_shards={shards} needs as many actor nodes, each of which writes to "
            f"one shard; --num_actors={run.num_actors} and "
            f"--actors_per_node={run.actors_per_node} make {nodes}."
        )
    if shards % learners and learners % shards:
        raise SettingsError(
            f"Of --learners_per_agent={learners} and --num_replay_shards={shards} one must "
            "divide the other: each learner samples as many shards, or each shard serves as many "
            "learners."
        )
    if learners > 1 and run.colocate_learners:
        raise SettingsError(
            f"--learners_per_agent={learners} gives each learner a process of its own, and "
            "--colocate_learners puts them into one: leave one of the two out."
        )
    for name in run.agents:
        agent = building.make_agent(run, name)
        if learners > 1:
            _check_learners(agent, learners)
        try:
            dataset.check_shares(agent.tables, agent.batch_sizes, shards)
            for table in agent.tables:
                tables.shard_of(table, shards - 1, shards)
        except ValueError as error:
            raise SettingsError(
                f"--num_replay_shards={shards} does not fit --agent={name}: {error}"
            ) from None


def _check_learners(agent: Agent, learners: int) -> None:
    """Checks that several learners of an agent can share its batches."""
    for table, size in zip(agent.tables, agent.batch_sizes, strict=True):
        if size % learners:
            fitting = [str(n) for n in range(2, size + 1) if not size % n][:4]
            raise SettingsError(
                f"--learners_per_agent={learners} must divide what a batch of {agent.name} takes "
                f"from table {table.name!r}, {size} items"
                + (f", as {', '.join(fitting)} would." if fitting else ".")
            )
    if not agent.can_be_several:
        raise SettingsError(
            f"--learners_per_agent={learners} is not for --agent={agent.name}, which does not say "
            "that it can be several (docs/extending.md)."
        )


def _manifests(run: Settings, resumption: Resumption | None) -> Manifests:
    """The manifests that a run goes on from; its agents are made to see that they can be."""
    updates = make_updates(run)
    if resumption is None:
        return {}
    return resuming.manifests(
        run, updates, step=resumption.step, with_replay=resumption.with_replay
    )


def make_updates(run: Settings) -> dict[str, Update]:
    """Each agent's update, made to see that it can be.

    Raises:
      SettingsError: for tasks that no one network plays, and an agent that cannot learn what they
        show.
    """
    llvm.features()  # which tells of a processor that it cannot be used for
    try:
        spec = building.environment_spec(run)
    except ValueError as error:
        raise SettingsError(f"--env={run.env} cannot be played: {error}") from None
    updates, forms = {}, set()
    for name in run.agents:
        try:
            agent = building.make_agent(run, name)
            if has_mask(spec.observations):
                command_line.later(_MASKS).check(agent)
            update = agent.make_update(spec)
            if missing := [part for part in _NETWORK if not hasattr(update.network, part)]:
                raise ValueError(
                    f"its network must be an agents.contract.Network, got a "
                    f"{type(update.network).__name__} without {', '.join(missing)}."
                )
        except SettingsError:
            raise
        except ValueError as error:
            raise SettingsError(
                f"--agent={name} cannot play --env={run.env} with these settings: {error}"
            ) from None
        except (tf.errors.ResourceExhaustedError, MemoryError):
            raise SettingsError(
                f"--agent={name} has more parameters with these settings than this machine's "
                "memory holds."
            ) from None
        except Exception as error:  # whatever somebody's agent raises; its author needs to see it
            traceback.print_exc()
            raise SettingsError(
                f"--agent={run.agent} cannot play --env={run.env}: making its update raised "
                f"{first_line(error)}"
            ) from None
        if run.demonstrations:
            command_line.later(_DEMONSTRATIONS).check(run, agent, spec)
        updates[name] = update
        forms.add(agent.environment_action)
    if len(forms) > 1 and not is_discrete(spec.actions):
        raise SettingsError(
            f"--agent={run.agent}: these agents do not mean the same by the vectors that replay "
            "holds, so one cannot learn from what another plays."
        )
    return updates


def _begin(run: Settings, manifests: Manifests, resumption: Resumption | None) -> None:
    """Makes the run folder, or readies it for another launch; this process holds its lock then.

    Raises:
      SettingsError: another process runs it, or has run it meanwhile, or it cannot be written.
    """
    _make_folder("run_dir", run.path)
    here = not layout.is_bucket(run.run_dir)
    try:
        if here:
            run_lock.take(run.path)
            places.check(run.folder)
            if resumption is None:  # another launch may have begun there meanwhile, and ended
                settings.check_vacant(run.path)
        counts = checkpoints.counts(manifests)
        launches.record(
            run.path,
            sys.argv[1:],
            actor_steps=int(counts["actor_steps"]),
            walltime=float(counts["walltime"]),
        )
        if resumption is not None and here:
            if progress.ended_in_order(run.path) and resumption.step is None:
                rewinding.cut(run.folder)
            else:
                rewinding.rewind(run.folder, manifests, run.paced_by)
        supervisor.begin(run)
    except OSError as error:
        raise SettingsError(
            f"{error.filename or run.run_dir} cannot be written: {error.strerror}."
        ) from None


def _make_folder(flag: str, path: pathlib.Path) -> None:
    """Makes a folder that is its user's alone; one that is there stays as open as it is."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(f"--{flag}={path} cannot be made: {error.strerror}.") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise SettingsError(f"--{flag}={path} cannot be written into.")
