"""Writes a run's checkpoints, so that whatever is cut short, or fails, the last whole one is there.

Reverb deletes its previous checkpoint before the next is complete. So a finished one is moved out
of Reverb's folder before anything names it, and the superseded one goes only when the manifest no
longer names it, on the disk (`run_folder.checkpoints.write`).
"""

import contextlib
import dataclasses
import pathlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

import reverb
import tensorflow as tf

from replay import tables
from run_folder import checkpoints, disk, mirrors
from run_folder.checkpoints import MANIFEST, Manifest
from run_folder.layout import RunFolder, learner_label
from run_folder.replay_files import ReplayFiles

_STAGING = "staging"  # where replay servers write
_MARGIN = 1.1  # of the space that a replay is expected to take
# What a full disk, or a server that is gone, makes TensorFlow and Reverb raise.
_FAILURES = (OSError, tf.errors.OpError, reverb.errors.ReverbError, RuntimeError, LookupError)
# Of uncompressed items: what is written of noise. Of Pong it is twenty times as much, but a save
# that is begun and not finished makes its user wait for nothing.
RAW_BYTES_PER_SECOND = 100e6


class SaveError(Exception):
    """A checkpoint could not be written. The last whole one is there, and no half of this one."""


def replay_checkpointer(
    folder: pathlib.Path, replay: str | None, shard: int
) -> reverb.checkpointers.CheckpointerBase:
    """Where a replay server writes its checkpoints, and the one it begins with."""
    staging = folder / _STAGING / str(shard)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    begin_with = str(folder / replay / str(shard)) if replay else None
    return reverb.checkpointers.DefaultCheckpointer(str(staging), "", begin_with)


