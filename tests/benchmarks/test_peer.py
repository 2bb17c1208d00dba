"""The protocol between a benchmark and a peer's process, both ends of it."""

import pathlib
import sys

import pytest
from absl import flags
from absl.testing import flagsaver

from benchmarks.peer import Peer
from tests.benchmarks.commands import fake_python

_SERVER = """
import sys
from benchmarks.peers import protocol

def make_step(settings):
    print("what a library prints is no reply")
    return lambda: settings["total"].append(1)

protocol.serve(make_step, lambda: {"python": sys.version})
"""


@pytest.fixture(autouse=True)
def parsed_flags() -> None:
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


def _python(folder: pathlib.Path, program: str) -> str:
    """An interpreter that runs this program whatever module it is given."""
    (folder / "program.py").write_text(program)
    path = folder / "python"
    script = f'PYTHONPATH=. exec "{sys.executable}" "{folder}/program.py" "$@"'
    path.write_text(f"#!/bin/sh\nshift 2\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_peer_answers_with_the_seconds_of_its_steps(tmp_path: pathlib.Path) -> None:
    python = fake_python(tmp_path, "fake_peer.py")
    with flagsaver.flagsaver(peer_python=python), Peer("any", {}) as peer:
        assert peer.versions == {"fake": "1.0"}
        assert peer.first_step_seconds == 2.5
        assert [peer.run(1), peer.run(4)] == [0.5, 2.0]


def test_the_protocol_serves_what_a_benchmark_asks(tmp_path: pathlib.Path) -> None:
    python = _python(tmp_path, _SERVER)
    with flagsaver.flagsaver(peer_python=python), Peer("any", {"total": []}) as peer:
        assert peer.versions == {"python": sys.version}
        assert peer.first_step_seconds >= 0
        assert peer.run(3) >= 0


def test_a_peer_that_cannot_start_is_told_with_its_interpreter(tmp_path: pathlib.Path) -> None:
    python = _python(tmp_path, "import a_library_that_is_not_there")
    message = f"code 1; --peer_python={python} must have"
    with flagsaver.flagsaver(peer_python=python), pytest.raises(RuntimeError, match=message):
        Peer("any", {})
