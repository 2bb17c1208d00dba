"""One launch at a time writes a run folder, through no link and over no other kind of file."""

import errno
import fcntl
import os
import pathlib
import socket
from collections.abc import Callable, Iterator
from typing import IO

import pytest
from matplotlib.figure import Figure

from analysis.report.page import Page
from launch import train
from run_folder import places, run_lock
from run_folder.layout import RunFolder
from run_folder.settings import Settings, SettingsError
from tests.launch import typed
from tests.run_folder import saved_runs
from tests.run_folder.holding import Holder
from tests.run_folder.saving import COUNTS, Place, save_all

FOLDER = "must be a folder, and is a file: move it away."
FILE = "must be a file, and is a folder: move it away."


@pytest.mark.parametrize("run_dir", ["runs/pong[1]", "runs/what?", "a*/b", "c\\d"])
def test_no_checkpoint_is_written_where_tensorflow_would_not_find_it(run_dir: str) -> None:
    with pytest.raises(SettingsError, match=r"takes . in the path .* would not find it"):
        places.check_name(run_dir)
    for fine in ("runs/pong 1", "runs/ü", "gs://bucket/runs/x", "$x{1}", ""):
        places.check_name(fine)


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("logs", pathlib.Path.touch, FOLDER),
        ("checkpoints", pathlib.Path.touch, FOLDER),
        ("nodes", pathlib.Path.touch, FOLDER),
        ("logs/actor.csv", pathlib.Path.mkdir, FILE),
        ("events.out.tfevents.2", pathlib.Path.mkdir, FILE),
        ("launches.jsonl", pathlib.Path.mkdir, FILE),
        ("config.json", pathlib.Path.mkdir, FILE),
    ],
)
def test_it_is_named(
    name: str, make: Callable[[pathlib.Path], None], said: str, tmp_path: pathlib.Path
) -> None:
    places.check(RunFolder(tmp_path))  # of a run that begins, nothing is there
    (tmp_path / name).parent.mkdir(exist_ok=True)
    make(tmp_path / name)
    with pytest.raises(SettingsError) as refused:
        places.check(RunFolder(tmp_path))
    assert str(refused.value) == f"{tmp_path / name} {said}"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Settings]]:
    """The runs that would have been started."""
    yield typed.instead_of_starting(monkeypatch)
    run_lock.release()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    saved_runs.save(folder)
    for name in ("logs", "nodes"):
        (folder / name).mkdir()
    return folder


PLACES = {  # of what a run writes -> whether it is a folder
    "lock": False,
    "launches.jsonl": False,
    "events.out.tfevents.1": False,
    "logs/actor.csv": False,
    "nodes/crash.txt": False,
    "checkpoints/learner-r2d2/3.index": False,
    "checkpoints/replay": True,
    "checkpoints/staging": True,
}
RESUME = ("--resume",)
REFUSED_OTHERWISE = [(*RESUME, "--env=memory:recall"), ("--agent=r2d2", "--env=catch")]


