"""A run's own process, and who has started it. A shell stands for the interpreter."""

import contextlib
import io
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Callable

import pytest

import recurrent_replay
from launch.child import Child, RunCrashedError
from launch.local import caller
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError
from tests.patience import wait_for

Shell = Callable[[str], None]


@pytest.fixture
def shell(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Has a script of the shell run in the place of `python`."""

    def use(script: str) -> None:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))

    return use


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> RunFolder:
    """Of a run that has left a crash file once."""
    found = RunFolder(tmp_path / "run")
    found.nodes.mkdir(parents=True)
    found.crash.write_text("an old crash\n")
    return found


def _printed(folder: RunFolder, *flags: str, is_watched: bool = True) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        Child(flags, folder, is_watched=is_watched).wait()
    return out.getvalue()


def test_what_it_prints_goes_where_python_prints(shell: Shell, folder: RunFolder) -> None:
    shell('echo "$@"; echo and this >&2')
    assert _printed(folder, "--env=a b") == "-m launch.train --env=a b\nand this\n"


def test_a_terminals_ctrl_c_is_for_its_caller_alone(shell: Shell, folder: RunFolder) -> None:
    shell("read -r _ _ _ _ _ session _ < /proc/$$/stat; test $session = $$ && echo its own")
    assert _printed(folder) == "its own\n"


def test_it_finds_what_its_caller_finds(
    shell: Shell, folder: RunFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "lib", "/elsewhere"])
    shell("echo $PYTHONPATH")
    assert _printed(folder) == f"{tmp_path}:{tmp_path / 'lib'}:/elsewhere\n"


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_terminal_is_its_own_where_somebody_waits(
    shell: Shell, folder: RunFolder, monkeypatch: pytest.MonkeyPatch, is_watched: bool
) -> None:
    shell("test -t 1 && echo a terminal || echo a pipe")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb", 0) as reader:
        monkeypatch.setattr(sys, "stdout", terminal)
        Child([], folder, is_watched=is_watched).wait()
        assert reader.read(100) == (b"a terminal\r\n" if is_watched else b"a pipe\r\n")
        monkeypatch.undo()


def test_a_crash_is_told_with_its_head(shell: Shell, folder: RunFolder) -> None:
    lines = "\\n".join(f"line {i}" for i in range(40))
    shell(f"printf '{lines}' > /proc/self/fd/${{RECURRENT_REPLAY_CALLER#* }}; exit 1")
    with pytest.raises(RunCrashedError) as told:
        Child([], folder, is_watched=True).wait()
    said = str(told.value).splitlines()
    assert said[:2] == [f"The run in {folder.path} ended with code 1.", "line 0"]
    assert said[-1] == "line 29"


def test_a_refusal_that_nobody_waits_for_is_printed(shell: Shell, folder: RunFolder) -> None:
    shell("printf 'It cannot be.' > /proc/self/fd/${RECURRENT_REPLAY_CALLER#* }; exit 2")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        started = Child([], folder, is_watched=False)
        with pytest.raises(SettingsError, match=r"^It cannot be\.$"):
            started.wait()
    assert out.getvalue().strip() == "It cannot be."


def test_ctrl_c_asks_it_to_end_waits_and_is_raised_then(
    shell: Shell, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell('trap "echo saved; exit 1" INT; echo begun; while kill -0 $PPID; do sleep 0.05; done')
    waits, wait = threading.Event(), Child.wait

    def say_and_wait(child: Child) -> None:
        waits.set()
        wait(child)

    monkeypatch.setattr(Child, "wait", say_and_wait)
    with contextlib.redirect_stdout(io.StringIO()) as out:

        def press() -> None:
            wait_for(lambda: waits.is_set() and out.getvalue() == "begun\n", out.getvalue)
            os.kill(os.getpid(), signal.SIGINT)

        presses = threading.Thread(target=press)
        presses.start()
        with pytest.raises(KeyboardInterrupt):
            recurrent_replay.train("r2d2", "catch", folder.path)
        presses.join()
    assert out.getvalue() == "begun\nsaved\n"


def test_one_that_cannot_be_started_is_told_at_once(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(FileNotFoundError, match="/nowhere/python"):
        Child([], folder, is_watched=True)
    with pytest.raises(ValueError, match="null byte"):
        Child(["--env=\0"], folder, is_watched=True)


def test_a_process_whose_caller_is_gone_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller.processes, "end_with_parent", lambda: None)
    monkeypatch.setenv("RECURRENT_REPLAY_CALLER", f"{os.getpid()} 0")  # which is not its parent
    with pytest.raises(SystemExit) as ended:
        caller.heed()
    assert ended.value.code == 143
    assert "RECURRENT_REPLAY_CALLER" not in os.environ
    assert not caller.tell("Nobody hears it.")
