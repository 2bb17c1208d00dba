"""One launch at a time runs a run folder; the lock ends with its process."""

import errno
import fcntl
import os
import pathlib
import socket
from collections.abc import Iterator

import pytest

from launch import train
from run_folder import run_lock
from run_folder.settings import SettingsError
from tests.launch import typed
from tests.run_folder import saved_runs
from tests.run_folder.holding import Holder


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    yield
    run_lock.release()


def test_a_run_that_is_running_is_neither_resumed_nor_touched(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = typed.instead_of_starting(monkeypatch)
    saved_runs.save(tmp_path / "run")
    (tmp_path / "run" / "nodes").mkdir()
    for name in ("progress.json", "crash.txt", "stop"):
        (tmp_path / "run" / "nodes" / name).write_text("{}")
    argv = (f"--run_dir={tmp_path / 'run'}", "--resume")
    with Holder(tmp_path / "run") as holder:
        before = typed.contents(tmp_path / "run")
        assert typed.run(train.main, *argv) == 2
        said = f"is being run by process {holder.pid} on {socket.gethostname()}: end that run first"
        assert said in capsys.readouterr().err
        assert typed.contents(tmp_path / "run") == before
        assert not started
    assert typed.run(train.main, *argv) == 0
    assert len(started) == 1


def test_two_new_runs_do_not_share_a_folder(tmp_path: pathlib.Path) -> None:
    with Holder(tmp_path), pytest.raises(SettingsError, match="is being run by process"):
        run_lock.take(tmp_path)
    run_lock.take(tmp_path)
    run_lock.take(tmp_path)  # it has it


def test_a_fork_that_lives_on_holds_no_lock(tmp_path: pathlib.Path) -> None:
    with Holder(tmp_path, forks=True), pytest.raises(SettingsError, match="is being run by"):
        run_lock.take(tmp_path)
    run_lock.take(tmp_path)


def test_a_file_system_without_locks_is_named_and_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    run_lock.take(tmp_path)
    assert f"The file system of {tmp_path} has no locks" in capsys.readouterr().err


def test_nothing_is_left_in_a_folder_that_nobody_ever_ran(tmp_path: pathlib.Path) -> None:
    run_lock.take_if_there(tmp_path)
    assert os.listdir(tmp_path) == []


def test_whether_another_process_runs_a_folder_can_be_asked(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not run_lock.is_held(tmp_path)
    assert os.listdir(tmp_path) == []
    with Holder(tmp_path):
        before = (tmp_path / "lock").read_bytes()
        assert run_lock.is_held(tmp_path)
        assert run_lock.is_held(tmp_path)
        assert (tmp_path / "lock").read_bytes() == before
    assert not run_lock.is_held(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    assert not run_lock.is_held(tmp_path)  # as far as can be known
