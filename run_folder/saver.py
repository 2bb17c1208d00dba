"""Writes a run's checkpoints, so that whatever is cut short the last whole one is still there.

Reverb deletes its previous checkpoint before the next is complete. So a finished one is moved out
of Reverb's folder before anything names it, and the superseded one goes only when the manifest no
longer names it.
"""

import dataclasses
import pathlib
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

import reverb

from replay import tables
from run_folder import checkpoints, mirrors, snapshots
from run_folder.checkpoints import MANIFEST, Manifest
from run_folder.layout import learner_label
from run_folder.replay_files import ReplayFiles

RAW_BYTES_PER_SECOND = 100e6  # of uncompressed items: a little less than one core was seen to write


def replay_checkpointer(
    folder: pathlib.Path, replay: str | None, shard: int
) -> reverb.checkpointers.CheckpointerBase:
    """Where a replay server writes its checkpoints, and the one it begins with."""
    staging = folder / "staging" / str(shard)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    begin_with = str(folder / replay / str(shard)) if replay else None
    return reverb.checkpointers.DefaultCheckpointer(str(staging), "", begin_with)


class Saver:
    """Writes checkpoints of a learner and of the replay it reads.

    Args:
      folder: the run's checkpoint folder.
      agent: name of the learner's agent.
      write_learner: writes the learner's files under a prefix.
      clients: of the replay servers, in the order of the shards.
      raw_item_bytes: size of one item before compression.
      last: the manifest that the run was resumed from.
      manifest_name: the file to publish; only the saver whose file is `MANIFEST` writes the replay.
      mirror: this process's part of the run folder, where that is in a bucket.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        agent: str,
        write_learner: Callable[[str], str],
        clients: Sequence[reverb.Client],
        raw_item_bytes: int,
        last: Manifest | None,
        manifest_name: str = MANIFEST,
        mirror: mirrors.Mirror | None = None,
    ) -> None:
        self._folder = folder
        self._agent = agent
        self._write_learner = write_learner
        self._clients = clients
        self._raw_item_bytes = raw_item_bytes
        self.last = last
        self._manifest_name = manifest_name
        self._mirror = mirror
        root = f"{mirror.root}/{folder.name}" if mirror else str(folder)
        self._replays = ReplayFiles(root)

    def replay_seconds(self) -> float:
        """How long writing the replay is expected to take: as the last time, item for item."""
        items = tables.num_items(self._clients)
        if self.last is not None and self.last.replay_items:
            return self.last.replay_seconds * items / self.last.replay_items
        return items * self._raw_item_bytes / RAW_BYTES_PER_SECOND

    def save(self, learner_step: int, counts: dict[str, float], *, with_replay: bool) -> Manifest:
        """Writes the learner, then the replay if asked; the manifest names the newest of both.

        The learner is safe before the replay is begun, which may take minutes and be cut short.
        """
        prefix = f"{learner_label(self._agent)}/{learner_step}"
        (self._folder / prefix).parent.mkdir(parents=True, exist_ok=True)
        self._write_learner(str(self._folder / prefix))
        last = self.last
        manifest = Manifest(
            agent=self._agent,
            learner_step=learner_step,
            learner=prefix,
            replay=last.replay if last else None,
            replay_items=last.replay_items if last else 0,
            replay_saved_at=last.replay_saved_at if last else 0.0,
            replay_seconds=last.replay_seconds if last else 0.0,
            actor_steps=int(counts["actor_steps"]),
            episodes=int(counts["episodes"]),
            trained_steps=int(counts["trained_steps"]),
            walltime=counts["walltime"],
            sizes={},
        )
        self._publish(manifest)
        if with_replay and self._manifest_name == MANIFEST:
            manifest = dataclasses.replace(manifest, **self._write_replay(learner_step))
            self._publish(manifest)
        return manifest

    def _write_replay(self, learner_step: int) -> dict[str, Any]:
        items, started = tables.num_items(self._clients), time.time()
        with futures.ThreadPoolExecutor(len(self._clients)) as pool:  # each waits for its server
            written = list(pool.map(lambda client: client.checkpoint(), self._clients))
        name = f"replay/{learner_step}-{int(1000 * started)}"
        self._replays.take(written, name)
        now = time.time()
        return dict(
            replay=name, replay_items=items, replay_saved_at=now, replay_seconds=now - started
        )

    def _sizes(self, prefix: str, replay: str | None) -> dict[str, int]:
        files = list((self._folder / prefix).parent.glob(f"{pathlib.Path(prefix).name}.*"))
        sizes = {str(file.relative_to(self._folder)): file.stat().st_size for file in files}
        return sizes | (self._replays.sizes(replay) if replay is not None else {})

    def _publish(self, manifest: Manifest) -> None:
        manifest = dataclasses.replace(
            manifest, sizes=self._sizes(manifest.learner, manifest.replay)
        )
        checkpoints.write(self._folder, self._manifest_name, manifest)
        self.last = manifest
        snapshots.keep(self._folder, manifest)
        pushed = self._mirror is None or self._mirror.push(checkpoints=True)
        if pushed and self._manifest_name == MANIFEST:
            self._replays.remove_others(manifest.replay)
