"""A run folder records each command that started or resumed it, and the machine."""

import datetime
import os
import pathlib
import shlex
import socket
import subprocess

import pytest

import recurrent_replay
from run_folder import launches
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def git_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the disk is; and it is of no other repository, nor as its user has set it up."""
    monkeypatch.setattr(launches, "_GIT_SECONDS", PATIENCE)
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # as in a hook of git's
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)  # where commits may have to be signed


def test_every_launch_is_kept_in_order(tmp_path: pathlib.Path) -> None:
    arguments = ["--agent=r2d2", "--env=catch", "--run_dir=runs/a name"]
    launches.record(tmp_path, arguments, actor_steps=0, walltime=0.0)
    launches.record(tmp_path, ["--resume"], actor_steps=500, walltime=12.5)
    first, second = launches.read(tmp_path)
    assert shlex.split(first.command) == [
        *shlex.split(recurrent_replay.command("train")),
        *arguments,
    ]
    assert (second.command, second.actor_steps, second.walltime) == (
        f"{recurrent_replay.command('train')} --resume",
        500,
        12.5,
    )
    assert (first.version, first.commit) == (recurrent_replay.version(), launches.commit())
    assert (first.host, first.processors) == (socket.gethostname(), launches.processors())
    began = datetime.datetime.fromisoformat(first.time)
    now = datetime.datetime.now(datetime.timezone.utc)
    assert began.utcoffset() == datetime.timedelta(0)
    assert now - datetime.timedelta(hours=1) < began <= now


def test_a_launch_older_than_some_fields_is_read(tmp_path: pathlib.Path) -> None:
    assert launches.read(tmp_path) == []  # of a run older than the file
    old = '{"time": "2026", "command": "x", "actor_steps": 5, "walltime": 1.0}\n'
    RunFolder(tmp_path).launches.write_text(old)
    assert [(launch.command, launch.commit) for launch in launches.read(tmp_path)] == [("x", "")]


@pytest.mark.parametrize("half", ['{"time": "2026-', '{"time": "2026-01-01", "command": "\xe9'])
def test_half_a_line_that_a_crash_left_is_passed_over(tmp_path: pathlib.Path, half: str) -> None:
    launches.record(tmp_path, ["--agent=r2d2"], actor_steps=0, walltime=0.0)
    with RunFolder(tmp_path).launches.open("ab") as file:
        file.write(half.encode()[:-1])
    assert len(launches.read(tmp_path)) == 1
    launches.record(tmp_path, ["--resume"], actor_steps=5, walltime=1.0)
    assert [launch.actor_steps for launch in launches.read(tmp_path)] == [0, 5]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("half", "of line 2, Expecting value"),
        ("[]", "of line 2, it must be an object, got []"),
        ('{"time": "2026"}', "of line 2, command is missing: it must be text"),
        (
            '{"time": "2026", "command": "x", "actor_steps": "5", "walltime": 1.0}',
            "of line 2, actor_steps must be a whole number, got '5'",
        ),
    ],
)
def test_other_damage_is_said_with_file_and_line(
    tmp_path: pathlib.Path, line: str, said: str
) -> None:
    launches.record(tmp_path, ["--agent=r2d2"], actor_steps=0, walltime=0.0)
    with RunFolder(tmp_path).launches.open("a") as file:
        file.write(line + "\n")
    launches.record(tmp_path, ["--resume"], actor_steps=5, walltime=1.0)
    with pytest.raises(SettingsError) as error:
        launches.read(tmp_path)
    assert str(error.value).startswith(f"{RunFolder(tmp_path).launches} cannot be read: {said}")


def test_what_is_no_text_is_kept_and_said_with_its_line(tmp_path: pathlib.Path) -> None:
    RunFolder(tmp_path).launches.write_bytes(b"\xff\n" + b"[" * 100_000)
    launches.record(tmp_path, ["--resume"], actor_steps=5, walltime=1.0)
    with pytest.raises(SettingsError, match="of line 1, 'utf-8' codec can't decode byte 0xff"):
        launches.read(tmp_path)


WHO = ("-c", "user.name=a", "-c", "user.email=a@b.example")


def test_the_commit_is_the_work_trees_and_says_whether_files_differ(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        told = ("git", "-C", str(tmp_path), *WHO, *words)
        return subprocess.run(told, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(launches, "_ROOT", tmp_path / "site-packages")
    git("init", "--quiet")
    (tmp_path / "a.py").write_text("a = 1\n")
    git("add", "a.py")
    git("commit", "--quiet", "--message=one")
    assert launches.commit() == ""  # it is installed below somebody else's repository
    monkeypatch.setattr(launches, "_ROOT", tmp_path)
    assert launches.commit() == git("rev-parse", "HEAD")[:12]
    (tmp_path / "a.py").write_text("a = 2\n")
    assert launches.commit() == git("rev-parse", "HEAD")[:12] + "-dirty"
    monkeypatch.setenv("PATH", "")
    assert launches.commit() == ""


def test_the_processors_are_named_with_the_cores_that_may_be_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: A Processor: 9\nmodel name : B")
    monkeypatch.setattr(launches, "_CPUS", tmp_path / "cpuinfo")
    for i in range(2):
        (tmp_path / "gpus" / str(i)).mkdir(parents=True)
        (tmp_path / "gpus" / str(i) / "information").write_text("Model: \t\t A Card\nIRQ: 9\n")
    monkeypatch.setattr(launches, "_GPUS", tmp_path / "gpus")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3})
    assert launches.processors() == "A Processor: 9, 2 cores, A Card, A Card"
    (tmp_path / "cpuinfo").unlink()
    assert launches.processor() == os.uname().machine
