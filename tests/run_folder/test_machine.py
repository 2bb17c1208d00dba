"""What a launch ran on."""

import os
import pathlib
import subprocess

import pytest

from run_folder import machine

WHO = ("-c", "user.name=a", "-c", "user.email=a@b.example")


def test_the_commit_is_the_work_trees_and_says_whether_files_differ(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        told = ("git", "-C", str(tmp_path), *WHO, *words)
        return subprocess.run(told, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(machine, "_ROOT", tmp_path / "site-packages")
    git("init", "--quiet")
    (tmp_path / "a.py").write_text("a = 1\n")
    git("add", "a.py")
    git("commit", "--quiet", "--message=one")
    assert machine.commit() == ""  # it is installed below somebody else's repository
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    assert machine.commit() == git("rev-parse", "HEAD")[:12]
    (tmp_path / "a.py").write_text("a = 2\n")
    assert machine.commit() == git("rev-parse", "HEAD")[:12] + "-dirty"
    monkeypatch.setenv("PATH", "")
    assert machine.commit() == ""


def test_the_processors_are_named_with_the_cores_that_may_be_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: A Processor: 9\nmodel name : B")
    monkeypatch.setattr(machine, "_CPUS", tmp_path / "cpuinfo")
    for i in range(2):
        (tmp_path / "gpus" / str(i)).mkdir(parents=True)
        (tmp_path / "gpus" / str(i) / "information").write_text("Model: \t\t A Card\nIRQ: 9\n")
    monkeypatch.setattr(machine, "_GPUS", tmp_path / "gpus")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3})
    assert machine.processors() == "A Processor: 9, 2 cores, A Card, A Card"
    (tmp_path / "cpuinfo").unlink()
    assert machine.processor() == os.uname().machine
