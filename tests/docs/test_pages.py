"""The commands of a page as a shell reads them; README's are run in order."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.docs import walkthrough
from tests.docs.pages import ROOT, commands, section

PAGE = """\
# A page

Type `make test`, or `python -m launch.evaluate
--run_dir=runs/a`; `python -m launch.report` draws. Rows stand after `python -m benchmarks.` alone.

    GAMES=atari:pong,atari:qbert
    python -m launch.train --env=$GAMES \\
        --run_dir="two words"   # a comment
    for size in 1 4; do
      python -m benchmarks.learner --r2d2.length=$size --python=<python> | tail -1 >> docs/data/x
    done

    a drawing of python -m launch.train

```sh
make train ARGS="--seed=1 --resume"
python -m launch.train --env=$GAMES_OF_NO_ONE
```

```python
make = "no command"
```
"""


def test_blocks_and_sentences_hold_commands() -> None:
    text = PAGE.replace("$GAMES_OF_NO_ONE", "catch")
    assert commands(text) == [
        ("make", "train", "ARGS=--seed=1 --resume"),
        ("python", "-m", "launch.train", "--env=catch"),
        ("python", "-m", "launch.train", "--env=atari:pong,atari:qbert", "--run_dir=two words"),
        ("python", "-m", "benchmarks.learner", "--r2d2.length=1", "--python=placeholder"),
        ("python", "-m", "benchmarks.learner", "--r2d2.length=4", "--python=placeholder"),
        ("make", "test"),
        ("python", "-m", "launch.evaluate", "--run_dir=runs/a"),
        ("python", "-m", "launch.report", "--help"),
    ]


def test_what_is_no_script_is_told() -> None:
    with pytest.raises(ValueError, match="GAMES_OF_NO_ONE: unbound variable"):
        commands(PAGE)
    for wrong in ("python -m x; pip install y", "make 'x"):
        with pytest.raises(ValueError, match="is no script"):
            commands(f"A page.\n\n    {wrong}\n")


def test_a_section_ends_where_the_next_begins() -> None:
    text = "# Page\n## One\na\n### Part\nb\n## Two\nc\n"
    assert section(text, "One") == "a\n### Part\nb\n"
    assert section(text, "Two") == "c\n"
    with pytest.raises(ValueError, match="Expected a heading '## Part'"):
        section(text, "Part")


README = f"""\
# A page
## {walkthrough.SECTION}

    python -m launch.train --env=atari:pong --run_dir=runs/pong --max_actor_steps=4000  # words
    python -m launch.evaluate --run_dir=runs/pong --episodes=30 --video

## Another

    python -m launch.report
"""


def test_commands_are_the_pages_but_for_folder_and_scale() -> None:
    assert list(walkthrough.commands(README, "/x", 0.01)) == [
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
    command = [sys.executable, "-m", "tests.docs.walkthrough", str(tmp_path)]
    done = subprocess.run(
        [*command, "--scale=0.2"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (run_dir,) = (tmp_path / "runs").iterdir()
    manifest = json.loads((run_dir / "checkpoints" / "manifest.json").read_text())
    assert manifest["actor_steps"] >= 0.2 * 60_000
    assert "mean return" in done.stdout
    assert list((run_dir / "evaluations").glob("*.csv"))
    assert list((run_dir / "videos").glob("*.mp4"))
    assert (run_dir / "report" / "index.html").exists()
