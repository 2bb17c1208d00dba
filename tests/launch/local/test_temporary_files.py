"""A run leaves nothing in the system's temporary folder."""

import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from launch.local import fork_server, processes, temporary_files


def test_files_are_made_in_a_folder_that_goes() -> None:
    before = tempfile.gettempdir()
    with temporary_files.folder_of_a_run() as folder:
        descriptor, file = tempfile.mkstemp()
        os.close(descriptor)
        assert pathlib.Path(file).parent == folder
        assert os.environ["TMPDIR"] == str(folder)
    assert not folder.exists()
    assert tempfile.gettempdir() == before


def test_the_nodes_of_a_server_that_was_killed_remove_it(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(processes, "kill_children", lambda: codes.append(0))  # the tests' own, here
    with temporary_files.folder_of_a_run() as folder:
        fork_server._end_with(-1)  # nobody's parent
        assert not folder.exists()
    assert codes == [0, 1]


@pytest.mark.parametrize("moment", ["mkdtemp", "open"])
def test_one_that_another_run_removes_before_it_is_locked_is_made_anew(
    moment: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make, lock = tempfile.mkdtemp, fcntl.flock
    taken: list[pathlib.Path] = []

    def take() -> None:
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].rmdir()

    def make_and_lose(**how: str) -> str:
        folder = make(**how)
        take()
        return folder

    def lose_and_lock(descriptor: int, how: int) -> None:
        take()
        lock(descriptor, how)

    if moment == "mkdtemp":
        monkeypatch.setattr(tempfile, "mkdtemp", make_and_lose)
    else:
        monkeypatch.setattr(fcntl, "flock", lose_and_lock)
    with temporary_files.folder_of_a_run() as folder:
        assert folder.exists()
        assert folder not in taken
    assert not any(tmp_path.iterdir())


_KILLED = """
import os, signal
from launch.local import temporary_files
with temporary_files.folder_of_a_run() as folder:
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    print(folder, flush=True)
    input()  # a node that outlives its launcher
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_run_left_that_was_killed_as_a_whole_is_removed_by_the_next(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = [tmp_path / "recurrent", tmp_path / "recurrent-replay-link", tmp_path / "mine"]
    others[0].mkdir()
    others[1].symlink_to(others[0])
    others[2].touch()
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as launcher:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        folder = pathlib.Path(launcher.stdout.readline().strip())
        assert folder.parent == tmp_path
        with temporary_files.folder_of_a_run():
            assert folder.exists()
        launcher.stdin.write("\n")
        launcher.stdin.flush()
        assert not launcher.stdout.read()  # the node is gone
    with temporary_files.folder_of_a_run() as own:
        assert temporary_files.left() == set()  # in the run's own
        assert set(tmp_path.iterdir()) == {own, *others}
    assert set(tmp_path.iterdir()) == set(others)


def test_nothing_else_is_ever_removed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary_files.remove()
    assert tmp_path.exists()
