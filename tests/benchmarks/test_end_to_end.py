"""benchmarks.end_to_end: a real run of seconds, and a peer that only says it ran."""

import pathlib

import pytest

from tests.benchmarks.commands import SHORT, fake_python, report, tiny
from tests.commands import Commands


@pytest.mark.slow
@pytest.mark.launchpad
def test_a_run_is_measured_against_its_parts_and_a_peer(
    tmp_path: pathlib.Path, commands: Commands
) -> None:
    contents = report(
        commands,
        "end_to_end",
        *tiny("impala"),
        *SHORT,
        "--seconds=3",
        "--num_actors=4",
        "--actors_per_node=2",
        "--peer=sample_factory",
        f"--peer_python={fake_python(tmp_path, 'fake_run_of_peer.py')}",
    )
    figures = contents["figures"]
    units = {name: found["unit"] for name, found in figures.items() if "cpu" not in name}
    assert units == {
        "environments_alone": "steps/s",
        "inference_alone": "steps/s",
        "learner_alone": "frames/s",
        "first_acting_step": "s",
        "first_learner_step": "s",
        "steps": "steps/s",
        "learner_frames": "frames/s",
        "replays_per_observation": "replays",
        "parts": "steps/s",
        "share_of_the_parts": "%",
        "peer_steps": "steps/s",
        "run_to_peer": "x",
    }
    nodes = {name.removeprefix("cpu, ") for name in figures if "cpu" in name}
    assert {"launcher", "replay/0", "learner/0", "actor/0", "actor/1"} <= nodes
    assert figures["peer_steps"]["value"] == 123.0
    assert figures["steps"]["value"] > 0
    assert figures["first_acting_step"]["value"] > 0
    # IMPALA learns from every step once.
    assert figures["replays_per_observation"]["value"] == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--peer=sb3_ppo"], "--peer=sb3_ppo plays control:, got --env=atari:pong."),
        (
            ["--env=gym:Pendulum-v1", "--peer=sample_factory"],
            "--peer=sample_factory plays atari:pong, got --env=gym:Pendulum-v1.",
        ),
        (["--env=katch"], "did you mean catch?"),
    ],
)
def test_what_a_peer_does_not_play_is_refused(
    argv: list[str], said: str, commands: Commands
) -> None:
    finished = commands.run("benchmarks.end_to_end", *tiny("impala"), *argv)
    assert finished.code == 2
    assert said in " ".join(finished.err.split())
