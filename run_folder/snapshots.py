"""What remains of a learner's earlier checkpoints, for evaluation.

    checkpoints/learner-r2d2/manifest-600.json    of step 600, without a replay
    checkpoints/learner-r2d2/600.*                the learner at step 600

Every checkpoint leaves its learner behind: what was written anyway is not deleted. So that a long
run keeps no more than `NUM_KEPT`, one goes whenever there are more: the one that is missed least,
since the gap it leaves is the smallest. The first and the newest stay, and the gaps between the
others grow alike.

A snapshot is there when its manifest is, which is the last to come and the first to go.
"""

import pathlib
import re
import shutil
from collections.abc import Sequence

from run_folder import checkpoints, whole_files
from run_folder.checkpoints import CheckpointError, DamagedError, Manifest
from run_folder.layout import learner_label

NUM_KEPT = 12
_STEP = re.compile("0|[1-9][0-9]*")  # as the saver writes it: 07 is a name of somebody's
_MANIFEST = re.compile(rf"manifest-({_STEP.pattern})\.json({re.escape(whole_files.TEMPORARY)})?")
_FILE = re.compile(rf"({_STEP.pattern})(\.index|\.data|_temp).*")  # as TensorFlow names them


def keep(folder: pathlib.Path, manifest: Manifest) -> None:
    """Keeps the learner of a checkpoint, and removes what is then too much.

    Args:
      folder: the checkpoint folder, which holds the learner already.
      manifest: of the newest checkpoint.
    """
    alone = checkpoints.without_replay(manifest)
    checkpoints.write(folder, _name(manifest.agent, manifest.learner_step), alone)
    # Later ones are from before the run went back to an earlier step.
    kept = [step for step in steps(folder, manifest.agent) if step <= manifest.learner_step]
    while len(kept) > NUM_KEPT:
        kept.remove(least_missed(kept))
    remove_others((folder / manifest.learner).parent, kept)


def forget(folder: pathlib.Path, agent: str, step: int) -> None:
    """Keeps an agent's learner of one step no longer; its files are removed, or written anew."""
    whole_files.remove(folder / _name(agent, step))


def steps(folder: pathlib.Path, agent: str) -> list[int]:
    """The learner steps at which an agent's learner is there, in order."""
    names = (file.stem.removeprefix("manifest-") for file in folder.glob(_name(agent, "*")))
    return sorted(int(name) for name in names if _STEP.fullmatch(name))


def read(folder: pathlib.Path, agent: str, step: int) -> Manifest:
    """The manifest of an agent's learner at one step.

    Raises:
      CheckpointError: when it is not, or no longer, there, or damaged.
    """
    there = steps(folder, agent)
    manifest = checkpoints.read(folder, _name(agent, step)) if step in there else None
    if manifest is None:
        listed = ", ".join(map(str, there)) or "none"
        raise CheckpointError(f"{folder} holds no step {step} of {agent}; there are {listed}.")
    if (manifest.agent, manifest.learner_step) != (agent, step):
        raise DamagedError(
            f"The checkpoint manifest {folder / _name(agent, step)} must be of {agent} at step "
            f"{step}, got {manifest.agent} at {manifest.learner_step}."
        )
    return manifest


def least_missed(kept: Sequence[int]) -> int:
    """Of at least three steps in order, the one between the two others that are nearest."""
    gaps = {kept[i]: kept[i + 1] - kept[i - 1] for i in range(1, len(kept) - 1)}
    return min(gaps, key=lambda step: gaps[step])


def _name(agent: str, step: int | str) -> str:
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
        if _MANIFEST.fullmatch(file.name):
            whole_files.remove(file)
    for file in others:
        if not _FILE.fullmatch(file.name):
            continue
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()


def files(folder: pathlib.Path, learner: str) -> list[pathlib.Path]:
    """The files of a learner, as manifests name it, whether one does or not."""
    prefix = folder / learner
    found = prefix.parent.glob(f"{prefix.name}.*")
    return [file for file in found if _FILE.fullmatch(file.name)]
