"""A member adopts another's learner: parameters, optimizer, statistics; never the replay.

    checkpoints/learner-impala/1201.*     of the member, whose own learner was at update 1200

The adoption counts as an update, so the learner that the member had stays among the kept ones.
First the files are linked to where they belong; until a manifest names them, they belong to nobody.
Then the decision is made (`population.decisions`). Then the manifest names the files. A process
that is killed in between loses nothing: a decision's files are whole before it is made.

The other member may be learning meanwhile, and remove what it saved earlier. A link keeps a file.
Where a file is gone before it is linked, the other's newest manifest is read again.
"""

import contextlib
import dataclasses
import errno
import os
from collections.abc import Callable
from typing import Any

from run_folder import checkpoints, disk
from run_folder.checkpoints import CheckpointError, Manifest
from run_folder.layout import RunFolder, learner_label
from run_folder.texts import SettingsError

_ATTEMPTS = 5  # a manifest is replaced once in minutes


class AdoptionError(SettingsError):
    """The other's learner could not be taken."""


def stage(source: RunFolder, target: RunFolder, agent: str, step: int) -> int:
    """Links the newest learner of a run beside another run's, where no manifest names it yet.

    Args:
      source: the run that the learner is taken from.
      target: the run that gets it. It has saved a learner, and nobody is running it.
      agent: the agent's name.
      step: the update that the learner is to be in the target.

    Returns:
      The update that it is in the source.

    Raises:
      AdoptionError: there is no learner, it is damaged, or its network has other sizes. Nothing of
        it stays.
      OSError: it cannot be written. Nothing of it stays.
    """
    prefix, reason = f"{learner_label(agent)}/{step}", ""
    for _ in range(_ATTEMPTS):
        try:
            alone = checkpoints.without_replay(_manifest(source))
            checkpoints.check(source.checkpoints, alone)
            _bring(source, target, alone, prefix)
        except CheckpointError as error:
            reason = str(error)
        except FileNotFoundError as error:
            reason = f"{error.filename} is gone."
        else:
            _check_fits(f"of {source.path}", target, prefix)
            return alone.learner_step
    raise AdoptionError(f"The learner of {source.path} cannot be taken: {reason}")


def take(target: RunFolder, agent: str, updates: int, write: Callable[[str], Any]) -> int:
    """Has a run that nobody runs go on from a learner of this process; its replay stays.

    Args:
      target: the run, which has saved a learner.
      agent: the agent's name.
      updates: that the learner has made.
      write: writes the learner to files that begin so.

    Returns:
      The update that it is in the run: a later one than the run's last.

    Raises:
      AdoptionError: there is no learner yet, or this one's network has other sizes. Nothing of it
        stays.
      CheckpointError: the run's manifest is damaged.
      OSError: it cannot be written; the run is as it was.
    """
    manifest = _manifest(target)
    if manifest.agent != agent:
        raise AdoptionError(f"{target.path} goes on from {manifest.agent}, and not from {agent}.")
    step = max(updates, manifest.learner_step + 1)
    prefix = f"{learner_label(agent)}/{step}"
    _remove(target, prefix)
    write(str(target.checkpoints / prefix))
    _check_fits("in this process", target, prefix)
    publish(target, agent, step, manifest.actor_steps)
    return step


def _manifest(run: RunFolder) -> Manifest:
    """The newest of a run. Raises AdoptionError before its first, and CheckpointError."""
    manifest = checkpoints.parse(run.checkpoints)
    if manifest is None:
        raise AdoptionError(f"{run.path} has saved nothing yet.")
    return manifest


def _bring(source: RunFolder, target: RunFolder, manifest: Manifest, prefix: str) -> None:
    _remove(target, prefix)  # of who was killed here
    try:
        for name, size in manifest.sizes.items():
            old, new = source.checkpoints / name, target.checkpoints / prefix
            new = new.with_name(new.name + name.removeprefix(manifest.learner))
            os.link(old, new)  # as good as a copy: what is written anew has files of its own
            if new.stat().st_size != size:  # written anew, by a run that went back
                raise FileNotFoundError(errno.ENOENT, "was written anew", str(old))
        files = checkpoints.learner_files(target.checkpoints, prefix)
        disk.sync(*files, files[0].parent)  # before a decision says that they are there
    except OSError:
        with contextlib.suppress(OSError):
            _remove(target, prefix)
        raise


def _check_fits(whose: str, target: RunFolder, prefix: str) -> None:
    """Removes a learner again, and raises AdoptionError, where a run could not go on with it."""
    folder = target.checkpoints
    try:
        found = checkpoints.check_learner(folder, prefix)
    except CheckpointError:
        _remove(target, prefix)
        raise AdoptionError(f"The learner {whose} is damaged.") from None
    with contextlib.suppress(CheckpointError):  # it need not be whole to be left
        if found != checkpoints.check_learner(folder, _manifest(target).learner):
            _remove(target, prefix)
            raise AdoptionError(f"The learner {whose} is not of the sizes that {target.path}'s is.")


def _remove(target: RunFolder, prefix: str) -> None:
    for file in checkpoints.learner_files(target.checkpoints, prefix):
        file.unlink()


def publish(target: RunFolder, agent: str, step: int, actor_steps: int) -> None:
    """Has a run go on from the learner that was staged at an update; does nothing a second time.

    The run's counts and its replay stay.

    Args:
      target: the run.
      agent: the agent's name.
      step: the update at which the learner was staged.
      actor_steps: actor steps that the run had made then, of which its learner may not have heard
        the last. The steps of the adopted learner come after them.

    Raises:
      AdoptionError: it is not there.
      CheckpointError: the run's manifest is damaged.
      OSError: it cannot be written; the run is as it was.
    """
    manifest = _manifest(target)
    if manifest.learner_step < step:
        manifest = _adopted(target, manifest, f"{learner_label(agent)}/{step}", step, actor_steps)
        checkpoints.write(target.checkpoints, checkpoints.MANIFEST, manifest)
    if manifest.learner_step == step:
        checkpoints.keep(target.checkpoints, manifest)


def _adopted(
    target: RunFolder, manifest: Manifest, prefix: str, step: int, actor_steps: int
) -> Manifest:
    """A run's manifest, with another learner."""
    sizes = checkpoints.learner_sizes(target.checkpoints, prefix)
    for part in ("index", "data"):
        if not any(name.startswith(f"{prefix}.{part}") for name in sizes):
            raise AdoptionError(
                f"{target.checkpoints / prefix}.{part} is missing, which was to be adopted."
            )
    own = f"{manifest.learner}."
    others = {name: size for name, size in manifest.sizes.items() if not name.startswith(own)}
    return dataclasses.replace(
        manifest,
        learner_step=step,
        learner=prefix,
        actor_steps=max(manifest.actor_steps, actor_steps),
        sizes=sizes | others,
    )