class Saver:
    """Writes checkpoints of a learner and of the replay it reads, which two threads may do at once.

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
        self._publishing = threading.Lock()
        self._unnamed = False  # whether a replay is being written that no manifest names yet

    def replay_seconds(self) -> float:
        """How long writing the replay is expected to take: as the last time, item for item."""
        items = tables.num_items(self._clients)
        if self.last is not None and self.last.replay_items:
            return self.last.replay_seconds * items / self.last.replay_items
        return items * self._raw_item_bytes / RAW_BYTES_PER_SECOND

    def save(self, learner_step: int, counts: dict[str, float]) -> Manifest:
        """Writes the learner; the manifest goes on to name the newest replay.

        Raises:
          SaveError: it cannot be written.
          NotFiniteError: one of its updates was not finite.
        """
        prefix = f"{learner_label(self._agent)}/{learner_step}"
        what = f"The learner at update {learner_step:,}"
        with self._publishing, self._failing(what, self._discard_learner):
            # What a checkpoint counts is in the logs, and is to be after a power cut.
            disk.sync(*RunFolder(self._folder.parent).logs.glob("*.csv"))
            last = self.last
            if last is None or last.learner_step != learner_step:  # else it is there, and named
                for folder in (self._folder, (self._folder / prefix).parent):
                    folder.mkdir(exist_ok=True)  # of a run folder that is gone, none
                self._leave_behind(learner_step)
                self._write_learner(str(self._folder / prefix))
            return self._publish(
                Manifest(
                    agent=self._agent,
                    learner_step=learner_step,
                    learner=prefix,
                    **checkpoints.replay_of(last),
                    actor_steps=int(counts["actor_steps"]),
                    episodes=int(counts["episodes"]),
                    trained_steps=int(counts["trained_steps"]),
                    walltime=counts["walltime"],
                    sizes={},
                )
            )

    def save_replay(self) -> None:
        """Writes the replay, which may take minutes; then the manifest names it.

        The learner must have been saved before, and may be meanwhile. Of several learners' savers
        all but one do nothing.

        Raises:
          SaveError: it cannot be written.
        """
        if self._manifest_name != MANIFEST:
            return
        with self._failing("The replay", self._discard_replay):
            self._check_space()
            self._unnamed = True
            written = self._write_replay()
            with self._publishing:
                assert self.last is not None
                self._unnamed = False
                self._publish(dataclasses.replace(self.last, **written))

    @contextlib.contextmanager
    def _failing(self, what: str, discard: Callable[[], None]) -> Iterator[None]:
        """Discards the half of what cannot be written.

        Raises:
          SaveError: it could not be.
        """
        try:
            yield
        except _FAILURES as error:
            full = disk.full(self._folder)  # before there is room again for what is no checkpoint
            with contextlib.suppress(*_FAILURES):  # what stays goes when the next save ends
                discard()
            sentences = [f"{what} could not be saved: {disk.said(error)}", *filter(None, [full])]
            raise SaveError(". ".join(sentences) + ".") from error

    def _discard_learner(self) -> None:
        named = [self.last.learner_step] if self.last else []  # and it may not be kept yet
        kept = checkpoints.kept_steps(self._folder, self._agent)
        checkpoints.remove_others(self._folder / learner_label(self._agent), [*kept, *named])

    def _discard_replay(self) -> None:
        self._unnamed = False
        for half in (self._folder / _STAGING).glob("*/*"):
            shutil.rmtree(half, ignore_errors=True)
        self._replays.remove_others(self.last.replay if self.last else None)

    def _check_space(self) -> None:
        """Raises OSError where a replay as large as the last, item for item, has no room."""
        last = self.last
        if self._mirror is not None or last is None or not last.replay_items:
            return
        sizes = [size for name, size in last.sizes.items() if name.startswith("replay/")]
        size = _MARGIN * sum(sizes) * tables.num_items(self._clients) / last.replay_items
        left = disk.free(self._folder)
        for what, needed, there in (
            ("MB", size / 1e6, left.bytes / 1e6),
            ("files and folders", 2 * len(sizes), left.files),
        ):
            if there < needed:
                raise OSError(
                    f"it takes about {needed:,.0f} {what} beside the last one, and the disk of "
                    f"{self._folder} has room for {there:,.0f}"
                )

    def _leave_behind(self, learner_step: int) -> None:
        """Names no learner of this step any more, which a run that went back is to write anew.

        TensorFlow writes in place: whoever is cut short goes on from where it went back to, and a
        run that has adopted it holds links to the files that were there.
        """
        folder, prefix = self._folder, f"{learner_label(self._agent)}/{learner_step}"
        if self.last is not None and learner_step in checkpoints.kept_steps(folder, self._agent):
            checkpoints.write(folder, self._manifest_name, self.last)
            checkpoints.forget(folder, self._agent, learner_step)
            if self._mirror is not None:
                self._mirror.push(checkpoints=True)
        for file in checkpoints.learner_files(folder, prefix):
            file.unlink()

    def _write_replay(self) -> dict[str, Any]:
        assert self.last is not None
        items, started = tables.num_items(self._clients), time.monotonic()
        with futures.ThreadPoolExecutor(len(self._clients)) as pool:  # each waits for its server
            written = list(pool.map(lambda client: client.checkpoint(), self._clients))
        now = time.time()  # noqa: TID251 (for people, and a name that none had before)
        name = f"replay/{self.last.learner_step}-{int(1000 * now)}"
        self._replays.take(written, name)
        return dict(
            replay=name,
            replay_items=items,
            replay_saved_at=now,
            replay_seconds=time.monotonic() - started,
        )

    def _publish(self, manifest: Manifest) -> Manifest:
        sizes = checkpoints.learner_sizes(self._folder, manifest.learner)
        if manifest.replay is not None:
            sizes |= self._replays.sizes(manifest.replay)
        manifest = dataclasses.replace(manifest, sizes=sizes)
        checkpoints.write(self._folder, self._manifest_name, manifest)
        self.last = manifest
        checkpoints.keep(self._folder, manifest)
        pushed = self._mirror is None or self._mirror.push(checkpoints=True)
        if pushed and self._manifest_name == MANIFEST and not self._unnamed:
            self._replays.remove_others(manifest.replay)
        return manifest
