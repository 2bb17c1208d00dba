"""What counts as a command of a page, and what a shell makes of it."""

import pytest

from studies.pages import commands, section

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


def test_a_variable_of_no_one_is_told() -> None:
    with pytest.raises(ValueError, match="GAMES_OF_NO_ONE: unbound variable"):
        commands(PAGE)


@pytest.mark.parametrize("wrong", ["python -m x; pip install y", "make 'x"])
def test_what_is_no_script_is_told(wrong: str) -> None:
    with pytest.raises(ValueError, match="is no script"):
        commands(f"A page.\n\n    {wrong}\n")


def test_a_section_ends_where_the_next_begins() -> None:
    text = "# Page\n## One\na\n### Part\nb\n## Two\nc\n"
    assert section(text, "One") == "a\n### Part\nb\n"
    assert section(text, "Two") == "c\n"
    with pytest.raises(ValueError, match="Expected a heading '## Part'"):
        section(text, "Part")
