"""A bar on a terminal, lines elsewhere, and results on neither."""

import io

import pytest
from rich.console import Console

from analysis.playing import progress_bar
from analysis.playing.progress_bar import Progress


def _console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=120), text


def test_no_terminal_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100, 4))  # a step takes four seconds, and a line comes every ten
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: next(clock))
    console, text = _console(terminal=False)
    with Progress("atari:pong", 30, console) as progress:
        for _ in range(5):
            progress.step(1_000, 2)
    assert text.getvalue().splitlines() == [
        "atari:pong: 6 of 30 episodes, 3,000 steps",
    ]


def test_a_terminal_has_a_bar_that_goes_when_it_is_full() -> None:
    console, text = _console(terminal=True)
    with Progress("atari:pong", 4, console) as progress:
        progress.step(1_000, 3)
        progress.step(500, 1)
    shown = text.getvalue()
    assert "atari:pong" in shown
    assert "4/4" in shown
    assert "1,500 steps" in shown
    assert shown.rstrip().endswith("\x1b[2K")  # the last line is erased
