"""benchmarks.learner on tiny settings."""

import pathlib

import pytest

from tests.benchmarks.commands import SHORT, fake_python, report, tiny
from tests.commands import Commands

_ALWAYS = {
    "first_step": "s",
    "learner": "frames/s",
    "parameters": "million",
    "peak_memory": "GB",
    "useful_work_of_an_update": "GFLOP",
    "useful_work": "GFLOP/s",
    "matmul_float32": "GFLOP/s",
    "matmul_bfloat16": "GFLOP/s",
    "share_of_roof": "%",
}


def _units(contents: dict) -> dict[str, str]:
    return {name: found["unit"] for name, found in contents["figures"].items()}


@pytest.mark.slow
def test_r2d2_alone_with_replay_with_clients_and_beside_a_peer(
    tmp_path: pathlib.Path, commands: Commands
) -> None:
    peer = ("--peer=pytorch", f"--peer_python={fake_python(tmp_path, 'fake_peer.py')}")
    loaded = ("--with_replay", "--num_clients=2", "--steps_per_update=400")
    contents = report(commands, "learner", *tiny("r2d2"), *SHORT, *loaded, *peer)
    assert _units(contents) == _ALWAYS | {
        "learner_with_replay": "frames/s",
        "lost_to_replay": "%",
        "learner_with_clients": "frames/s",
        "lost_to_clients": "%",
        "peer_first_step": "s",
        "peer": "frames/s",
        "learner_to_peer": "x",
    }
    frames = 2 * (4 + 8)
    assert contents["figures"]["peer"]["value"] == pytest.approx(frames / 0.5)
    assert contents["figures"]["peer_first_step"]["value"] == 2.5
    assert contents["versions"]["peer fake"] == "1.0"
    assert contents["settings"]["config"]["batch_size"] == 2
    assert contents["settings"]["peer"] == "pytorch"
    assert contents["settings"]["num_clients"] == 2
    assert contents["settings"]["roof"] == "matmul_float32"


@pytest.mark.slow
def test_impala(commands: Commands) -> None:
    contents = report(commands, "learner", *tiny("impala"), *SHORT, "--device=cpu")
    assert _units(contents) == _ALWAYS
    assert contents["machine"]["accelerators"] == []
    assert contents["figures"]["learner"]["samples"] == 2


@pytest.mark.slow
def test_stacx_beside_impala_with_its_network(commands: Commands) -> None:
    contents = report(commands, "learner", *tiny("stacx"), *SHORT, "--peer=impala")
    units = _units(contents)
    assert units["learner_to_peer"] == "x"
    assert "useful_work" not in units  # a metagradient is more than a network's work
    assert "peer tensorflow" in contents["versions"]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--agent=r2d3"], "Did you mean 'r2d2'?"),
        (["--r2d2.batchsize=3"], "Did you mean --r2d2.batch_size?"),
        (
            [*tiny("impala"), "--peer=acme"],
            "the peers of that agent: pytorch, pytorch_tuned, pytorch_compiled.",
        ),
        ([*tiny("impala"), "--with_replay"], "--agent=impala reads a queue."),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_sentence(
    commands: Commands, flags: list[str], sentence: str
) -> None:
    finished = commands.run("benchmarks.learner", *flags)
    assert finished.code == 2
    assert sentence in finished.err


def test_a_gpu_that_is_not_there_is_refused_with_a_sentence(commands: Commands) -> None:
    finished = commands.run("benchmarks.learner", "--device=gpu")
    assert finished.code == 2
    assert "--device=gpu needs a GPU that TensorFlow sees" in finished.err
