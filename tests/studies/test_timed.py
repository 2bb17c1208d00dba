"""Commands that are given so many minutes."""

import dataclasses
import pathlib
import subprocess

import pytest

from run_folder import checkpoints
from run_folder.layout import RunFolder
from studies import timed
from tests.run_folder.manifests import MANIFEST

_WAITS = """
import pathlib, signal, sys, time

def end(*_):
    pathlib.Path(sys.argv[1]).write_text("in order")
    sys.exit(int(sys.argv[2]))

signal.signal(signal.SIGTERM, end)
pathlib.Path(sys.argv[1]).write_text("begun")
time.sleep(60)
"""


@pytest.fixture
def waits(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """What a module of that name writes: first that it has begun, then that it ends in order."""
    (tmp_path / "waits.py").write_text(_WAITS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "written"


def test_it_ends_in_order_after_its_minutes(waits: pathlib.Path) -> None:
    timed.run(["waits", str(waits), "0"], minutes=0.05)
    assert waits.read_text() == "in order"


def test_it_may_have_all_its_time_and_something_before_it(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    timed.run(["calendar", "2026", "11"], None, ("nice", "-n", "3"))
    out = capfd.readouterr().out
    assert "python -m calendar 2026 11" in out
    assert "November 2026" in out


def test_what_fails_is_told(waits: pathlib.Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        timed.run(["waits", str(waits), "5"], minutes=0.05)
    assert failed.value.returncode == 5


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, (["--resume"], 10.0)),  # killed before anything was saved
        (150.0, (["--resume"], 7.5)),
        (540.0, (["--resume"], 1.0)),
        (541.0, None),
        (700.0, None),
    ],
)
def test_a_training_that_was_cut_short_goes_on_for_what_is_left(
    seconds: float | None,
    told: tuple[list[str], float] | None,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[list[str], float]] = []

    def run(arguments: list[str], minutes: float, before: tuple[str, ...]) -> None:
        assert (arguments[:2], before) == (["launch.train", f"--run_dir={tmp_path}"], ("nice",))
        asked.append((arguments[2:], minutes))

    monkeypatch.setattr(timed, "run", run)
    timed.train(tmp_path, ["--env=catch"], 10.0, ("nice",))
    assert asked.pop() == (["--env=catch"], 10.0)
    folder = RunFolder(tmp_path)
    folder.config.write_text("{}")
    if seconds is not None:
        manifest = dataclasses.replace(MANIFEST, walltime=seconds)
        folder.checkpoints.mkdir()
        checkpoints.write(folder.checkpoints, checkpoints.MANIFEST, manifest)
    timed.train(tmp_path, ["--env=catch"], 10.0, ("nice",))
    assert asked == ([told] if told else [])
