"""benchmarks.learners on tiny settings, and processes that only say they learned."""

import pathlib

import pytest

from tests.benchmarks.commands import SHORT, fake_python, report, tiny
from tests.commands import Commands


@pytest.mark.slow
def test_two_beside_one(tmp_path: pathlib.Path, commands: Commands) -> None:
    fake = f"--peer_python={fake_python(tmp_path, 'fake_peer.py')}"
    contents = report(commands, "learners", *tiny("r2d2"), *SHORT, fake)
    figures = contents["figures"]
    assert {name: found["unit"] for name, found in figures.items()} == {
        "one": "frames/s",
        "several": "frames/s",
        "several_apart": "frames/s",
        "several_to_one": "x",
        "share_of_agreeing": "%",
        "agreeing": "ms",
        "gradients": "MB",
    }
    frames = 2 * (4 + 8)
    assert figures["several"]["value"] == pytest.approx(frames / 0.5)  # of the whole batch
    assert figures["several_to_one"]["value"] == pytest.approx(1)
    assert contents["settings"]["learners"] == 2


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--learners=4", "--learners=4 must divide the batch of r2d2, 6 items."),
        ("--learners=1", "flag --learners=1"),
        ("--learners=3", "--learners=3 must be 2 at most, the cores of this machine."),
    ],
)
def test_what_cannot_be_measured_is_refused(flag: str, said: str, commands: Commands) -> None:
    done = commands.run("benchmarks.learners", *tiny("r2d2"), "--r2d2.batch_size=6", flag)
    assert done.code != 0
    assert said in done.err
