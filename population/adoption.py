"""How a member takes another's learner: parameters, optimizer, statistics; never the replay.

    checkpoints/learner-impala/1201.*     of the member, whose own learner was at update 1200

The adoption counts as an update, so that the learner it had stays among those that are kept. First
the files are linked or copied to where they belong; while no manifest names them, they belong to
nobody. Then the decision is made (`population.decisions`). Then the manifest names them. Who is
killed in between finds all that is needed: a decision's files are whole before it is made.

The other may be learning meanwhile and remove what it has saved before: a link keeps the file, and
where one is gone before it was linked, its newest manifest is read again.
"""

import contextlib
import dataclasses
import errno
import os
import pathlib
import shutil

import tensorflow as tf

from run_folder import checkpoints, snapshots, whole_files
from run_folder.checkpoints import Manifest
from run_folder.layout import RunFolder, learner_label

_ATTEMPTS = 5  # a manifest is replaced once in minutes


class AdoptionError(Exception):
    """The other's learner could not be taken. The message is a sentence."""


def stage(source: RunFolder, target: RunFolder, agent: str, step: int) -> int:
    """Brings the newest learner of a run beside those of another, unnamed.

    Args:
      source: the run whose learner it is.
      target: the run that gets it, and has saved a learner; nobody is running it.
      agent: whose learner.
      step: the update that it will be there.

    Returns:
      Which update it is of its own run.

    Raises:
      AdoptionError: there is none, it is damaged, or of a network of other sizes; nothing of it
        stays.
      OSError: it cannot be written; nothing of it stays.
    """
    prefix = f"{learner_label(agent)}/{step}"
    for _ in range(_ATTEMPTS):
        try:
            manifest = checkpoints.parse(source.checkpoints)
            if manifest is None:
                raise AdoptionError(f"{source.path} has saved nothing yet.")
            alone = checkpoints.without_replay(manifest)
            checkpoints.check(source.checkpoints, alone)
            _bring(source, target, alone, prefix)
        except checkpoints.CheckpointError as error:
            reason = str(error)
        except FileNotFoundError as error:
            reason = f"{error.filename} is gone."
        else:
            _check_fits(source, target, prefix)
            return alone.learner_step
    raise AdoptionError(f"The learner of {source.path} cannot be taken: {reason}")


def _bring(source: RunFolder, target: RunFolder, manifest: Manifest, prefix: str) -> None:
    _remove(target, prefix)  # of who was killed here
    try:
        for name, size in manifest.sizes.items():
            old, new = source.checkpoints / name, target.checkpoints / prefix
            new = new.with_name(new.name + name.removeprefix(manifest.learner))
            _link(old, new)
            if new.stat().st_size != size:  # written anew, by a run that went back
                raise FileNotFoundError(errno.ENOENT, "was written anew", str(old))
        files = snapshots.files(target.checkpoints, prefix)
        whole_files.sync(*files, files[0].parent)  # before a decision says that they are there
    except OSError:
        with contextlib.suppress(OSError):
            _remove(target, prefix)
        raise


def _check_fits(source: RunFolder, target: RunFolder, prefix: str) -> None:
    """Removes a learner again, and raises AdoptionError, where a run could not go on with it."""
    own = checkpoints.parse(target.checkpoints)
    assert own is not None
    found, before = _shapes(target, prefix), _shapes(target, own.learner)
    if found is None or (before is not None and found != before):
        _remove(target, prefix)
        what = "is damaged" if found is None else f"is not of the sizes that {target.path}'s is"
        raise AdoptionError(f"The learner of {source.path} {what}.")


def _shapes(folder: RunFolder, prefix: str) -> dict[str, list[int]] | None:
    """The shape of each of a learner's variables; None of one that is damaged."""
    try:
        reader = tf.train.load_checkpoint(str(folder.checkpoints / prefix))
        shapes: dict[str, list[int]] = reader.get_variable_to_shape_map()
        for name in shapes:
            reader.get_tensor(name)  # which compares checksums
    except (tf.errors.OpError, RuntimeError, ValueError):
        return None
    return shapes


def _remove(target: RunFolder, prefix: str) -> None:
    for file in snapshots.files(target.checkpoints, prefix):
        file.unlink()


def _link(old: pathlib.Path, new: pathlib.Path) -> None:
    """A link is as good as a copy: what is written anew has files of its own."""
    try:
        os.link(old, new)
    except OSError:  # another file system, or one that has no links
        shutil.copyfile(old, new)


def publish(target: RunFolder, agent: str, step: int, actor_steps: int) -> None:
    """Makes the learner that was staged at an update the one that a run goes on from.

    What the run has counted stays, and its replay. It does nothing where it was done before.

    Args:
      target: the run.
      agent: whose learner.
      step: where it was staged.
      actor_steps: actor steps that the run had made then; its learner may not have heard of the
        last. Those of the learner that it adopts come after them.

    Raises:
      AdoptionError: it is not there, or the run's manifest is damaged.
      OSError: it cannot be written; the run is as it was.
    """
    try:
        manifest = checkpoints.parse(target.checkpoints)
    except checkpoints.CheckpointError as error:
        raise AdoptionError(str(error)) from None
    if manifest is None:
        raise AdoptionError(f"{target.path} has saved nothing yet.")
    if manifest.learner_step < step:
        manifest = _adopted(target, manifest, f"{learner_label(agent)}/{step}", step, actor_steps)
        checkpoints.write(target.checkpoints, checkpoints.MANIFEST, manifest)
    if manifest.learner_step == step:
        snapshots.keep(target.checkpoints, manifest)


def _adopted(
    target: RunFolder, manifest: Manifest, prefix: str, step: int, actor_steps: int
) -> Manifest:
    """A run's manifest, with another learner."""
    sizes = {
        str(file.relative_to(target.checkpoints)): file.stat().st_size
        for file in snapshots.files(target.checkpoints, prefix)
    }
    for part in ("index", "data"):
        if not any(name.startswith(f"{prefix}.{part}") for name in sizes):
            raise AdoptionError(
                f"{target.checkpoints / prefix}.{part} is missing, which was to be adopted."
            )
    others = {
        name: size
        for name, size in manifest.sizes.items()
        if not name.startswith(f"{manifest.learner}.")
    }
    return dataclasses.replace(
        manifest,
        learner_step=step,
        learner=prefix,
        actor_steps=max(manifest.actor_steps, actor_steps),
        sizes=sizes | others,
    )
