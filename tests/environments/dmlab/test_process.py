"""The folder of compiled maps, shared by many engines' processes."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from environments.dmlab import process
from environments.dmlab.process import LevelCache


def _file(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def test_a_copy_of_what_was_written_is_fetched(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.pk3"
    cache = LevelCache(tmp_path / "deep" / "maps")
    assert cache.fetch("maze_1", str(wanted)) is False
    assert not wanted.exists()
    cache.write("maze_1", _file(tmp_path / "compiled.pk3", b"walls"))
    for reader in (cache, LevelCache(tmp_path / "deep" / "maps")):
        assert reader.fetch("maze_1", str(wanted)) is True
        assert wanted.read_bytes() == b"walls"
        wanted.write_bytes(b"trodden")
    assert cache.fetch("maze_2", str(wanted)) is False


def test_only_whole_maps_are_ever_fetched(tmp_path: Path) -> None:
    cache = LevelCache(tmp_path / "maps")
    size = 2_000_000

    def write(turn: int) -> None:
        cache.write("maze", _file(tmp_path / f"compiled{turn}.pk3", bytes([turn % 2]) * size))

    def fetch(turn: int) -> bytes:
        wanted = tmp_path / f"wanted{turn}.pk3"
        return wanted.read_bytes() if cache.fetch("maze", str(wanted)) else b""

    write(0)
    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, turn) for turn in range(20)]
        fetched = list(pool.map(fetch, range(20)))
    assert all(done.exception() is None for done in writing)
    assert {(len(whole), len(set(whole))) for whole in fetched} == {(size, 1)}
    assert [path.name for path in (tmp_path / "maps").iterdir()] == ["maze"]


def test_a_full_cache_loses_what_was_not_used_for_longest(tmp_path: Path) -> None:
    cache = LevelCache(tmp_path / "maps", max_bytes=30)
    wanted = str(tmp_path / "wanted.pk3")
    for second, key in enumerate("abc"):
        cache.write(key, _file(tmp_path / "compiled.pk3", b"0123456789"))
        os.utime(tmp_path / "maps" / key, (second, second))
    assert cache.fetch("a", wanted)  # it is the newest now
    cache.write("d", _file(tmp_path / "compiled.pk3", b"0123456789abcdef"))
    assert [cache.fetch(key, wanted) for key in "abcd"] == [True, False, False, True]


def test_a_map_that_cannot_be_kept_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_the_way = _file(tmp_path / "maps", b"a file, not a folder")
    LevelCache(Path(in_the_way)).write("maze", _file(tmp_path / "compiled.pk3", b"walls"))
    assert "The map maze could not be cached" in capsys.readouterr().err
    LevelCache(tmp_path / "other").write("maze", str(tmp_path / "gone.pk3"))
    assert "The map maze could not be cached" in capsys.readouterr().err
    assert not list((tmp_path / "other").iterdir())  # nor half of it


def test_a_map_that_cannot_be_read_is_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "maze").mkdir()  # as little to be read as another user's file
    assert LevelCache(tmp_path).fetch("maze", str(tmp_path / "wanted.pk3")) is False


@pytest.mark.parametrize(
    ("caches", "folder"), [("/caches", "/caches"), (None, "/home/a/.cache"), ("", "/home/a/.cache")]
)
def test_the_users_own_folder(
    monkeypatch: pytest.MonkeyPatch, caches: str | None, folder: str
) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if caches is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", caches)
    assert process.default_cache() == Path(folder, "recurrent-replay/dmlab-levels")