@pytest.mark.parametrize(
    ("place", "argv"),
    [*((place, RESUME) for place in PLACES), *(("lock", argv) for argv in REFUSED_OTHERWISE)],
)
def test_no_launch_writes_through_a_link(
    place: str, argv: tuple[str, ...], saved: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    target = tmp_path / "theirs"
    if PLACES[place]:
        target.mkdir()
    (target / "notes.txt" if PLACES[place] else target).write_text("theirs")
    linked = tmp_path / "run"
    linked.symlink_to(saved)  # the run folder itself may be a link
    (saved / place).symlink_to(target)
    before = typed.contents(saved), typed.contents(tmp_path)
    try:
        said = typed.refused(train.main, f"--run_dir={linked}", *argv)
        assert (typed.contents(saved), typed.contents(tmp_path)) == before
    finally:
        (saved / place).unlink()
    if argv == RESUME:
        assert f"run/{place} is a link to {target}, where nothing" in said


@pytest.mark.parametrize("place", ["index.html", "returns.png"])
def test_no_page_is_written_through_a_link(place: str, tmp_path: pathlib.Path) -> None:
    theirs, folder = tmp_path / "theirs", tmp_path / "report"
    theirs.write_text("theirs")
    folder.mkdir()
    (folder / place).symlink_to(theirs)
    page = Page("A run", folder)
    page.figures["returns"] = Figure(), ()
    with pytest.raises(SettingsError, match=f"report/{place} is a link to"):
        page.write()
    assert theirs.read_text() == "theirs"


def test_what_no_saver_wrote_stays(tmp_path: pathlib.Path) -> None:
    place = Place(tmp_path / "checkpoints")
    names = ("learner-r2d2/notes.txt", "learner-r2d2/5.txt", "learner-r2d2/manifest-old.json")
    theirs = [place.folder / name for name in (*names, "replay/mine/chunks", "replay/notes.txt")]
    elsewhere = tmp_path / "elsewhere"
    for path in (*theirs, elsewhere / "chunks"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs")
    (place.folder / "replay" / "1-1").symlink_to(elsewhere)
    for step in (3, 5):
        save_all(place.saver, step, COUNTS)
    assert {path.read_text() for path in (*theirs, elsewhere / "chunks")} == {"theirs"}
    assert len(list((place.folder / "replay").iterdir())) == 4  # with the newest


def test_a_run_that_is_running_is_neither_resumed_nor_touched(
    tmp_path: pathlib.Path, started: list[Settings]
) -> None:
    saved_runs.save(tmp_path / "run")
    (tmp_path / "run" / "nodes").mkdir()
    for name in ("progress.json", "crash.txt", "stop"):
        (tmp_path / "run" / "nodes" / name).write_text("{}")
    argv = (f"--run_dir={tmp_path / 'run'}", "--resume")
    with Holder(tmp_path / "run") as holder:
        before = typed.contents(tmp_path / "run")
        said = f"is being run by process {holder.pid} on {socket.gethostname()}: end that run first"
        assert said in typed.refused(train.main, *argv)
        assert typed.contents(tmp_path / "run") == before
        assert not started
    assert typed.run(train.main, *argv) == 0
    assert len(started) == 1


@pytest.mark.parametrize("forks", [False, True])
def test_two_runs_do_not_share_a_folder_and_a_fork_that_lives_on_holds_no_lock(
    forks: bool, tmp_path: pathlib.Path
) -> None:
    with Holder(tmp_path, forks=forks), pytest.raises(SettingsError, match="is being run by"):
        run_lock.take(tmp_path)
    run_lock.take(tmp_path)
    run_lock.take(tmp_path)  # it has it


def test_whether_another_process_runs_a_folder_can_be_asked(tmp_path: pathlib.Path) -> None:
    run_lock.take_if_there(tmp_path)  # nobody ever ran it
    assert not run_lock.is_held(tmp_path)
    assert os.listdir(tmp_path) == []
    with Holder(tmp_path):
        before = (tmp_path / "lock").read_bytes()
        assert run_lock.is_held(tmp_path)
        assert run_lock.is_held(tmp_path)
        assert (tmp_path / "lock").read_bytes() == before
    assert not run_lock.is_held(tmp_path)


def test_somebodys_own_file_of_that_name_stays(tmp_path: pathlib.Path) -> None:
    (tmp_path / "lock").write_bytes(b"\xff of my own")
    with pytest.raises(SettingsError, match="lock is no lock of a run: move it, or name another"):
        run_lock.take(tmp_path)
    assert (tmp_path / "lock").read_bytes() == b"\xff of my own"


def test_who_only_asks_needs_no_right_to_write(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lock").touch()
    modes, usual = [], pathlib.Path.open

    def opened(path: pathlib.Path, mode: str = "r") -> IO[str]:
        modes.append(mode)
        return usual(path, mode)

    monkeypatch.setattr(pathlib.Path, "open", opened)  # the superuser may write anything
    assert not run_lock.is_held(tmp_path)
    assert modes == ["r"]


def test_a_file_system_without_locks_is_named_and_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    run_lock.take(tmp_path)
    assert f"The file system of {tmp_path} has no locks" in capsys.readouterr().err
    assert not run_lock.is_held(tmp_path)  # as far as can be known
