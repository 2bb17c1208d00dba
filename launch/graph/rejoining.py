"""How a node goes on that is started again while the other nodes of its run go on.

Where nodes have hosts of their own, a scheduler starts each of them again by itself. At its first
start a node goes on from what its job says. At a later one a learner, a replay shard or the
coordinator goes on from what the run has saved, or written, since then:

    learner       the newest checkpoint of its agent; its own log goes back to that
    replay shard  its part of the replay that the newest checkpoint names; empty where none does
    coordinator   the counts that it wrote a second before it ended, or, after a power cut, those
                  that its job began with; its logs go back to those

The others wait for it at its address meanwhile: `launch.graph.servers`, `replay.insistence`.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from run_folder import checkpoints, progress, rewinding
from run_folder.checkpoints import Manifest, Manifests
from run_folder.layout import RunFolder, learner_label
from run_folder.settings import Settings

_rejoins = False  # whether this process's node was started before, by the same job


def rejoin() -> None:
    """Makes this process's node, before it is made, one that was started before."""
    global _rejoins
    _rejoins = True


@dataclasses.dataclass(frozen=True)
class Origin:
    """Checkpoints that a launch goes on from."""

    manifests: Manifests  # by agent
    # by agent, what the file held that names its newest checkpoint, when this was launched; an
    # agent that had none is missing. A run may go on from an earlier checkpoint than that.
    found: dict[str, str]

    @classmethod
    def of(cls, settings: Settings, manifests: Manifests) -> "Origin":
        """For a launch, which has saved nothing yet."""
        held = {name: _held(settings, name) for name in settings.agents}
        return cls(manifests, {name: text for name, text in held.items() if text is not None})

    def of_learner(self, settings: Settings, agent: str) -> Manifest | None:
        """The checkpoint that an agent's learner begins with, in whose process this is called."""
        manifest = self._newest(settings, agent)
        if _rejoins:
            step = manifest.learner_step if manifest else 0
            _say(f"the learner of {agent} goes on from update {step:,}")
            label = learner_label(agent)
            rewinding.rewind_own(settings.folder, (label,), {"learner_steps": step})
        return manifest

    def of_replay(self, settings: Settings) -> str | None:
        """The folder of the replay that a shard begins with, in whose process this is called."""
        manifest = self._newest(settings, settings.paced_by)
        replay = manifest.replay if manifest else None
        if _rejoins:
            _say(
                f"replay goes on from {replay}" if replay else "replay was not saved yet, is empty"
            )
        return replay

    def _newest(self, settings: Settings, agent: str) -> Manifest | None:
        if not _rejoins or _held(settings, agent) == self.found.get(agent):
            return self.manifests.get(agent)
        name = checkpoints.manifest_name(agent, settings.paced_by)
        return checkpoints.parse(settings.folder.checkpoints, name)


def last_progress(
    run_dir: pathlib.Path, labels: tuple[str, ...], counts: Mapping[str, float]
) -> dict[str, Any] | None:
    """Progress that the coordinator goes on from, in whose process this is called.

    Args:
      run_dir: the run folder.
      labels: of its logs, which go back to that.
      counts: that its job began with.

    Returns:
      The newest that it had written; None at its first start, and where a power cut left none.
    """
    if not _rejoins:
        return None
    written = progress.read(run_dir)
    steps = (written["counts"] if written else counts)["actor_steps"]
    _say(f"the coordinator goes on from {steps:,} actor steps")
    rewinding.rewind_own(RunFolder(run_dir), labels, {"actor_steps": steps})
    return written


def _held(settings: Settings, agent: str) -> str | None:
    """The text of an agent's manifest; None where there is none."""
    name = checkpoints.manifest_name(agent, settings.paced_by)
    try:
        return (settings.folder.checkpoints / name).read_text(errors="replace")
    except FileNotFoundError:  # and no other error: what cannot be read may be newer
        return None


def _say(what: str) -> None:
    print(f"Started again: {what}.", flush=True)
