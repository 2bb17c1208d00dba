"""README.md's commands, in order: an agent is trained, resumed, evaluated, filmed, reported."""

import json
import pathlib
import subprocess
import sys

import pytest

from studies import pages, walkthrough

PAGE = f"""\
# A page
## {walkthrough.SECTION}

    python -m launch.train --env=atari:pong --run_dir=runs/pong --max_actor_steps=4000  # words
    python -m launch.evaluate --run_dir=runs/pong --episodes=30 --video

## Another

    python -m launch.report
"""


def test_commands_are_the_pages_but_for_folder_and_scale() -> None:
    assert list(walkthrough.commands(PAGE, "/x", 0.01)) == [
        [
            *(sys.executable, "-m", "launch.train", "--env=atari:pong", "--run_dir=/x/runs/pong"),
            "--max_actor_steps=40",
        ],
        [
            *(sys.executable, "-m", "launch.evaluate", "--run_dir=/x/runs/pong"),
            *("--episodes=1", "--video"),
        ],
    ]


@pytest.mark.slow
@pytest.mark.launchpad
@pytest.mark.repository
def test_the_readme_makes_an_agent(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "studies.walkthrough", str(tmp_path)]
    done = subprocess.run(
        [*command, "--scale=0.2"],
        cwd=pages.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run_dir,) = (tmp_path / "runs").iterdir()
    manifest = json.loads((run_dir / "checkpoints" / "manifest.json").read_text())
    assert manifest["actor_steps"] >= 0.2 * 60_000
    assert "mean return" in done.stdout
    assert list((run_dir / "evaluations").glob("*.csv"))
    assert list((run_dir / "videos").glob("*.mp4"))
    assert (run_dir / "report" / "index.html").exists()
