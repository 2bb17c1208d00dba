"""benchmarks.actor on tiny settings."""

import pathlib

import pytest

from tests.benchmarks.commands import SHORT, fake_python, report, tiny
from tests.commands import Commands

pytestmark = pytest.mark.repository  # commands run in a process that imports them by name


@pytest.mark.slow
def test_every_number_of_environments_has_its_figures(
    tmp_path: pathlib.Path, commands: Commands
) -> None:
    peer = ("--peer=acme", f"--peer_python={fake_python(tmp_path, 'fake_peer.py')}")
    contents = report(commands, "actor", *tiny("r2d2"), *SHORT, "--num_environments=1,3", *peer)
    for count in (1, 3):
        for part in ("environments", "inference", "both"):
            found = contents["figures"][f"{part}, {count}"]
            assert found["unit"] == "steps/s"
            assert found["value"] > 0
        assert contents["figures"][f"share of the parts, {count}"]["unit"] == "%"
    assert contents["figures"]["peer's inference, 1"]["value"] == 2.0
    assert contents["settings"]["num_environments"] == [1, 3]


def test_a_number_that_is_none_is_refused(commands: Commands) -> None:
    finished = commands.run("benchmarks.actor", "--num_environments=1,0")
    assert finished.code == 2
    assert "whole numbers of at least 1 with commas between them" in finished.err
