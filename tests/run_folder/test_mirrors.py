"""A run folder in a bucket: what goes there, in which order, and what comes back."""

import itertools
import pathlib

import pytest
import tensorflow as tf

from run_folder import layout, mirrors
from run_folder.buckets import InBucket
from run_folder.mirrors import Mirror
from run_folder.replay_files import DONE, ReplayFiles, ship

_numbers = itertools.count()


@pytest.fixture
def url() -> str:
    """A bucket in memory, by the same file system that reaches one of Google's."""
    root = f"ram://bucket-{next(_numbers)}/run"
    for folder in ("logs", "nodes", "checkpoints/learner-r2d2"):  # which a bucket need not be told
        tf.io.gfile.makedirs(f"{root}/{folder}")
    return root


@pytest.fixture(autouse=True)
def overwriting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces files in memory, to which TensorFlow would append, as a bucket does."""
    copy = tf.io.gfile.copy

    def replace(here: str, there: str, *, overwrite: bool) -> None:
        assert overwrite
        if there.startswith("ram://") and tf.io.gfile.exists(there):
            tf.io.gfile.remove(there)
        copy(here, there, overwrite=True)

    monkeypatch.setattr(tf.io.gfile, "copy", replace)


def _write(mirror: Mirror, name: str, text: str) -> None:
    (mirror.path / name).parent.mkdir(parents=True, exist_ok=True)
    (mirror.path / name).write_text(text)


def _read(url: str) -> dict[str, str]:
    found = {}
    for folder, _, files in tf.io.gfile.walk(url):
        for file in files:
            path = f"{folder.rstrip('/')}/{file}"
            with tf.io.gfile.GFile(path) as opened:
                found[path.removeprefix(f"{url}/")] = opened.read()
    return found


def test_a_folder_on_disk_is_its_own_mirror(tmp_path: pathlib.Path) -> None:
    mirror = mirrors.of(str(tmp_path))
    assert mirror.path == layout.local(str(tmp_path)) == tmp_path
    mirror.fetch("*")
    assert mirror.push(checkpoints=True)
    assert not layout.is_bucket(str(tmp_path))


def test_what_is_written_changed_and_removed_here_is_so_there(url: str) -> None:
    mirror = InBucket(url)
    _write(mirror, "config.json", "first")
    _write(mirror, "logs/actor.csv", "a\n")
    _write(mirror, "nodes/progress.json.new", "half")
    assert mirror.push()
    assert _read(url) == {"config.json": "first", "logs/actor.csv": "a\n"}
    _write(mirror, "logs/actor.csv", "a\nb\n")
    (mirror.path / "config.json").unlink()
    assert mirror.push()
    assert _read(url) == {"logs/actor.csv": "a\nb\n"}


def test_another_process_goes_on_with_what_it_fetches_and_leaves_the_rest(url: str) -> None:
    first = InBucket(url)
    layout.local.cache_clear()  # as of another process
    second = InBucket(url)
    _write(first, "logs/actor.csv", "a\n")
    _write(first, "logs/learner.csv", "l\n")
    assert first.push()
    second.fetch("logs/actor.csv")
    assert {path.name for path in (second.path / "logs").iterdir()} == {"actor.csv"}
    with (second.path / "logs/actor.csv").open("a") as file:
        file.write("b\n")
    assert second.push(checkpoints=True)
    assert _read(url) == {"logs/actor.csv": "a\nb\n", "logs/learner.csv": "l\n"}


def test_checkpoints_wait_for_their_writer_and_manifests_come_last(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = InBucket(url)
    order: list[str] = []
    names = [
        "checkpoints/learner-r2d2/3.index",
        "checkpoints/learner-r2d2/manifest-3.json",
        "checkpoints/manifest.json",
    ]
    for name in reversed(names):
        _write(mirror, name, "x")
    _write(mirror, "checkpoints/staging/0/1/chunks", "x")
    assert mirror.push()
    assert _read(url) == {}
    copy = tf.io.gfile.copy

    def note(here: str, there: str, **options: bool) -> None:
        order.append(there)
        copy(here, there, **options)

    monkeypatch.setattr(tf.io.gfile, "copy", note)
    assert mirror.push(checkpoints=True)
    assert order == [f"{url}/{name}" for name in names]


def test_what_could_not_be_written_is_written_the_next_time(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = InBucket(url)
    _write(mirror, "config.json", "x")

    def fail(*_: object, **__: object) -> None:
        raise tf.errors.UnavailableError(None, None, "the network is away")

    with monkeypatch.context() as patched:
        patched.setattr(tf.io.gfile, "copy", fail)
        assert not mirror.push()
    assert "the network is away" in capsys.readouterr().err
    assert mirror.push()
    assert _read(url) == {"config.json": "x"}


def test_a_shipped_replay_is_moved_and_the_superseded_one_goes(
    url: str, tmp_path: pathlib.Path
) -> None:
    replays = ReplayFiles(f"{url}/checkpoints")
    for step in (3, 5):
        for shard in range(2):
            staged = tmp_path / str(step) / str(shard)
            staged.mkdir(parents=True)
            (staged / DONE).touch()
            (staged / "chunks").write_text("x" * step)
            ship(staged, f"{url}/checkpoints/staging/{shard}/{shard}")
        replays.take([f"/elsewhere/{shard}" for shard in range(2)], f"replay/{step}-1")
    assert replays.sizes("replay/5-1") == {
        **{f"replay/5-1/{shard}/chunks": 5 for shard in range(2)},
        **{f"replay/5-1/{shard}/{DONE}": 0 for shard in range(2)},
    }
    replays.remove_others("replay/5-1")
    assert set(_read(url)) == {f"checkpoints/{name}" for name in replays.sizes("replay/5-1")}
