"""Checkpoints of a run: one manifest names a learner step and the replay that belongs to it.

    checkpoints/manifest.json                   what is whole; replaced after its files are
    checkpoints/learner-r2d2/1200.*             the learner at step 1200
    checkpoints/learner-r2d2/600.*              an earlier one, kept for evaluation
    checkpoints/learner-r2d2/manifest-600.json  what of it is whole, without a replay
    checkpoints/replay/1200-.../0/              the replay at that step: a folder for each shard
    checkpoints/staging/0/                      where Reverb writes

Where several agents learn, the manifest is of the one that paces the actors, and each of the others
has its own, manifest-<agent>.json, that names no replay. `run_folder.saver` writes all this.

Every checkpoint leaves its learner behind: what was written anyway is not deleted. So that a long
run keeps no more than `NUM_KEPT`, one goes whenever there are more: the one that is missed least,
since the gap it leaves is the smallest. The first and the newest stay, and the gaps between the
others grow alike. One that is kept is there when its manifest is, which is the last to come and the
first to go.
"""

import dataclasses
import json
import pathlib
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from agents import fields
from agents.contract import Update
from agents.fields import required
from agents.learner import read_parameters
from agents.requirements import NOT_NEGATIVE, Requirement, or_none, whole
from run_folder import disk, texts
from run_folder.layout import learner_label
from run_folder.texts import SettingsError

MANIFEST = "manifest.json"
NUM_KEPT = 12
_STEP = re.compile("0|[1-9][0-9]*")  # as the saver writes it: 07 is a name of somebody's
_KEPT_MANIFEST = re.compile(rf"manifest-({_STEP.pattern})\.json({re.escape(disk.TEMPORARY)})?")
_FILE = re.compile(rf"({_STEP.pattern})(\.index|\.data|_temp).*")  # as TensorFlow names them


def _is_inside(name: str) -> bool:
    is_path = re.fullmatch(r"[\w.-]+(/[\w.-]+)*", name, re.ASCII) is not None
    return is_path and len(name) <= 255 and not {".", ".."}.intersection(name.split("/"))


_INSIDE = Requirement("a path inside the checkpoint folder", _is_inside)
REPLAY = Requirement(
    "replay/<update>-<milliseconds>",
    lambda name: re.fullmatch(r"replay/[0-9]{1,19}-[0-9]{1,19}", name) is not None,
)


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The files and counts of a complete checkpoint, by paths inside the checkpoint folder."""

    agent: str = required(None, "Whose learner it is.")
    learner_step: int = required(whole(0), "Updates made.")
    learner: str = required(_INSIDE, "Prefix of the learner's files.")
    replay: str | None = required(
        or_none(REPLAY),
        "Folder of the replay's shards; None when none was ever written.",
    )
    replay_items: int = required(whole(0), "Items in all of them.")
    replay_saved_at: float = required(
        NOT_NEGATIVE, "Unix time at which it was written; 0 when none was."
    )
    replay_seconds: float = required(NOT_NEGATIVE, "How long writing it took.")
    actor_steps: int = required(whole(0), "Actor steps counted when the learner was written.")
    episodes: int = required(whole(0), "Episodes counted then.")
    trained_steps: int = required(whole(0), "Steps that learning has replayed.")
    walltime: float = required(
        NOT_NEGATIVE,
        "Seconds that the run had lasted, resumed parts added up.",
    )
    sizes: dict[str, int] = required(
        None, "Bytes of every file, to recognise a damaged checkpoint."
    )

    @property
    def replay_step(self) -> int:
        """The update at which the replay was written; 0 when none was."""
        return int(pathlib.Path(self.replay or "0").name.partition("-")[0])


Manifests = dict[str, Manifest]  # by agent name; agents that never saved are missing


def manifest_name(agent: str, paced_by: str) -> str:
    """The name of an agent's manifest."""
    return MANIFEST if agent == paced_by else f"manifest-{agent}.json"


def counts(manifests: Mapping[str, Manifest]) -> dict[str, float]:
    """The counts of a run that goes on from these: the most that one of them knows of; or 0."""
    return {
        name: max((getattr(manifest, name) for manifest in manifests.values()), default=0)
        for name in ("actor_steps", "episodes", "walltime")
    }


class CheckpointError(SettingsError):
    """A checkpoint that cannot be used."""


class DamagedError(CheckpointError):
    """A checkpoint that is not as it was written; an earlier one may be."""


class OtherSizesError(CheckpointError):
    """A checkpoint of a network that is not the one it is read for."""


