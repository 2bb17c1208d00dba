"""One manifest names a learner and the replay that belongs to it, whatever is cut short."""

import contextlib
import dataclasses
import errno
import itertools
import json
import math
import pathlib
import re
import resource
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
import reverb
import tensorflow as tf

from run_folder import checkpoints, disk, launches, replay_files, saver
from run_folder.checkpoints import Manifest
from tests.run_folder import power
from tests.run_folder.saving import COUNTS, Place, save_all, saved_in


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    return Place(tmp_path)


def test_the_newest_learner_keeps_the_newest_replay(place: Place) -> None:
    first = save_all(place.saver, 3, COUNTS)
    second = place.saver.save(5, COUNTS)
    assert second.learner_step == 5
    for name in ("replay", "replay_items", "replay_saved_at", "replay_seconds"):
        assert getattr(second, name) == getattr(first, name)
    assert place.files() == {
        "manifest.json",
        *Place.learner_files("r2d2", 3, 5),
        f"{first.replay}/0/chunks",
        f"{first.replay}/1/chunks",
    }


def test_what_is_superseded_goes_only_when_the_next_is_complete(place: Place) -> None:
    first = save_all(place.saver, 3, COUNTS)
    place.learner = "breaks"
    with pytest.raises(KeyboardInterrupt):
        save_all(place.saver, 4, COUNTS)
    read = saved_in(place.folder)
    assert (read.learner_step, read.replay) == (3, first.replay)
    assert (place.folder / "learner-r2d2" / "4.index").exists()
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3]

    place.learner, place.replays[1].breaks = "more weights", True
    with pytest.raises(KeyboardInterrupt):
        save_all(place.saver, 5, COUNTS)
    read = saved_in(place.folder)
    assert (read.learner_step, read.replay) == (5, first.replay)  # the learner was complete
    assert {f"{first.replay}/0/chunks", f"{first.replay}/1/chunks"} <= set(read.sizes)

    place.replays[1].breaks = False
    last = save_all(place.saver, 6, COUNTS)
    assert checkpoints.read(place.folder) == place.saver.last
    assert last.replay != first.replay
    assert place.files() == {
        "manifest.json",
        *Place.learner_files("r2d2", 3, 5, 6),
        f"{last.replay}/0/chunks",
        f"{last.replay}/1/chunks",
    }


FAILURES = {
    "disk": OSError(errno.ENOSPC, "No space left on device"),
    "tensorflow": tf.errors.ResourceExhaustedError(None, None, "r/3.data; No space left on device"),
    "reverb": IndexError("r/chunks.tfrecord; No space left on device"),
    "server": RuntimeError("Socket closed"),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("what", ["learner", "replay"])
def test_a_save_that_fails_leaves_the_last_one_and_no_half(
    place: Place, what: str, failure: str
) -> None:
    first = save_all(place.saver, 3, COUNTS)
    before = place.files()
    if what == "learner":
        place.learner = FAILURES[failure]
    else:
        place.replays[1].fails_with = FAILURES[failure]
    with pytest.raises(saver.SaveError, match=f"^The {what}.* could not be saved: .*\\.$"):
        save_all(place.saver, 4, COUNTS)
    assert not list((place.folder / "staging").glob("*/*"))
    read = saved_in(place.folder)
    assert read.replay == first.replay
    if what == "learner":
        assert (place.files(), read.learner_step) == (before, 3)
    else:
        assert (place.files() - before, read.learner_step) == ({*Place.learner_files("r2d2", 4)}, 4)
    place.learner, place.replays[1].fails_with = "weights", None
    assert save_all(place.saver, 5, COUNTS).replay != first.replay
    assert checkpoints.read(place.folder) == place.saver.last


def test_a_learner_that_is_named_stays_though_it_could_not_be_kept(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.saver.save(3, COUNTS)

    def keep(*_: Any) -> None:
        raise FAILURES["disk"]

    with monkeypatch.context() as full:
        full.setattr(checkpoints, "keep", keep)
        with pytest.raises(saver.SaveError):
            place.saver.save(4, COUNTS)
    for resumed in (place.saver, place.new_saver(saved_in(place.folder))):
        assert saved_in(place.folder).learner_step == 4
        place.learner = FAILURES["disk"]
        with pytest.raises(saver.SaveError):
            resumed.save(5, COUNTS)
    assert saved_in(place.folder).learner_step == 4
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3]


@pytest.mark.parametrize("learner", ["more weights", FAILURES["disk"]])
@pytest.mark.parametrize("when", ["written", "moved"])
def test_a_learner_that_is_saved_meanwhile_leaves_a_replay_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch, when: str, learner: str | Exception
) -> None:
    """In between, no manifest names that replay, and the learner may fail to be saved."""
    first = save_all(place.saver, 3, COUNTS)
    place.learner = learner

    def save() -> None:
        with contextlib.suppress(saver.SaveError):
            place.saver.save(4, COUNTS)

    part: Any = place.replays[1] if when == "written" else place.saver._replays
    name = "checkpoint" if when == "written" else "take"
    call = getattr(part, name)

    def call_and_save(*args: Any) -> Any:
        found = call(*args)
        save()
        return found

    monkeypatch.setattr(part, name, call_and_save)
    place.saver.save_replay()
    read = saved_in(place.folder)
    assert read.learner_step == (4 if isinstance(learner, str) else 3)
    assert read.replay is not None
    assert read.replay != first.replay
    assert sum(name.startswith(read.replay) for name in read.sizes) == 2
    assert [path.name for path in (place.folder / "replay").iterdir()] == [read.replay[7:]]


