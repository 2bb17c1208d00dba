"""Nodes as forks: they compute, end as they are told, are told of, and outlive nobody."""

import os
import pathlib
import re
import signal
import textwrap
import time
from multiprocessing import Pipe

import numpy as np
import psutil
import pytest

from launch.graph.process import Heartbeats
from launch.local import fork_server
from tests.commands import Started
from tests.launch.local.nodes import printed
from tests.launch.runs import all_gone, forked
from tests.patience import PATIENCE, wait_for

# Each runs in a process of its own: in this one, other tests have run TensorFlow ops.
_BEGINNING = """
import pathlib, signal, sys, time
from absl import flags
flags.FLAGS(sys.argv[:1])
from launch import starting
from launch.local import fork_server, processes
from launch.local.fork_server import ForkServer, ServerLostError
from tests.launch.local import nodes
from tests.patience import wait_for
output = pathlib.Path(sys.argv[1])

def ended(server):
    found = wait_for(lambda: server.ended(0.1))
    return [(*each[:2], *["starved"] * each.starved) for each in found]
"""


def _start(tmp_path: pathlib.Path, script: str) -> Started:
    (tmp_path / "script.py").write_text(_BEGINNING + textwrap.dedent(script))
    return forked().start(tmp_path, "script", str(tmp_path), PYTHONPATH=str(tmp_path))


def run_script(tmp_path: pathlib.Path, script: str) -> str:
    """Runs a script that must succeed; returns its output."""
    started = _start(tmp_path, script)
    try:
        wait_for(started.has_ended, seconds=2 * PATIENCE)  # what waits in there says why
    finally:
        started.kill()
    outcome = started.outcome()
    assert outcome.code == 0, outcome
    return outcome.out


def test_actors_see_gpus_in_turn_and_checks_none(tmp_path: pathlib.Path) -> None:
    out = run_script(
        tmp_path,
        """
        with ForkServer(gpus=["GPU-a", "GPU-b"]) as server:
            print(server.call(nodes.gpu))
            for label in server.launch(nodes.make_actors, 3, output=output):
                print(*nodes.printed(output, label, "sees"))
        """,
    )
    assert out.split() == ["-1", "GPU-a", "GPU-b", "GPU-a"]


def test_nodes_compute_talk_and_end_as_they_are_told(tmp_path: pathlib.Path) -> None:
    out = run_script(
        tmp_path,
        """
        with ForkServer() as server:
            assert server.call(nodes.add, 1.0, 2.0) == 3.0
            words = ("end", "raise", "wait", "unplayable")
            print(server.launch(nodes.make_program, *words, output=output))
            found = ended(server)
            while len(found) < 3:
                found += ended(server)
            print(sorted(found))
            nodes.printed(output, "asking/2", "sum")
            server.signal(signal.SIGTERM, ["asking/2"])
            print(ended(server))
        """,
    )
    assert out.splitlines() == [
        "['adder/0', 'asking/0', 'asking/1', 'asking/2', 'asking/3']",
        "[('asking/0', 4), ('asking/1', 1), ('asking/3', 3)]",
        "[('asking/2', 143)]",
    ]
    texts = [(tmp_path / f"asking/{i}").read_text() for i in range(3)]
    assert all("sum 2.0" in text for text in texts)
    assert "RuntimeError: as it was told" in texts[1]
    assert texts[2].splitlines()[-1] == "was asked to end"
    drawn = {text.partition("drew ")[2].split()[0] for text in texts}
    assert len(drawn) == 3  # forks do not share what they draw


def test_a_node_that_was_killed_is_told_of_and_started_again(tmp_path: pathlib.Path) -> None:
    out = run_script(
        tmp_path,
        """
        processes._ROOT = output
        counts = output / "proc/vmstat"
        counts.parent.mkdir()
        counts.write_text("oom_kill 7")
        with ForkServer() as server:
            server.launch(nodes.make_program, "wait", output=output)
            nodes.printed(output, "asking/0", "sum")
            server.signal(signal.SIGKILL, ["asking/0"])
            print(ended(server))
            server.signal(signal.SIGKILL, ["asking/0"])  # of one that is gone: nothing
            counts.write_text("oom_kill 8")
            server.signal(signal.SIGKILL, ["adder/0"])
            print(ended(server))
            server.start("adder/0")
            server.start("asking/0")
            wait_for(lambda: (output / "asking/0").read_text().count("sum") >= 2)
        """,
    )
    assert out.splitlines() == ["[('asking/0', -9)]", "[('adder/0', -9, 'starved')]"]


def test_what_a_called_function_raises_is_raised_here(tmp_path: pathlib.Path) -> None:
    out = run_script(
        tmp_path,
        """
        from run_folder.settings import SettingsError
        with ForkServer() as server:
            calls = [(nodes.refuse, "No."), (nodes.die,), (nodes.leave,), (nodes.raise_unsent,)]
            for function, *args in (*calls, (nodes.broken_program,)):
                try:
                    server.call(function, *args)
                except Exception as error:
                    print(type(error).__name__, error)
            try:
                server.launch(nodes.broken_program, output=output)
            except ValueError as error:
                print("launch:", error)
            print(server.call(nodes.add, 1.0, 2.0))
        """,
    )
    assert out.splitlines() == [
        "SettingsError No.",
        "ServerLostError A check was killed by SIGKILL.",
        "ServerLostError A check ended with code 0, by sys.exit or os._exit.",
        "ServerLostError A check ended with code 1.",
        "ValueError no program",
        "launch: no program",
        "3.0",
    ]


