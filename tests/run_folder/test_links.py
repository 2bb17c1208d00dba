"""What is somebody's own is neither written nor removed: not by a link, nor by where it is."""

import pathlib
from collections.abc import Iterator

import pytest
from matplotlib.figure import Figure

from analysis.report.page import Page
from launch import train
from run_folder import run_lock
from run_folder.settings import SettingsError
from tests.launch import typed
from tests.run_folder import saved_runs
from tests.run_folder.saving import COUNTS, Place


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    typed.instead_of_starting(monkeypatch)
    yield
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
    place: str,
    argv: tuple[str, ...],
    saved: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
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
        assert typed.run(train.main, f"--run_dir={linked}", *argv) == 2
        assert (typed.contents(saved), typed.contents(tmp_path)) == before
    finally:
        (saved / place).unlink()
    if argv == RESUME:
        assert f"run/{place} is a link to {target}, where nothing" in capsys.readouterr().err


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
        place.saver.save(step, COUNTS, with_replay=True)
    assert {path.read_text() for path in (*theirs, elsewhere / "chunks")} == {"theirs"}
    assert len(list((place.folder / "replay").iterdir())) == 4  # with the newest
