"""How a run goes on: with which settings, from which of its checkpoints, to which limits.

A run goes on from its newest checkpoint, which its manifest names. `--resume_without_replay` leaves
the replay of that one behind. `--resume_step=N` goes back to the learner of update N, if that is
one of those that were kept; the replay, which is newer, is left behind. What was saved stays where
it is until the run saves again. An agent of which only the best parameters were saved, and never a
learner, goes on from those.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from agents import fields
from agents.contract import Update
from agents.learner import write_parameters
from run_folder import (
    best,
    building,
    catalogue,
    checkpoints,
    layout,
    log_reader,
    mirrors,
    replay_files,
    run_lock,
    settings,
    texts,
)
from run_folder.checkpoints import CheckpointError, DamagedError, Manifest, Manifests
from run_folder.layout import CHECKPOINTS, evaluator_label, learner_label
from run_folder.settings import Overrides, Settings, SettingsError

# What another value of would make another run.
_FIXED = ("agent", "env", "preset", "act_with", "paced_by", "num_replay_shards")
_FURTHER = 2  # times the limit that was reached


def resumed(values: Mapping[str, Any], overrides: Overrides) -> Settings:
    """Settings of a run that goes on: as recorded, but for what the command line changes.

    This process holds the run folder's lock from then on, if that has ever been locked, or holds
    nothing but best parameters.

    Raises:
      SettingsError: when there is no run, another process runs it, or the agent, environment or
        preset is another.
    """
    settings.require(values, "run_dir")
    folder = layout.local(values["run_dir"])
    run_lock.take_if_there(folder)
    recorded = settings.load(folder)
    check_logs(recorded)
    if any(has_best_alone(recorded, name) for name in recorded.agents):
        run_lock.take(folder)  # which nobody has yet, and `manifests` saves a learner
    return changed(recorded, values, overrides)


def check_logs(run: Settings) -> None:
    """Raises SettingsError where a log has not the columns of one: nothing could be added to it."""
    of_agents = [(learner_label(a), evaluator_label(a, run.agents)) for a in run.agents]
    for label in itertools.chain(("actor", "tasks"), *of_agents):
        log_reader.read(run.folder.log(label), last_bytes=1)
    log_reader.read(run.folder.log("episodes"), texts=("task",), last_bytes=1)


def changed(recorded: Settings, values: Mapping[str, Any], overrides: Overrides) -> Settings:
    """Settings as they were recorded, but for what the command line says.

    Raises:
      SettingsError: the run could not go on with them.
    """
    for name in _FIXED:
        if values.get(name) not in (None, getattr(recorded, name)):
            raise SettingsError(
                f"{recorded.path} holds a run of --{name}={getattr(recorded, name)}; "
                f"it cannot go on as --{name}={values[name]}."
            )
    presets = {name: dataclasses.asdict(config) for name, config in recorded.configs.items()}
    try:
        agents = catalogue.named(recorded.agent)
        made = settings.make_configs(recorded.env, agents, presets, overrides)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    for name, config in made.items():
        before = recorded.configs[name]
        _check_replay_stays(recorded, name, config)
        try:
            fields.check_stays(config, before)
        except ValueError as error:
            raise SettingsError(f"A run cannot go on so: --{name}.{error}") from None
    said = {name: value for name, value in values.items() if value is not None}
    if said.get("demonstrations") == "" or said.get("max_actor_steps") == 0:
        said.setdefault("demo_fraction", settings.DEMO_FRACTION)  # which is a part of nothing then
    return dataclasses.replace(recorded, **{**said, "configs": made})


def _check_replay_stays(run: Settings, agent: str, config: Any) -> None:
    """Refuses a Config under which the saved replay would be cut or limited otherwise."""
    tables = building.make_agent(run, agent).tables
    if building.make_agent(run, agent, config).tables == tables:
        return
    raise SettingsError(
        f"A run cannot go on with {' '.join(_differing(agent, config, run.configs[agent]))}: its "
        "replay was cut and limited otherwise."
    )


def _differing(agent: str, config: Any, other: Any) -> list[str]:
    """The fields of a Config that another one has otherwise, as they are typed."""
    return [
        f"--{agent}.{field.name}={texts.typed(getattr(config, field.name))}"
        for field in dataclasses.fields(config)
        if getattr(config, field.name) != getattr(other, field.name)
    ]


def manifests(
    run: Settings, updates: Mapping[str, Update], *, step: int | None, with_replay: bool
) -> Manifests:
    """The manifests a run goes on from, as far as anything was saved; they fit its agents.

    Args:
      run: its settings.
      updates: each agent's; their variables are set to those that were saved.
      step: of the pacing agent, to go back to; the others go back to theirs that were saved at
        about that time. None goes on from the newest of all.
      with_replay: whether the replay is wanted.

    Raises:
      CheckpointError: when one is damaged, another agent's, or of a network of other sizes. It
        says which flags leave what is damaged out.
    """
    folder, mirror = run.folder.checkpoints, mirrors.of(run.run_dir)
    mirror.fetch(*(f"{CHECKPOINTS}/{learner_label(name)}/manifest-*.json" for name in run.agents))
    try:
        for name in run.agents if step is None else ():
            if has_best_alone(run, name):
                _save_best(run, name, updates[name])
        found = _newest(run, folder) if step is None else _kept(run, folder, step)
        if not with_replay:
            found = _alone(found)
        for name, manifest in found.items():
            _check(run, folder, manifest)
            try:
                checkpoints.restore(folder, manifest, name, updates[name])
            except checkpoints.OtherSizesError as error:
                raise CheckpointError(f"{error}{_changed_sizes(run, name)}") from None
            if manifest.replay and not layout.is_bucket(run.run_dir):
                replay_files.check_records(folder / manifest.replay)
                replay_files.check_columns(
                    folder / manifest.replay, building.tables_of_shard(run, 0)
                )
    except DamagedError as error:
        raise CheckpointError(f"{error} {_ways_out(run, folder)}") from None
    return found


def has_best_alone(run: Settings, agent: str) -> bool:
    """Whether the best parameters of an agent are all that a run has saved of it."""
    folder = run.folder.checkpoints
    return (
        (folder / best.file_name(agent)).exists()
        and not (folder / checkpoints.manifest_name(agent, run.paced_by)).exists()
        and not checkpoints.kept_steps(folder, agent)
    )


def _save_best(run: Settings, agent: str, update: Update) -> None:
    """Saves a learner that begins with the best parameters, as of the update that these are of."""
    folder = run.folder.checkpoints
    kept = best.read(folder, agent)
    assert kept is not None
    manifest = _of_best(agent, kept)
    for of in ("network", "target_network", "learned_network"):
        if (network := getattr(update, of, None)) is not None:
            best.assign(kept, network)
    if (step := getattr(update, "step", None)) is not None:
        step.assign(kept.learner_step)  # by which rates anneal and lags are counted
    if hasattr(update, "take_as_initial"):  # its actors fetch a copy
        update.take_as_initial()
    prefix = folder / manifest.learner
    prefix.parent.mkdir(exist_ok=True)
    write_parameters(update, str(prefix), kept.learner_step)
    sizes = checkpoints.learner_sizes(folder, manifest.learner)
    manifest = dataclasses.replace(manifest, sizes=sizes)
    checkpoints.write(folder, checkpoints.manifest_name(agent, run.paced_by), manifest)
    checkpoints.keep(folder, manifest)


def _of_best(agent: str, kept: best.Best) -> Manifest:
    """The manifest of a learner that begins with an agent's best parameters, without its files."""
    return Manifest(
        agent=agent,
        learner_step=kept.learner_step,
        learner=f"{learner_label(agent)}/{kept.learner_step}",
        **checkpoints.NO_REPLAY,
        actor_steps=kept.actor_steps,
        episodes=0,
        trained_steps=0,
        walltime=kept.walltime,
        sizes={},
    )