def test_a_replay_for_which_there_is_no_space_is_not_begun(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = save_all(place.saver, 3, COUNTS)  # 12 items in 12 bytes
    place.replays[0].items = 15
    left = disk.Free(21, math.inf)  # and 22 bytes are needed
    monkeypatch.setattr(disk, "free", lambda _: left)
    with pytest.raises(saver.SaveError, match=r"about 0 MB beside the last one, and .* room for 0"):
        save_all(place.saver, 4, COUNTS)
    assert place.saver.last is not None
    assert (place.saver.last.learner_step, place.saver.last.replay) == (4, first.replay)
    left = disk.Free(23, 3)  # and 4 files and folders are
    with pytest.raises(saver.SaveError, match=r"about 4 files and folders beside .* room for 3"):
        save_all(place.saver, 5, COUNTS)
    left = disk.Free(23, 4)
    assert save_all(place.saver, 6, COUNTS).replay != first.replay


def test_what_a_failed_save_says_is_what_failed_where_and_what_is_full(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow's own words name a node of its graph and a file of a moment."""
    checkpoint = tf.train.Checkpoint(weights=tf.Variable(tf.zeros(1_000)))
    monkeypatch.setattr(place.saver, "_write_learner", checkpoint.write)
    monkeypatch.setattr(disk, "free", lambda _: disk.Free(5e9, 3))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(saver.SaveError) as error:
            place.saver.save(3, COUNTS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(error.value) == (
        f"The learner at update 3 could not be saved: {place.folder}/learner-r2d2/3; File too "
        f"large. The disk of {place.folder} is full (inodes for 3 more files are free)."
    )


def test_a_learner_that_is_written_already_is_not_touched(place: Place) -> None:
    """TensorFlow would write it in place."""
    first = place.saver.save(3, COUNTS)
    place.learner = "breaks"
    second = save_all(place.saver, 3, COUNTS)
    assert (first.replay, second.replay_items) == (None, 12)
    assert checkpoints.read(place.folder) == place.saver.last


def test_a_run_that_went_back_keeps_nothing_that_it_undid_and_writes_over_nothing_named(
    place: Place,
) -> None:
    for step in (3, 5, 10):
        save_all(place.saver, step, COUNTS)
    back = checkpoints.read_kept(place.folder, "r2d2", 3)
    resumed = place.new_saver(back)
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3, 5, 10]  # until it saves
    place.learner = "breaks"
    with pytest.raises(KeyboardInterrupt):
        resumed.save(5, COUNTS)
    assert checkpoints.read(place.folder) == back
    assert checkpoints.kept_steps(place.folder, "r2d2") == [3, 10]
    place.learner = "other weights"
    place.new_saver(back).save(5, COUNTS)
    last = saved_in(place.folder)
    assert last.sizes["learner-r2d2/5.data"] == len("other weights")
    assert place.files() == {"manifest.json", *Place.learner_files("r2d2", 3, 5)}


def test_steps_that_begin_alike_are_told_apart(place: Place) -> None:
    place.saver.save(1, COUNTS)
    manifest = place.saver.save(10, COUNTS)
    assert manifest.learner == "learner-r2d2/10"
    read = saved_in(place.folder)
    assert set(read.sizes) == {"learner-r2d2/10.index", "learner-r2d2/10.data"}


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
        items_then, seconds_then = last
        manifest = dataclasses.replace(
            save_all(place.saver, 1, COUNTS), replay_items=items_then, replay_seconds=seconds_then
        )
    place.replays[0].items, place.replays[1].items = items, 0
    assert place.new_saver(manifest).replay_seconds() == pytest.approx(seconds)


def test_a_clock_that_is_set_back_makes_no_save_negative(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = (1.8e9 - 3_600 * hours for hours in itertools.count())
    monkeypatch.setattr(time, "time", lambda: next(wall))
    for step in (3, 4):
        save_all(place.saver, step, COUNTS)
        read = saved_in(place.folder)  # which refuses negative seconds
        assert read.learner_step == read.replay_step == step


def test_a_second_learner_touches_nothing_but_its_own(place: Place) -> None:
    second = place.new_saver(None, "impala")
    save_all(second, 1, COUNTS)
    assert not (place.folder / "replay").exists()
    assert checkpoints.read(place.folder) is None

    first = save_all(place.saver, 3, COUNTS)
    text = (place.folder / checkpoints.MANIFEST).read_text()
    for step in (2, 9):
        manifest = save_all(second, step, COUNTS)
        assert (manifest.replay, manifest.replay_items) == (None, 0)
    assert (place.folder / checkpoints.MANIFEST).read_text() == text
    read = saved_in(place.folder, "manifest-impala.json")
    assert (read.agent, read.learner_step) == ("impala", 9)
    assert set(read.sizes) == {"learner-impala/9.index", "learner-impala/9.data"}

    last = save_all(place.saver, 4, COUNTS)
    assert last.replay != first.replay
    assert checkpoints.read(place.folder, "manifest-impala.json") == read
    assert place.files() == {
        "manifest.json",
        "manifest-impala.json",
        *Place.learner_files("r2d2", 3, 4),
        *Place.learner_files("impala", 1, 2, 9),
        f"{last.replay}/0/chunks",
        f"{last.replay}/1/chunks",
    }


def test_a_flipped_bit_in_a_saved_replay_is_found_and_its_file_named(
    tmp_path: pathlib.Path,
) -> None:
    server = reverb.Server(
        [reverb.Table.queue("queue", max_size=100)],
        checkpointer=saver.replay_checkpointer(tmp_path, None, 0),
    )
    client = reverb.Client(f"localhost:{server.port}")
    for value in range(100):
        client.insert([float(value)], {"queue": 1.0})
    replay = tmp_path / pathlib.Path(client.checkpoint()).relative_to(tmp_path)
    server.stop()
    replay_files.check_records(replay)
    chunks = replay / "chunks.tfrecord"
    whole, said = chunks.read_bytes(), list[str]()
    records = _records(chunks)
    for at in range(2, len(whole), 311):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        chunks.write_bytes(damaged)
        try:
            replay_files.check_records(replay)
        except checkpoints.DamagedError as error:
            said.append(str(error))
        else:
            assert _records(chunks) == records  # few bits of a compressed file mean nothing
    assert len(said) > len(whole) // 311 / 2
    for sentence in said:
        assert re.search(r"chunks.tfrecord: [^{\[]*\.$", sentence)


def test_a_saved_replay_of_other_columns_is_told_from_one_of_the_same(
    tmp_path: pathlib.Path,
) -> None:
    def table(name: str = "queue", **columns: tf.TensorSpec) -> reverb.Table:
        return reverb.Table.queue(name, max_size=100, signature=columns)

    number, pair = tf.TensorSpec([], tf.float32), tf.TensorSpec([2], tf.float32)
    small, large = (tf.TensorSpec([None], tf.string, name=f"uint8({n}, {n})") for n in (3, 4))
    server = reverb.Server(
        [
            table(a=number, b=pair),
            table("other", a=number),
            table("frames", a=small),
            reverb.Table.queue("any", 10),
        ],
        checkpointer=saver.replay_checkpointer(tmp_path, None, 0),
    )
    replay = pathlib.Path(reverb.Client(f"localhost:{server.port}").checkpoint())
    server.stop()
    replay_files.check_columns(replay, [table(a=number, b=pair), table("other", a=number)])
    replay_files.check_columns(replay, [table("other", a=number), table("any", a=number)])
    replay_files.check_columns(replay, [table("frames", a=small)])
    whole = tf.TensorSpec([2], tf.int32)
    for wrong in (
        table("third", a=number),
        table(a=number),
        table(a=number, b=number),
        table(a=number, b=whole),
        table(a=number, c=pair),
        table(a=number, b=pair, c=pair),
        table("frames", a=large),
    ):
        with pytest.raises(checkpoints.DamagedError, match=rf"table '{wrong.name}' has other"):
            replay_files.check_columns(replay, [wrong])


def _records(file: pathlib.Path) -> list[bytes]:
    return list(tf.data.TFRecordDataset(str(file), "ZLIB").as_numpy_iterator())


def test_a_save_that_is_cut_off_leaves_this_checkpoint_or_the_one_before(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "NUM_KEPT", 3)  # so that some go
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    log = run / "logs" / "episodes.csv"
    log.touch()
    fragile, place = power.Disk(run, monkeypatch), Place(run / "checkpoints")
    saved: list[Manifest] = []
    seen = 0
    went_back = 3  # to the second, and then saves a third anew
    for number, step in enumerate((2, 4, 6, 6, 8)):
        if number == went_back:
            place.saver = place.new_saver(checkpoints.without_replay(saved[-2]))
        place.learner = f"weights {number}"
        place.replays[0].items = 7 + number
        with log.open("a") as rows:
            rows.write(f"{step}\n")
        known = saved[-2 if number == went_back else -1 :]
        save = save_all if number % 3 != 1 else saver.Saver.save
        saved.append(save(place.saver, step, COUNTS))
        images = fragile.images()
        for image in images[seen:]:
            found = _found(image, tmp_path / f"image-{seen}")
            steps = {step, *(manifest.learner_step for manifest in known)}
            assert found.learner_step in steps if found else number == 0
            seen += 1
        assert found == saved[-1]
        assert images[-1]["logs/episodes.csv"] == log.read_bytes()
    assert seen > 50


def _found(image: power.Image, folder: pathlib.Path) -> Manifest | None:
    """The checkpoint that a run would go on from; fails unless it and all kept ones are whole."""
    power.write(image, folder)
    if not (folder / "checkpoints").exists():
        return None
    for step in checkpoints.kept_steps(folder / "checkpoints", "r2d2"):
        checkpoints.read_kept(folder / "checkpoints", "r2d2", step)
    return checkpoints.read(folder / "checkpoints")


def test_a_file_that_is_replaced_is_the_old_one_or_the_new_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    path = run / "config.json"
    path.write_text("old")
    fragile = power.Disk(run, monkeypatch)
    disk.write(path, "new")
    *before, last, also_last = [image["config.json"] for image in fragile.images()]
    assert set(before) == {b"old", b"new"}
    assert last == also_last == b"new"
    launches.record(run, ["--resume"], actor_steps=0, walltime=0.0)
    assert fragile.images()[-1]["launches.jsonl"] == (run / "launches.jsonl").read_bytes()


class _Enough(Exception):
    """Ends what goes on for ever."""


def test_shipping_goes_on_where_a_checkpoint_is_gone_meanwhile(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reverb removes it once it has written the next."""
    asked: list[str] = []

    def ship(folder: pathlib.Path, to: str) -> None:
        asked.append(to)
        if len(asked) == 1:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(folder))

    def sleep(_: float) -> None:
        if len(asked) == 2:
            raise _Enough

    monkeypatch.setattr(replay_files, "ship", ship)
    monkeypatch.setattr(replay_files, "time", SimpleNamespace(sleep=sleep))
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / replay_files.DONE).touch()
    with pytest.raises(_Enough):
        replay_files._ship_for_ever(tmp_path, "gs://bucket")
    assert asked == ["gs://bucket/7"] * 2
    said = capsys.readouterr().err
    assert said.startswith("gs://bucket/7 could not be written: ")
    assert said.endswith("7: No such file or directory.\n")


_SEED = 7  # of which the first launches go back, and leave something, on any machine
_SECONDS = 600  # on a busy machine


@pytest.mark.parametrize("launches", [8, pytest.param(51, marks=pytest.mark.slow)])
def test_kills_amid_saves_leave_a_whole_run_each_time(
    tmp_path: pathlib.Path, launches: int
) -> None:
    """`tests.run_folder.killing` goes on from what each kill has left, and checks it."""
    command = [sys.executable, "-m", "tests.run_folder.killing", str(tmp_path / "run")]
    ended = subprocess.run(
        [*command, str(launches), str(_SEED)],
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(found) == launches
    assert sum(launch["saves"] > 0 for launch in found) > launches // 5  # nothing was left behind
    assert any(launch["left"] for launch in found)  # that a save was cut short
    assert any(launch["back"] for launch in found)