# What a manifest says where no replay was written.
NO_REPLAY: dict[str, Any] = dict(
    replay=None, replay_items=0, replay_saved_at=0.0, replay_seconds=0.0
)


def replay_of(manifest: Manifest | None) -> dict[str, Any]:
    """What a manifest says of its replay; what is said where there is none."""
    return {name: getattr(manifest, name, none) for name, none in NO_REPLAY.items()}


def without_replay(manifest: Manifest) -> Manifest:
    """The same checkpoint's learner alone."""
    prefix = f"{manifest.learner}."
    sizes = {name: size for name, size in manifest.sizes.items() if name.startswith(prefix)}
    return dataclasses.replace(manifest, **NO_REPLAY, sizes=sizes)


def write(folder: pathlib.Path, name: str, manifest: Manifest) -> None:
    """Puts a manifest into a checkpoint folder at once, in the place of one that is there.

    What it names is on the disk before, and it when this returns: what it no longer names may go.

    Raises:
      OSError: the disk cannot take all of that. The manifest is as it was.
    """
    files = [folder / file for file in manifest.sizes if (folder / file).exists()]  # no bucket's
    folders = {parent for file in files for parent in file.relative_to(folder).parents}
    disk.sync(*files, *(folder / inside for inside in folders), folder.parent)
    text = json.dumps(dataclasses.asdict(manifest), indent=2) + "\n"
    disk.write(folder / name, text)


def read(folder: pathlib.Path, name: str = MANIFEST) -> Manifest | None:
    """A manifest of a checkpoint folder, None when nothing was ever saved.

    Raises:
      CheckpointError: when the manifest, or a file that it names, is damaged or missing.
    """
    manifest = parse(folder, name)
    if manifest is not None:
        check(folder, manifest)
    return manifest


def parse(folder: pathlib.Path, name: str = MANIFEST) -> Manifest | None:
    """A manifest, whose files are not looked at; None when nothing was ever saved.

    Raises:
      CheckpointError: when it cannot be read.
    """
    path = folder / name
    if not path.exists():
        return None
    try:
        return _checked(texts.read_json(path))
    except OSError as error:
        raise DamagedError(
            f"The checkpoint manifest {path} cannot be read: {error.strerror}."
        ) from None
    except ValueError as error:
        said = str(error).removesuffix(".")
        raise DamagedError(f"The checkpoint manifest {path} is corrupt: {said}.") from None


def _checked(said: Any) -> Manifest:
    """The manifest that a file holds. Raises ValueError for what no saver writes."""
    manifest = Manifest(**texts.fields_of(Manifest, said))
    fields.check(manifest)
    for name, size in manifest.sizes.items():
        if not (_INSIDE.holds(name) and whole(0).holds(size)):
            raise ValueError(
                f"sizes must name files by {_INSIDE.text} and their bytes by {whole(0).text}, "
                f"got {name!r}: {size}."
            )
    prefix = f"{learner_label(manifest.agent)}/{manifest.learner_step}"
    if manifest.learner != prefix:
        raise ValueError(
            f"learner must be {prefix!r}, of agent and learner_step, got {manifest.learner!r}."
        )
    for part in (f"{prefix}.index", f"{prefix}.data"):
        if not any(name.startswith(part) for name in manifest.sizes):
            raise ValueError(f"sizes must name {part!r}, got {sorted(manifest.sizes)}.")
    return manifest


def check(
    folder: pathlib.Path, manifest: Manifest, elsewhere: Mapping[str, int] | None = None
) -> None:
    """Checks that every file that a manifest names is there as it was written, by size.

    Args:
      folder: the checkpoint folder.
      manifest: of it.
      elsewhere: bytes of files that are not in this folder, by their names.

    Raises:
      CheckpointError: when a file is damaged or missing.
    """
    for name, size in manifest.sizes.items():
        file = folder / name
        found = (elsewhere or {}).get(name, file.stat().st_size if file.exists() else None)
        if found is None:
            raise DamagedError(f"The checkpoint is incomplete: {file} is missing.")
        if found != size:
            raise DamagedError(
                f"The checkpoint is corrupt: {file} has {found} bytes, and was written with {size}."
            )


def check_learner(folder: pathlib.Path, learner: str) -> dict[str, list[int]]:
    """Compares the checksums of a learner's variables, by its prefix in a checkpoint folder.

    Returns:
      The shape of each, by name.

    Raises:
      DamagedError: a checksum is wrong.
    """
    prefix = str(folder / learner)
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes: dict[str, list[int]] = reader.get_variable_to_shape_map()
        for name in shapes:
            reader.get_tensor(name)  # which compares checksums
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        raise DamagedError(
            f"The learner's checkpoint {prefix} is corrupt: {disk.said(error)}."
        ) from None
    return shapes