def _alone(found: Manifests) -> Manifests:
    return {name: checkpoints.without_replay(manifest) for name, manifest in found.items()}


def _check(run: Settings, folder: pathlib.Path, manifest: Manifest) -> None:
    """Raises DamagedError unless the files of a checkpoint are as they were written, by size."""
    mirror = mirrors.of(run.run_dir)
    mirror.fetch(f"{CHECKPOINTS}/{manifest.learner}.*")
    replays = replay_files.ReplayFiles(f"{mirror.root}/{CHECKPOINTS}")
    checkpoints.check(folder, manifest, replays.sizes(manifest.replay) if manifest.replay else {})
    done, shards = replay_files.DONE, range(run.num_replay_shards) if manifest.replay else ()
    found = {name for name in manifest.sizes if name.endswith(f"/{done}")}
    if found != {f"{manifest.replay}/{shard}/{done}" for shard in shards}:
        raise DamagedError(
            f"The checkpoint is incomplete: {manifest.replay} must have {len(shards):,} shards, "
            f"which end with {done}, got {sorted(found)}."
        )


def _changed_sizes(run: Settings, agent: str) -> str:
    """How a sentence goes on about a network that is another than the one that was saved."""
    recorded = settings.load(run.path).configs[agent]
    given = _differing(agent, run.configs[agent], recorded)
    if not given:
        return ""
    before = ", ".join(_differing(agent, recorded, run.configs[agent]))
    return f" Of what makes it, {', '.join(given)} was given; the run has {before}."


