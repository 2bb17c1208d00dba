"""The printed lines of an evaluation; its progress, a bar on a terminal and lines elsewhere."""

import io
import types

import numpy as np
import pytest
from rich.console import Console

from analysis.playing import intervals, session
from environments import scores

SCORES = scores.SCORES["atari:pong"]
RETURNS = np.array([20.0, 21.0, 19.0, 21.0])


def test_a_task_with_human_scores() -> None:
    line = session.of_task("r2d2", "atari:pong", RETURNS)
    low, high = intervals.of_mean(RETURNS)
    span = SCORES["human"] - SCORES["random"]
    normalised = [(x - SCORES["random"]) / span for x in (20.25, low, high)]
    assert line == (
        "r2d2 on atari:pong: mean return 20.25 over 4 episodes "
        f"[{low:.2f}, {high:.2f}], from 19.0 to 21.0; human-normalised {normalised[0]:.1%} "
        f"[{normalised[1]:.1%}, {normalised[2]:.1%}]"
    )


def test_a_task_without_and_a_single_episode() -> None:
    assert session.of_task("impala", "catch", np.array([-1.0])) == (
        "impala on catch: mean return -1.00 over 1 episodes, from -1.0 to -1.0"
    )


def test_a_suite_is_summed_up_over_the_tasks_that_have_human_scores() -> None:
    returns = {"atari:pong": RETURNS, "catch": RETURNS, "atari:breakout": 10 * RETURNS}
    (line,) = session.of_suite("popart", returns)
    means = [scores.human_normalised(task, returns[task].mean()) for task in returns]
    found = scores.aggregate([mean for mean in means if mean is not None])
    assert line.startswith("popart, human-normalised over 2 tasks: ")
    median, mean, capped = line.partition(": ")[2].split("], ")
    assert median.startswith(f"median {found.median:.1%} [")
    assert mean.startswith(f"mean {found.mean:.1%} [")
    assert capped.startswith(f"mean capped {found.mean_capped:.1%} [")


def test_one_task_or_none_with_human_scores_is_no_suite() -> None:
    for tasks in (("catch", "memory:recall"), ("atari:pong", "catch")):
        assert not list(session.of_suite("popart", dict.fromkeys(tasks, RETURNS)))


def test_single_episodes_have_no_interval_in_a_suite_either() -> None:
    one = dict.fromkeys(("atari:pong", "atari:breakout"), RETURNS[:1])
    (line,) = session.of_suite("popart", one)
    assert "[" not in line


def _console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=120), text


@pytest.mark.parametrize("terminal", [True, False])
def test_what_cannot_redraw_has_a_line_now_and_then(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")  # where a terminal moves no cursor
    clock = iter(range(0, 100, 4))  # a step takes four seconds, and a line comes every ten
    monkeypatch.setattr(session, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    console, text = _console(terminal=terminal)
    with session.progressing("atari:pong", 30, console) as step:
        for _ in range(5):
            step(1_000, 2)
    assert text.getvalue().splitlines() == ["atari:pong: 6 of 30 episodes, 3,000 steps"]


def test_a_terminal_has_a_bar_that_goes_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # whatever the tests' own is
    console, text = _console(terminal=True)
    with session.progressing("atari:pong", 4, console) as step:
        step(1_000, 3)
        step(500, 1)
    shown = text.getvalue()
    assert "atari:pong" in shown
    assert "4/4" in shown
    assert "1,500 steps" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the last line is erased
