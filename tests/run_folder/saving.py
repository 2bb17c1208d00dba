"""A checkpoint folder with a saver of it, whose learner and replay are stand-ins."""

import pathlib
from types import SimpleNamespace
from typing import Any

from run_folder import checkpoints, saver

COUNTS = {"actor_steps": 100, "episodes": 10, "trained_steps": 50, "walltime": 7.5}


def table_info(items: int, min_size: int = 1, max_times_sampled: int = 0) -> SimpleNamespace:
    """A replay server's description of a table."""
    limiter = SimpleNamespace(min_size_to_sample=min_size)
    return SimpleNamespace(
        current_size=items, rate_limiter_info=limiter, max_times_sampled=max_times_sampled
    )


def saved_in(folder: pathlib.Path, name: str = checkpoints.MANIFEST) -> checkpoints.Manifest:
    """The manifest of a checkpoint folder, which has one."""
    found = checkpoints.read(folder, name)
    assert found is not None
    return found


def save_all(of: saver.Saver, step: int, counts: dict[str, float]) -> checkpoints.Manifest:
    """Saves the learner, then the replay; returns what names both."""
    of.save(step, counts)
    of.save_replay()
    assert of.last is not None
    return of.last


class Replay:
    """Stands for a Reverb client: writes `items` into a staging folder, and deletes the last."""

    server_address = "localhost:1"

    def __init__(self, staging: pathlib.Path) -> None:
        self.staging = staging
        self.items = 12
        self.breaks = False
        self.fails_with: Exception | None = None
        self._number = 0

    def server_info(self, timeout: int | None) -> dict[str, Any]:
        return {"r2d2": table_info(self.items)}

    def checkpoint(self) -> str:
        folder = self.staging / str(self._number)
        self._number += 1
        folder.mkdir(parents=True)
        (folder / "chunks").write_text("half")
        if self.breaks:
            raise KeyboardInterrupt
        if self.fails_with:
            raise self.fails_with
        (folder / "chunks").write_text("x" * self.items)
        return str(folder)


class Place:
    """A checkpoint folder with a saver of it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.replays = [Replay(folder / "staging" / str(shard)) for shard in range(2)]
        self.replays[0].items = 7
        self.replays[1].items = 5
        self.learner: str | Exception = "weights"
        self.saver = self.new_saver(None)

    def new_saver(self, last: checkpoints.Manifest | None, agent: str = "r2d2") -> saver.Saver:
        """A saver of an agent; the one of r2d2 writes the replay."""
        name = checkpoints.manifest_name(agent, paced_by="r2d2")
        return saver.Saver(
            self.folder, agent, self._write_learner, self.replays, 10_000, last, name
        )

    def files(self) -> set[str]:
        """All files but Reverb's own."""
        whole = (p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file())
        return {str(p) for p in whole if p.parts[0] != "staging"}

    @staticmethod
    def learner_files(agent: str, *steps: int) -> set[str]:
        """The files of learners at these steps."""
        names = (f"manifest-{step}.json {step}.index {step}.data" for step in steps)
        return {f"learner-{agent}/{name}" for name in " ".join(names).split()}

    def _write_learner(self, prefix: str) -> str:
        pathlib.Path(prefix + ".index").write_text("index")
        if self.learner == "breaks":
            raise KeyboardInterrupt
        if isinstance(self.learner, Exception):
            raise self.learner
        pathlib.Path(prefix + ".data").write_text(self.learner)
        return prefix