def _newest(run: Settings, folder: pathlib.Path) -> Manifests:
    """The newest manifest of each agent that has saved something, if only its best parameters."""
    found: Manifests = {}
    for name in run.agents:
        file = checkpoints.manifest_name(name, run.paced_by)
        manifest = checkpoints.parse(folder, file)
        if manifest is not None:
            found[name] = manifest
        elif checkpoints.kept_steps(folder, name):
            raise DamagedError(
                f"{folder / file} is missing, although learners of {name} were saved."
            )
        elif (kept := best.read(folder, name)) is not None:
            found[name] = _of_best(name, kept)
    return found


def _kept(run: Settings, folder: pathlib.Path, step: int) -> Manifests:
    """The learner of the pacing agent that was kept at a step, and the others' of that time."""
    chosen = checkpoints.read_kept(folder, run.paced_by, step)
    found = {run.paced_by: chosen}
    for name in run.agents:
        if name != run.paced_by and (steps := checkpoints.kept_steps(folder, name)):
            each = [checkpoints.read_kept(folder, name, step) for step in steps]
            found[name] = min(each, key=lambda m: abs(m.walltime - chosen.walltime))
    return found


def _ways_out(run: Settings, folder: pathlib.Path) -> str:
    """Which flags go on without what is damaged: to learners that were tried, and are whole."""

    def is_whole(found: Callable[[], Manifests]) -> bool:
        try:
            for manifest in _alone(found()).values():
                _check(run, folder, manifest)
                checkpoints.check_learner(folder, manifest.learner)
        except CheckpointError:
            return False
        return True

    steps = checkpoints.kept_steps(folder, run.paced_by)
    kept = [step for step in steps if is_whole(functools.partial(_kept, run, folder, step))]
    ways = []
    if is_whole(lambda: _newest(run, folder)):
        ways.append("--resume_without_replay takes the learner alone")
    if kept:
        listed = ", ".join(map(str, kept))
        ways.append(f"--resume_step={kept[-1]} an earlier one that was kept (there are {listed})")
    return f"With --resume, {', or '.join(ways)}." if ways else "No learner that was kept is whole."


def limits_reached(
    limits: Mapping[str, float | None], made: Mapping[str, float]
) -> dict[str, float]:
    """A run's limits that were reached, by the name of what they count; None is no limit."""
    return {
        name: limit for name, limit in limits.items() if limit is not None and made[name] >= limit
    }


def limit_flag(name: str, limit: float) -> str:
    """A limit of `Settings.limits` as it is typed."""
    return f"--max_minutes={limit / 60:g}" if name == "walltime" else f"--max_{name}={limit}"


def raised_limits(limits: Mapping[str, float | None], made: Mapping[str, float]) -> list[str]:
    """The flags without which a run that is resumed would end at once: of each limit it reached."""
    found = limits_reached(limits, made)
    further = {name: max(_FURTHER * limit, int(made[name]) + 1) for name, limit in found.items()}
    if "walltime" in further:
        further["walltime"] = 60 * math.ceil(further["walltime"] / 60)  # whole minutes
    return list(itertools.starmap(limit_flag, further.items()))


def check_limits(run: Settings, step: int | None) -> None:
    """Checks that a run that goes on, from a kept learner's step or None, would not end at once.

    Raises:
      SettingsError: it has reached a limit. It says which flag goes beyond.
    """
    saved: Manifests = {}
    with contextlib.suppress(CheckpointError):  # `manifests` tells of it, with the ways out
        folder = run.folder.checkpoints
        saved = _newest(run, folder) if step is None else _kept(run, folder, step)
    counts = checkpoints.counts(saved)
    updates = min(saved[name].learner_step if name in saved else 0 for name in run.agents)
    made = dict(counts, learner_steps=updates)
    if flags := raised_limits(run.limits, made):
        reached = limits_reached(run.limits, made).items()
        given = " and ".join(itertools.starmap(limit_flag, reached))
        raise SettingsError(
            f"{run.run_dir} has reached {given}: it has made {made['actor_steps']:,} actor steps "
            f"and {made['learner_steps']:,} updates in {made['walltime'] / 60:.4g} minutes. "
            f"To go on, raise that: --resume {' '.join(flags)}."
        )
