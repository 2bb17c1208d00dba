"""A run that is killed while it saves loses nothing that was whole, and leaves nothing behind."""

import json
import pathlib
import subprocess
import sys

import pytest

_SEED = 0
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
