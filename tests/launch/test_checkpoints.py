"""One manifest names a learner and the replay that belongs to it, whatever is cut short."""

import json
import pathlib
from types import SimpleNamespace
from typing import Any

import pytest
import reverb

from launch import checkpoints

COUNTS = {"actor_steps": 100, "episodes": 10, "trained_steps": 50, "walltime": 7.5}


class Replay:
    """Stands for a Reverb client: writes `items` into a staging folder, and deletes the last."""

    def __init__(self, staging: pathlib.Path) -> None:
        self.staging = staging
        self.items = 12
        self.breaks = False
        self._number = 0

    def server_info(self, timeout: int | None) -> dict[str, Any]:
        return {"r2d2": SimpleNamespace(current_size=self.items)}

    def checkpoint(self) -> str:
        folder = self.staging / str(self._number)
        self._number += 1
        folder.mkdir(parents=True)
        (folder / "chunks").write_text("half")
        if self.breaks:
            raise KeyboardInterrupt
        (folder / "chunks").write_text("x" * self.items)
        return str(folder)


class Place:
    """A checkpoint folder with a saver of it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.replays = [Replay(folder / "staging" / str(shard)) for shard in range(2)]
        self.replays[0].items = 7
        self.replays[1].items = 5
        self.learner = "weights"
        self.saver = self.new_saver(None)

    def new_saver(
        self, last: checkpoints.Manifest | None, agent: str = "r2d2"
    ) -> checkpoints.Saver:
        name = checkpoints.manifest_name(agent, paced_by="r2d2")
        return checkpoints.Saver(
            self.folder, agent, self._write_learner, self.replays, 10_000, last, name
        )

    def files(self) -> set[str]:
        whole = (p.relative_to(self.folder) for p in self.folder.rglob("*") if p.is_file())
        return {str(p) for p in whole if p.parts[0] != "staging"}

    def _write_learner(self, prefix: str) -> str:
        pathlib.Path(prefix + ".index").write_text("index")
        if self.learner == "breaks":
            raise KeyboardInterrupt
        pathlib.Path(prefix + ".data").write_text(self.learner)
        return prefix


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path)


def test_nothing_saved_is_no_error(tmp_path: pathlib.Path) -> None:
    assert checkpoints.read(tmp_path) is None


def test_a_manifest_says_what_was_saved(place: Place) -> None:
    manifest = place.saver.save(3, COUNTS, with_replay=True)
    read = checkpoints.read(place.folder)
    assert read is not None
    assert read == place.saver.last
    assert (read.agent, read.learner_step, read.learner) == ("r2d2", 3, "learner-r2d2/3")
    assert (read.actor_steps, read.episodes, read.trained_steps) == (100, 10, 50)
    assert read.walltime == 7.5
    assert (read.replay, read.replay_items) == (manifest.replay, 12)
    assert read.replay is not None
    assert read.replay.startswith("replay/3-")
    assert set(read.sizes) == place.files() - {"manifest.json"}
    assert read.sizes["learner-r2d2/3.data"] == len("weights")


def test_the_newest_learner_keeps_the_newest_replay(place: Place) -> None:
    first = place.saver.save(3, COUNTS, with_replay=True)
    second = place.saver.save(5, COUNTS, with_replay=False)
    assert second.learner_step == 5
    for name in ("replay", "replay_items", "replay_saved_at", "replay_seconds"):
        assert getattr(second, name) == getattr(first, name)
    assert place.files() == {
        "manifest.json",
        "learner-r2d2/5.index",
        "learner-r2d2/5.data",
        f"{first.replay}/0/chunks",
        f"{first.replay}/1/chunks",
    }


def test_a_run_without_replay_says_so(place: Place) -> None:
    manifest = place.saver.save(3, COUNTS, with_replay=False)
    assert (manifest.replay, manifest.replay_items) == (None, 0)
    assert checkpoints.read(place.folder) is not None


def test_what_is_superseded_goes_only_when_the_next_is_complete(place: Place) -> None:
    first = place.saver.save(3, COUNTS, with_replay=True)
    place.learner = "breaks"
    with pytest.raises(KeyboardInterrupt):
        place.saver.save(4, COUNTS, with_replay=True)
    read = checkpoints.read(place.folder)
    assert read is not None
    assert (read.learner_step, read.replay) == (3, first.replay)

    place.learner, place.replays[1].breaks = "more weights", True
    with pytest.raises(KeyboardInterrupt):
        place.saver.save(5, COUNTS, with_replay=True)
    read = checkpoints.read(place.folder)
    assert read is not None
    assert (read.learner_step, read.replay) == (5, first.replay)  # the learner was complete
    assert {f"{first.replay}/0/chunks", f"{first.replay}/1/chunks"} <= set(read.sizes)

    place.replays[1].breaks = False
    last = place.saver.save(6, COUNTS, with_replay=True)
    assert checkpoints.read(place.folder) == place.saver.last
    assert last.replay != first.replay
    assert place.files() == {
        "manifest.json",
        "learner-r2d2/6.index",
        "learner-r2d2/6.data",
        f"{last.replay}/0/chunks",
        f"{last.replay}/1/chunks",
    }


def test_steps_that_begin_alike_are_told_apart(place: Place) -> None:
    place.saver.save(1, COUNTS, with_replay=False)
    assert place.saver.save(10, COUNTS, with_replay=False).learner == "learner-r2d2/10"
    assert "learner-r2d2/1.data" not in place.files()
    assert "learner-r2d2/10.data" in place.files()
    assert checkpoints.read(place.folder) is not None


@pytest.mark.parametrize(
    ("last", "items", "seconds"),
    [
        (None, 0, 0.0),
        (None, 50_000, 5.0),  # 50,000 items of 10 kB at 100 MB/s
        ((100, 2.0), 50, 1.0),
        ((100, 2.0), 300, 6.0),
        ((0, 0.0), 50_000, 5.0),  # an empty replay says nothing of the speed
    ],
)
def test_the_time_to_write_replay_is_estimated(
    place: Place, last: tuple[int, float] | None, items: int, seconds: float
) -> None:
    manifest = None
    if last is not None:
        saved = place.saver.save(1, COUNTS, with_replay=True)
        manifest = checkpoints.Manifest(
            **{**vars(saved), "replay_items": last[0], "replay_seconds": last[1]}
        )
    place.replays[0].items, place.replays[1].items = items, 0
    assert place.new_saver(manifest).replay_seconds() == pytest.approx(seconds)


def test_a_resumed_saver_goes_on_from_its_manifest(place: Place) -> None:
    first = place.saver.save(3, COUNTS, with_replay=True)
    second = place.new_saver(checkpoints.read(place.folder)).save(4, COUNTS, with_replay=False)
    assert second.replay == first.replay
    assert checkpoints.read(place.folder) is not None


def test_a_second_learner_touches_nothing_but_its_own(place: Place) -> None:
    second = place.new_saver(None, "impala")
    second.save(1, COUNTS, with_replay=True)
    assert not (place.folder / "replay").exists()
    assert checkpoints.read(place.folder) is None

    first = place.saver.save(3, COUNTS, with_replay=True)
    text = (place.folder / checkpoints.MANIFEST).read_text()
    for step in (2, 9):
        manifest = second.save(step, COUNTS, with_replay=True)
        assert (manifest.replay, manifest.replay_items) == (None, 0)
    assert (place.folder / checkpoints.MANIFEST).read_text() == text
    read = checkpoints.read(place.folder, "manifest-impala.json")
    assert read is not None
    assert (read.agent, read.learner_step) == ("impala", 9)
    assert set(read.sizes) == {"learner-impala/9.index", "learner-impala/9.data"}

    last = place.saver.save(4, COUNTS, with_replay=True)
    assert last.replay != first.replay
    assert checkpoints.read(place.folder, "manifest-impala.json") == read
    assert place.files() == {
        "manifest.json",
        "manifest-impala.json",
        "learner-r2d2/4.index",
        "learner-r2d2/4.data",
        "learner-impala/9.index",
        "learner-impala/9.data",
        f"{last.replay}/0/chunks",
        f"{last.replay}/1/chunks",
    }


@pytest.mark.parametrize(
    "name", ["learner-r2d2/3.index", "learner-r2d2/3.data", "REPLAY/0/chunks", "REPLAY/1/chunks"]
)
def test_damage_is_noticed(place: Place, name: str) -> None:
    manifest = place.saver.save(3, COUNTS, with_replay=True)
    file = place.folder / name.replace("REPLAY", str(manifest.replay))
    size = file.stat().st_size
    file.write_text(file.read_text() + "!")
    with pytest.raises(checkpoints.CheckpointError, match=f"has {size + 1} bytes, .* {size}"):
        checkpoints.read(place.folder)
    file.unlink()
    with pytest.raises(checkpoints.CheckpointError, match="is missing"):
        checkpoints.read(place.folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"agent": "r2d2"}'])
def test_a_corrupt_manifest_is_an_error(place: Place, text: str) -> None:
    place.saver.save(3, COUNTS, with_replay=False)
    (place.folder / checkpoints.MANIFEST).write_text(text)
    with pytest.raises(checkpoints.CheckpointError, match=r"manifest\.json is corrupt"):
        checkpoints.read(place.folder)


def test_every_shard_comes_back_from_the_folder_that_the_manifest_names(
    tmp_path: pathlib.Path,
) -> None:
    def serve(replay: str | None) -> list[reverb.Server]:
        return [
            reverb.Server(
                [reverb.Table.queue("queue", max_size=10)],
                checkpointer=checkpoints.replay_checkpointer(tmp_path, replay, shard),
            )
            for shard in range(2)
        ]

    servers = serve(None)
    clients = [reverb.Client(f"localhost:{server.port}") for server in servers]
    saver = checkpoints.Saver(tmp_path, "r2d2", lambda prefix: prefix, clients, 1, None)
    for value in range(3):
        clients[0].insert([float(value)], {"queue": 1.0})
    first = saver.save(1, COUNTS, with_replay=True)
    clients[1].insert([3.0], {"queue": 1.0})
    second = saver.save(2, COUNTS, with_replay=True)
    clients[1].insert([4.0], {"queue": 1.0})
    assert (first.replay_items, second.replay_items) == (3, 4)
    for server in servers:
        server.stop()

    servers = serve(second.replay)
    for server, held in zip(servers, ([0.0, 1.0, 2.0], [3.0]), strict=True):
        client = reverb.Client(f"localhost:{server.port}")
        assert client.server_info()["queue"].current_size == len(held)
        samples = client.sample("queue", len(held), emit_timesteps=False)
        assert [float(sample.data[0]) for sample in samples] == held
    for server in servers:
        server.stop()
    assert json.loads((tmp_path / checkpoints.MANIFEST).read_text())["replay"] == second.replay
