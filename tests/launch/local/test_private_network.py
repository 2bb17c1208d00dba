"""A run's servers are reached from its own network alone; the terminal says so if not."""

import os
import pathlib
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from launch import starting, train
from launch.local import private_network
from tests.forks import garbage_is_kept
from tests.launch import typed
from tests.launch.local.test_fork_server import run_script

NOT_HERE = private_network.why_not()


@pytest.mark.skipif(bool(NOT_HERE), reason=NOT_HERE)
def test_servers_are_heard_inside_and_neither_seen_nor_reached_outside(
    tmp_path: pathlib.Path,
) -> None:
    out = run_script(
        tmp_path,
        """
        for private in (True, False):
            with ForkServer(private=private) as server:
                server.launch(nodes.make_program, "wait", output=output / str(private))
                nodes.printed(output / str(private), "asking/0", "sum")
                inside, outside = server.call(nodes.listening), nodes.listening()
                print(private, len(inside) > 0, inside <= outside, nodes.reached(inside) > 0)
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
    monkeypatch.setattr(private_network, "why_not", lambda: why)
    monkeypatch.setattr(starting.private_network, "reached_by", lambda: "everybody")
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
    assert private_network.reached_by() == reached_by


def test_a_network_that_cannot_be_had_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def enter() -> None:
        raise PermissionError(1, "Operation not permitted")

    def why_not() -> str:
        with garbage_is_kept():
            return private_network.why_not()

    monkeypatch.setattr(private_network, "enter", enter)
    assert why_not() == "Operation not permitted"
    monkeypatch.setattr(private_network, "enter", lambda: None)
    assert why_not() == ""
    monkeypatch.setattr(private_network, "enter", lambda: 1 / 0)
    assert why_not() == "it failed"
