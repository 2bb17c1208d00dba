"""Commands that are given so many minutes."""

import pathlib
import subprocess

import pytest

from studies import timed

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
