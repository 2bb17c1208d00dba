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
import shutil
from collections.abc import Sequence

from run_folder import checkpoints
from run_folder.checkpoints import CheckpointError, Manifest
from run_folder.layout import learner_label

NUM_KEPT = 12


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
    _remove_others((folder / manifest.learner).parent, kept)


def steps(folder: pathlib.Path, agent: str) -> list[int]:
    """The learner steps at which an agent's learner is there, in order."""
    names = (file.stem.removeprefix("manifest-") for file in folder.glob(_name(agent, "*")))
    return sorted(int(name) for name in names if name.isdecimal())


def read(folder: pathlib.Path, agent: str, step: int) -> Manifest:
    """The manifest of an agent's learner at one step.

    Raises:
      CheckpointError: when it is not, or no longer, there, or damaged.
    """
    manifest = checkpoints.read(folder, _name(agent, step))
    if manifest is None:
        there = ", ".join(map(str, steps(folder, agent))) or "none"
        raise CheckpointError(f"{folder} holds no step {step} of {agent}; there are {there}.")
    return manifest


def least_missed(kept: Sequence[int]) -> int:
    """Of at least three steps in order, the one between the two others that are nearest."""
    gaps = {kept[i]: kept[i + 1] - kept[i - 1] for i in range(1, len(kept) - 1)}
    return min(gaps, key=lambda step: gaps[step])


def _name(agent: str, step: int | str) -> str:
    return f"{learner_label(agent)}/manifest-{step}.json"


def _remove_others(folder: pathlib.Path, kept: Sequence[int]) -> None:
    """Removes every file of a learner at other steps, manifests first.

    So go the folders too, `<step>_temp`, in which TensorFlow was writing when it was cut short.
    """
    names = {name for step in kept for name in (f"manifest-{step}", str(step))}
    others = [file for file in folder.iterdir() if file.name.split(".")[0] not in names]
    for file in sorted(others, key=lambda file: not file.name.startswith("manifest-")):
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()
