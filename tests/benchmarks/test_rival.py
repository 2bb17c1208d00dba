"""The protocol between a benchmark and a rival's process, both ends of it."""

import pathlib

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from benchmarks.rival import Rival
from tests.benchmarks.commands import fake_python

_SERVER = """
from benchmarks.rivals import protocol

def make_step(settings):
    print("what a library prints is no reply")
    return lambda: settings["total"].append(1)

protocol.serve({"step": make_step}, ["numpy"])
"""


@pytest.fixture(autouse=True)
def _parsed_flags() -> None:
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


def _python(folder: pathlib.Path, text: str) -> str:
    program = folder / "program.py"
    program.write_text(text)
    return fake_python(folder, program)


def test_a_rival_answers_with_the_seconds_of_its_steps(tmp_path: pathlib.Path) -> None:
    python = fake_python(tmp_path)
    with flagsaver.flagsaver(peer_python=python), Rival("any", {}) as rival:
        assert rival.versions == {"fake": "1.0"}
        assert rival.first_step_seconds == 2.5
        assert [rival.run(1), rival.run(4)] == [0.5, 2.0]


def test_the_protocol_serves_what_a_benchmark_asks(tmp_path: pathlib.Path) -> None:
    python = _python(tmp_path, _SERVER)
    with flagsaver.flagsaver(peer_python=python), Rival("any:step", {"total": []}) as rival:
        assert rival.versions == {"numpy": np.__version__}
        assert rival.first_step_seconds >= 0
        assert rival.run(3) >= 0


def test_a_rival_that_cannot_start_is_told_with_its_interpreter(tmp_path: pathlib.Path) -> None:
    python = _python(tmp_path, "import a_library_that_is_not_there")
    message = f"code 1; --peer_python={python} must have"
    with flagsaver.flagsaver(peer_python=python), pytest.raises(RuntimeError, match=message):
        Rival("any", {})
