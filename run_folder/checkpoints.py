"""What a run has saved: one manifest names a learner step and the replay that belongs to it.

    checkpoints/manifest.json          what is whole; replaced at once, after its files are complete
    checkpoints/learner-r2d2/1200.*    the learner at step 1200
    checkpoints/learner-r2d2/600.*     what remains of earlier ones: see `run_folder.snapshots`
    checkpoints/replay/1200-.../0/     the replay at that step: a folder for each of its shards
    checkpoints/staging/0/             where Reverb writes

Where several agents learn, the manifest is of the one that paces the actors, and each of the others
has its own, manifest-<agent>.json, that names no replay. `run_folder.saver` writes all this.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from agents import fields
from agents.contract import Update
from agents.fields import required
from agents.learner import read_parameters
from agents.requirements import NOT_NEGATIVE, Requirement, or_none, whole
from run_folder import disk, recorded, whole_files
from run_folder.layout import learner_label

MANIFEST = "manifest.json"


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
    """What a complete checkpoint consists of. Paths are relative to the checkpoint folder."""

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
    """The file that says what of an agent is whole."""
    return MANIFEST if agent == paced_by else f"manifest-{agent}.json"


def counts(manifests: Mapping[str, Manifest]) -> dict[str, float]:
    """What a run that goes on from these has counted: the most that one of them knows of; or 0."""
    return {
        name: max((getattr(manifest, name) for manifest in manifests.values()), default=0)
        for name in ("actor_steps", "episodes", "walltime")
    }


class CheckpointError(ValueError):
    """A checkpoint that cannot be used. The message is a sentence for the terminal."""


class DamagedError(CheckpointError):
    """A checkpoint that is not as it was written; an earlier one may be."""


class OtherSizesError(CheckpointError):
    """A checkpoint of a network that is not the one it is read for."""


def without_replay(manifest: Manifest) -> Manifest:
    """The same checkpoint's learner alone."""
    prefix = f"{manifest.learner}."
    return dataclasses.replace(
        manifest,
        replay=None,
        replay_items=0,
        replay_saved_at=0.0,
        replay_seconds=0.0,
        sizes={name: size for name, size in manifest.sizes.items() if name.startswith(prefix)},
    )


def write(folder: pathlib.Path, name: str, manifest: Manifest) -> None:
    """Puts a manifest into a checkpoint folder at once, in the place of one that is there.

    What it names is on the disk before, and it when this returns: what it no longer names may go.

    Raises:
      OSError: the disk cannot take all of that. The manifest is as it was.
    """
    files = [folder / file for file in manifest.sizes if (folder / file).exists()]  # no bucket's
    folders = {parent for file in files for parent in file.relative_to(folder).parents}
    whole_files.sync(*files, *(folder / inside for inside in folders), folder.parent)
    text = json.dumps(dataclasses.asdict(manifest), indent=2) + "\n"
    whole_files.write(folder / name, text)


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
    """What a manifest says, None when nothing was ever saved.

    Raises:
      CheckpointError: when it cannot be read.
    """
    path = folder / name
    if not path.exists():
        return None
    try:
        return _checked(recorded.read(path))
    except OSError as error:
        raise DamagedError(
            f"The checkpoint manifest {path} cannot be read: {error.strerror}."
        ) from None
    except ValueError as error:
        said = str(error).removesuffix(".")
        raise DamagedError(f"The checkpoint manifest {path} is corrupt: {said}.") from None


def _checked(said: Any) -> Manifest:
    """The manifest that a file holds. Raises ValueError about what no saver writes."""
    manifest = Manifest(**recorded.fields(Manifest, said))
    fields.check(manifest)
    for name, size in manifest.sizes.items():
        if not (_INSIDE.holds(name) and whole(0).holds(size)):
            raise ValueError(
                f"sizes must name files by {_INSIDE.text} and their bytes by {whole(0).text}, "
                f"got {name!r}: {size}."
            )
    _check_learner(manifest)
    return manifest


def _check_learner(manifest: Manifest) -> None:
    """Raises ValueError unless the learner is that of the step, and its files are listed."""
    prefix = f"{learner_label(manifest.agent)}/{manifest.learner_step}"
    if manifest.learner != prefix:
        raise ValueError(
            f"learner must be {prefix!r}, of agent and learner_step, got {manifest.learner!r}."
        )
    for part in (f"{prefix}.index", f"{prefix}.data"):
        if not any(name.startswith(part) for name in manifest.sizes):
            raise ValueError(f"sizes must name {part!r}, got {sorted(manifest.sizes)}.")


def check(
    folder: pathlib.Path, manifest: Manifest, elsewhere: Mapping[str, int] | None = None
) -> None:
    """Checks that every file that a manifest names is there as it was written.

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


def check_learner(folder: pathlib.Path, manifest: Manifest) -> None:
    """Compares the checksums of all that a learner consists of.

    Raises:
      DamagedError: one is wrong.
    """
    prefix = str(folder / manifest.learner)
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)  # which compares checksums
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        raise DamagedError(
            f"The learner's checkpoint {prefix} is corrupt: {disk.said(error)}."
        ) from None


def restore(folder: pathlib.Path, manifest: Manifest, agent: str, update: Update) -> None:
    """Sets the variables of an update of `agent` to those that a manifest names.

    Raises:
      CheckpointError: when they are another agent's, of other shapes, or damaged.
    """
    if manifest.agent != agent:
        raise CheckpointError(
            f"{folder} holds a checkpoint of {manifest.agent!r}; {agent!r} cannot go on from it."
        )
    check_learner(folder, manifest)
    prefix = str(folder / manifest.learner)
    try:
        read_parameters(update, prefix)
    except (ValueError, AssertionError) as error:
        raise OtherSizesError(
            f"The learner's checkpoint {prefix} was written with a network of other sizes: {error}."
        ) from None
