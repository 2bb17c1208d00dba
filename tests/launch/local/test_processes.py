"""A network of a run's own, and which of the kernel's counts of what it killed is believed."""

import os
import pathlib
import socket
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from launch import train
from launch.local import processes
from tests.forks import garbage_is_kept
from tests.launch import typed
from tests.launch.local.test_fork_server import run_script

NOT_HERE = processes.why_no_private_network()


@pytest.mark.skipif(bool(NOT_HERE), reason=NOT_HERE)
def test_servers_are_heard_inside_and_neither_seen_nor_reached_outside(
    tmp_path: pathlib.Path,
) -> None:
    out = run_script(
        tmp_path,
        """
        for private in (True, False):
            for number in range(3):  # others may serve outside on a port of the same number
                folder = output / f"{private}{number}"
                with ForkServer(private=private) as server:
                    server.launch(nodes.make_program, "wait", output=folder)
                    nodes.printed(folder, "asking/0", "sum")
                    inside, outside = server.call(nodes.listening), nodes.listening()
                    shared = inside <= outside if private else bool(inside & outside)
                    found = len(inside) > 0, shared, nodes.reached(inside) > 0
                if private not in found[1:]:
                    break
            print(private, *found)
        """,
    )
    assert out.splitlines() == ["True True False False", "False True True True"]


@pytest.mark.skipif(bool(NOT_HERE), reason=NOT_HERE)
def test_files_stay_those_of_the_user(tmp_path: pathlib.Path) -> None:
    run_script(
        tmp_path,
        """
        with ForkServer(private=True) as server:
            server.launch(nodes.make_program, "end", output=output)
            ended(server)
        """,
    )
    assert (tmp_path / "asking/0").stat().st_uid == os.geteuid()


@pytest.mark.parametrize(
    ("flags", "why", "said"),
    [
        ((), "", ""),
        ((), "Operation not permitted", "(Operation not permitted): see docs/security.md."),
        (("--noprivate_network",), "", "(--noprivate_network was given)"),
    ],
)
def test_a_run_that_is_open_says_so(
    flags: tuple[str, ...],
    why: str,
    said: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed.instead_of_starting(monkeypatch)
    monkeypatch.setattr(processes, "why_no_private_network", lambda: why)
    monkeypatch.setattr(processes, "reached_by", lambda: "everybody")
    argv = ("--agent=impala", "--env=catch", f"--run_dir={tmp_path / 'run'}", *flags)
    assert typed.run(train.main, *argv) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == bool(said)
    assert all(line.startswith("Open to everybody ") and said in line for line in lines)


def _address(family: int, address: str) -> Any:
    return SimpleNamespace(family=family, address=address)


@pytest.mark.parametrize(
    ("addresses", "reached_by"),
    [
        ([(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")], "every user of this machine"),
        (
            [
                (socket.AF_INET, "127.0.0.1"),
                (socket.AF_INET6, "fe80::1%eth0"),
                (psutil.AF_LINK, "00:00:00:00:00:00"),
                (socket.AF_INET, "10.0.0.5"),
                (socket.AF_INET6, "2001:db8::5"),
            ],
            "every user of this machine, and whoever reaches 10.0.0.5 or 2001:db8::5",
        ),
    ],
)
def test_who_reaches_a_server_that_listens_everywhere(
    addresses: list[tuple[int, str]], reached_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Callable[[], Any] = lambda: {"any": [_address(*each) for each in addresses]}  # noqa: E731
    monkeypatch.setattr(psutil, "net_if_addrs", found)
    assert processes.reached_by() == reached_by


def test_a_network_that_cannot_be_had_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def enter() -> None:
        raise PermissionError(1, "Operation not permitted")

    def why_not() -> str:
        with garbage_is_kept():
            return processes.why_no_private_network()

    monkeypatch.setattr(processes, "enter_private_network", enter)
    assert why_not() == "Operation not permitted"
    monkeypatch.setattr(processes, "enter_private_network", lambda: None)
    assert why_not() == ""
    monkeypatch.setattr(processes, "enter_private_network", lambda: 1 / 0)
    assert why_not() == "it failed"


V2 = "0::/user.slice/run.scope\n"
V1 = "9:name=systemd:/\n4:memory:/docker/a:b\n0::/\n"
MACHINE = {"proc/vmstat": "pgfault 12\noom_kill 9\n"}


@pytest.mark.parametrize(
    ("group", "files", "kills"),
    [
        (V2, {"user.slice/run.scope/memory.events": "oom 5\noom_kill 2\noom_group_kill 7\n"}, 2),
        (V2, {"memory.events": "oom 5\noom_kill 3\n"}, 3),  # a container's
        (V1, {"memory/docker/a:b/memory.oom_control": "under_oom 0\noom_kill 4\n"}, 4),
        (V1, {"memory/memory.oom_control": "under_oom 0\noom_kill 5\n"}, 5),
        (V1, {"memory/docker/a:b/memory.oom_control": "under_oom 0\n"}, 9),  # before Linux 4.13
        (V2, {}, 9),
        ("", {}, 9),
    ],
)
def test_the_nearest_count_is_believed(
    group: str,
    files: dict[str, str],
    kills: int,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "_ROOT", tmp_path)
    assert processes.out_of_memory_kills() == 0  # nothing can be read
    of_groups = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": group, **of_groups, **MACHINE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert processes.out_of_memory_kills() == kills


def test_what_was_printed_to_nobody_keeps_no_process_from_forking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, write = os.pipe()
    os.close(read)
    out = os.fdopen(write, "w")
    out.write("Nobody reads this.")
    with monkeypatch.context() as patched, garbage_is_kept():
        patched.setattr(sys, "stdout", out)
        if not (pid := processes.fork()):
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    with pytest.raises(BrokenPipeError):
        out.close()