def restore(folder: pathlib.Path, manifest: Manifest, agent: str, update: Update) -> None:
    """Sets the variables of an update of `agent` to those that a manifest names.

    Raises:
      CheckpointError: when they are another agent's, of other shapes, or damaged.
    """
    if manifest.agent != agent:
        raise CheckpointError(
            f"{folder} holds a checkpoint of {manifest.agent!r}; {agent!r} cannot go on from it."
        )
    check_learner(folder, manifest.learner)
    prefix = str(folder / manifest.learner)
    try:
        read_parameters(update, prefix)
    except (ValueError, AssertionError) as error:
        what = str(error).partition("\n")[0]  # of a variable too many, TensorFlow writes a page
        raise OtherSizesError(
            f"The learner's checkpoint {prefix} was written with a network of other sizes: {what}."
        ) from None


def keep(folder: pathlib.Path, manifest: Manifest) -> None:
    """Keeps the learner of the newest checkpoint, and removes what is then too much."""
    name = _kept_name(manifest.agent, manifest.learner_step)
    write(folder, name, without_replay(manifest))
    # Later ones are from before the run went back to an earlier step.
    kept = [step for step in kept_steps(folder, manifest.agent) if step <= manifest.learner_step]
    while len(kept) > NUM_KEPT:
        kept.remove(least_missed(kept))
    remove_others((folder / manifest.learner).parent, kept)


def forget(folder: pathlib.Path, agent: str, step: int) -> None:
    """Keeps an agent's learner of one step no longer; its files are removed, or written anew."""
    disk.remove(folder / _kept_name(agent, step))


def kept_steps(folder: pathlib.Path, agent: str) -> list[int]:
    """The learner steps at which an agent's learner is there, in order."""
    names = (file.stem.removeprefix("manifest-") for file in folder.glob(_kept_name(agent, "*")))
    return sorted(int(name) for name in names if _STEP.fullmatch(name))


def read_kept(folder: pathlib.Path, agent: str, step: int) -> Manifest:
    """The manifest of an agent's learner at one step.

    Raises:
      CheckpointError: when it is not, or no longer, there, or damaged.
    """
    there = kept_steps(folder, agent)
    manifest = read(folder, _kept_name(agent, step)) if step in there else None
    if manifest is None:
        listed = ", ".join(map(str, there)) or "none"
        raise CheckpointError(f"{folder} holds no step {step} of {agent}; there are {listed}.")
    if (manifest.agent, manifest.learner_step) != (agent, step):
        raise DamagedError(
            f"The checkpoint manifest {folder / _kept_name(agent, step)} must be of {agent} at "
            f"step {step}, got {manifest.agent} at {manifest.learner_step}."
        )
    return manifest


def least_missed(kept: Sequence[int]) -> int:
    """The step, of at least three in order, between the two others that are nearest."""
    gaps = {kept[i]: kept[i + 1] - kept[i - 1] for i in range(1, len(kept) - 1)}
    return min(gaps, key=lambda step: gaps[step])


def _kept_name(agent: str, step: int | str) -> str:
    return f"{learner_label(agent)}/manifest-{step}.json"


def remove_others(folder: pathlib.Path, kept: Sequence[int]) -> None:
    """Removes every file of a learner at other steps, manifests first; what is no saver's stays.

    So go what was cut short: TensorFlow's folders `<step>_temp`, and manifests not yet in place.
    """
    names = {name for step in kept for name in (f"manifest-{step}.json", f"{step}.index")}
    data = tuple(f"{step}.data" for step in kept)
    others = [
        file
        for file in folder.iterdir()
        if file.name not in names and not file.name.startswith(data)
    ]
    for file in others:
        if _KEPT_MANIFEST.fullmatch(file.name):
            disk.remove(file)
    for file in others:
        if not _FILE.fullmatch(file.name):
            continue
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()


def learner_sizes(folder: pathlib.Path, learner: str) -> dict[str, int]:
    """Bytes of the files of a learner, by their names in a checkpoint folder."""
    files = learner_files(folder, learner)
    return {str(file.relative_to(folder)): file.stat().st_size for file in files}


def learner_files(folder: pathlib.Path, learner: str) -> list[pathlib.Path]:
    """The files of a learner, as manifests name it, whether one does or not."""
    prefix = folder / learner
    found = prefix.parent.glob(f"{prefix.name}.*")
    return [file for file in found if _FILE.fullmatch(file.name)]