@pytest.mark.parametrize("who", ["launcher", "server"])
def test_all_end_with_the_launcher_and_with_the_server(who: str, tmp_path: pathlib.Path) -> None:
    started = _start(
        tmp_path,
        """
        with ForkServer() as server:
            server.launch(nodes.make_program, "deaf", output=output)
            print("server", server.pid, flush=True)
            try:
                while True:
                    server.ended(0.1)
            except ServerLostError as error:
                print(error, flush=True)
        """,
    )
    server = int(printed(tmp_path, "out", "server")[0])
    engine = psutil.Process(int(printed(tmp_path, "asking/0", "child")[0]))
    others = psutil.Process(started.pid).children(recursive=True)
    os.kill(started.pid if who == "launcher" else server, signal.SIGKILL)
    wait_for(started.has_ended)
    said = started.outcome().out.splitlines()[1:]
    assert said == ["The process that forks the nodes is gone."] * (who == "server")
    assert engine in others
    assert len(others) >= 4
    assert all_gone(others)


def test_what_a_node_or_a_check_starts_hears_signals_and_ends_with_it(
    tmp_path: pathlib.Path,
) -> None:
    """A helper that `close()` ends by SIGTERM ends; others, in sessions of their own, go too."""
    out = run_script(
        tmp_path,
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background job
        with ForkServer() as server:
            print(server.call(nodes.ended_helpers))
            nodes.wait_until_gone(server.call(nodes.start_helpers))
            server.launch(nodes.make_program, "helpers", "wait", output=output)
            words = nodes.printed(output, "asking/0", "helpers")
            print(words[0])
            nodes.printed(output, "asking/1", "sum")
            server.signal(signal.SIGKILL, ["asking/0"])
            print(ended(server))
            nodes.wait_until_gone(words[1:3])
        """,
    )
    assert out.splitlines() == ["[-15, -2, -1, -15]", "[-15,-2,-1,-15]", "[('asking/0', -9)]"]


def test_a_check_that_does_not_end_is_killed_and_told_of(tmp_path: pathlib.Path) -> None:
    out = run_script(
        tmp_path,
        """
        file = output / "pid"
        for seconds in (1, 8, 64):  # a slow machine has only begun by then
            fork_server.CALL_SECONDS = seconds
            try:
                with ForkServer() as server:
                    server.call(nodes.stand_still, file)
            except ServerLostError as error:
                print(error)
            if file.exists() and file.read_text():
                break
        nodes.wait_until_gone([file.read_text()])
        """,
    )
    assert re.fullmatch(r"(A check has not ended within \d+ s\.\n)+", out)


def test_nothing_is_forked_once_an_op_was_run(tmp_path: pathlib.Path) -> None:
    out = run_script(
        tmp_path,
        """
        nodes.add(1.0, 2.0)
        try:
            ForkServer()
        except fork_server.OpsWereRunError as error:
            print(error)
        """,
    )
    assert out.startswith("A module has run a TensorFlow operation while it was imported")


def test_a_node_that_stands_still_is_killed_and_told_of(tmp_path: pathlib.Path) -> None:
    out = run_script(
        tmp_path,
        """
        with ForkServer() as server:
            server.launch(nodes.make_program, "beat", "stop", output=output, hang_seconds=5.0)
            (found,) = wait_for(lambda: server.ended(0.1))
            print(found[:2], found.silence > 5.0)
            print(server.ended(3.0))
        """,
    )
    assert out.splitlines() == ["('asking/1', -9) True", "[]"]


def test_nodes_are_not_blamed_for_a_time_in_which_the_server_stood_still_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by `docker pause`; whoever stays silent is killed after that."""
    clock, killed = [0.0], list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    ours, _ = Pipe()
    server = fork_server._Server(ours, [])
    server._running, server._hang_seconds = {1: "learner/0"}, 60.0
    server._heartbeats = Heartbeats(["learner/0"])
    monkeypatch.setattr(server, "signal", lambda number, labels: killed.extend(labels))
    for now in (0.0, 1.0, 500.0, 501.0, *np.arange(505.0, 559.0, 4.0)):
        clock[0] = now
        server._kill_silent()
        assert not killed
    clock[0] = 562.0
    server._kill_silent()
    assert killed == ["learner/0"]


def test_a_server_ends_in_order_though_its_launcher_is_gone_when_it_tells_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = Pipe()
    theirs.close()
    server, done = fork_server._Server(ours, []), list[str]()
    ended = fork_server.Ended("actor/0", 1)
    monkeypatch.setattr(server, "_reap", lambda: ours.send(ended))
    monkeypatch.setattr(fork_server.processes, "kill_children", lambda: done.append("children"))
    monkeypatch.setattr(fork_server.temporary_files, "remove", lambda: done.append("files"))
    server.serve()
    assert done == ["children", "files"]
