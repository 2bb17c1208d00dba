"""The launching terminal's view, and its curve."""

import errno
import io
import math
import os
import pathlib
import re
from typing import Any

import pytest
from rich.console import Console

from launch.local import view
from launch.local.view import MOST_POINTS, Curve
from run_folder import task_returns
from run_folder.layout import RunFolder
from tests.launch.local.made_up import progress


def _drawn(
    *states: dict[str, Any], width: int = 80, is_terminal: bool = True, **options: Any
) -> str:
    """The output of a view that shows these states."""
    file = io.StringIO()
    console = Console(force_terminal=is_terminal, file=file, width=width)
    with view.View("r2d2 on catch", console, **options) as drawn:
        for state in states:
            drawn.show(state)
    return file.getvalue()


def test_the_view_shows_rates_replay_lag_returns_and_time() -> None:
    assert view.rows(progress()) == [
        ("actor steps", "12,345  (830/s)"),
        ("replay", "1,234 items"),
        ("replays per observation", "2.98"),
        ("episodes", "90"),
        ("recent return", "-20.25"),
        ("updates", "678  (6.25/s)"),
        ("parameter lag", "17.5 updates"),
        ("loss", "0.1235"),
        ("evaluated return", "-19.5  at update 600"),
        ("time", "1:02:05"),
    ]


_LEFT_OUT = {f"dmlab:{level}": 1 for level in "abcdef"}
AGGREGATES = dict(
    normalised_tasks=2, median_normalised=0.25, mean_normalised=1.5, mean_capped=0.625
)
_GOAL = dict(until_return=0.5, evaluations=1, in_a_row=1, is_reached=True)
_PLAYED = dict(learner_steps=600, **AGGREGATES)


@pytest.mark.parametrize(
    ("changes", "place", "row"),
    [
        (dict(acting=[137, 256]), 0, ("acting", "137 of 256 actors")),
        (dict(replay_size=math.nan), 1, ("replay", "busy")),
        (dict(filling={"r2d2": [1, 400]}), 1, ("replay", "1 of 400 items before learning")),
        (
            dict(filling={"r2d2": [130, 400], "mine": [1, 2_000]}),
            1,
            ("replay", "130 of 400 items for r2d2, 1 of 2,000 items for mine before learning"),
        ),
        (dict(left_out={"dmlab:a": 3}), 4, ("left out", "dmlab:a by 3")),
        (
            dict(left_out=_LEFT_OUT),
            4,
            ("left out", "dmlab:a by 1, dmlab:b by 1, dmlab:c by 1, dmlab:d by 1, 2 more"),
        ),
        (dict(returns={"catch": math.nan}), 4, ("recent return", "-")),
        (
            dict(learners=dict(r2d2=dict(learner_steps=0, waiting_for_peers=0.123))),
            6,
            ("waiting for peers", "12% of the time"),
        ),
        (
            dict(evaluations=dict(r2d2=_PLAYED)),
            8,
            (
                "evaluated return",
                "median 25.0%, mean 150.0%, capped 62.5% of 2 tasks  at update 600",
            ),
        ),
        (
            dict(learners=dict(r2d2=dict(learner_steps=0)), evaluations={}),
            -2,
            ("updates", "0  (6.25/s)"),
        ),
        (dict(goal=_GOAL), -2, ("until a return of", "0.5")),
        (
            dict(goal=_GOAL | dict(evaluations=3)),
            -2,
            ("until a return of", "0.5  in 1 of 3 evaluations in a row"),
        ),
        (
            dict(reason="100 actor steps were reached"),
            -1,
            ("ending", "100 actor steps were reached; saving"),
        ),
    ],
)
def test_what_is_known_has_a_row(changes: dict[str, Any], place: int, row: tuple[str, str]) -> None:
    assert view.rows(progress(**changes))[place] == row


def test_lost_environments_and_restarts_are_shown_where_there_are_any() -> None:
    shown = view.rows(progress(counts=dict(environments_lost=3)), restarts=2)
    assert shown[4] == ("environments lost", "3, all replaced")
    assert shown[-1] == ("restarts", "2")


@pytest.mark.parametrize(("width", "drawn"), [(80, False), (140, True), (300, True)])
def test_a_wide_terminal_shows_the_curve_of_returns(width: int, drawn: bool) -> None:
    text = _drawn(progress(), width=width, earlier=[(0, -1.0), (9_000, 0.5)])
    assert ("0 to 12,345 steps: recent return" in text) == drawn
    assert "recent return" in text
    lines = [line for line in re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", text).splitlines() if line]
    assert max(map(len, lines)) <= width


def test_a_resumed_runs_curve_begins_with_its_logs(tmp_path: pathlib.Path) -> None:
    folder = RunFolder(tmp_path)
    assert view.earlier(folder) == []
    folder.logs.mkdir()
    folder.log("actor").write_text("actor_steps,episode_return\n10,nan\n20,-1\n30,0.5\n")
    assert view.earlier(folder) == [(20.0, -1.0), (30.0, 0.5)]
    folder.log("tasks").write_text("actor_steps,median_normalised\n25,0.25\n")
    assert view.earlier(folder) == [(25.0, 25.0)]
    folder.log("tasks").write_text("actor_steps,return/catch,return/b\n25,-0.7,940\n")
    assert view.earlier(folder) == []


class _Gone(io.StringIO):
    """The standard output of a process whose terminal was closed."""

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_that_is_gone_ends_nothing(is_terminal: bool) -> None:
    console = Console(force_terminal=is_terminal, file=_Gone(), width=80)
    with view.View("r2d2 on catch", console) as drawn:
        drawn.show(progress())
        drawn.show(progress())


def test_a_reader_that_is_gone_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        with view.View("r2d2 on catch") as drawn:
            drawn.show(progress())
            drawn.tell("It goes on.")


def test_the_view_shows_each_of_several_learners() -> None:
    learners = dict(
        r2d2=dict(learner_steps=678, loss=0.5, parameter_lag=2.0), impala=dict(learner_steps=1_234)
    )
    evaluations = dict(impala=dict(learner_steps=1_200, episode_return=0.5))
    shown = view.rows(progress(learners=learners, evaluations=evaluations))
    assert [row for row in shown if ":" in row[0]] == [
        ("r2d2: updates", "678  (6.25/s)"),
        ("r2d2: parameter lag", "2 updates"),
        ("r2d2: loss", "0.5"),
        ("impala: updates", "1,234"),
        ("impala: evaluated return", "0.5  at update 1,200"),
    ]


NAN = float("nan")

# No task with a human score has been played; others may have been.
NONE_PLAYED = dict.fromkeys(AGGREGATES, NAN) | dict(normalised_tasks=0)


@pytest.mark.parametrize(
    ("returns", "aggregates", "shown"),
    [
        (
            {"catch": 0.5, "catch:large_rewards": NAN},
            {},
            [
                ("tasks", "2, an episode has ended in 1"),
                ("recent return, catch", "0.5"),
                ("recent return, catch:large_rewards", "-"),
            ],
        ),
        (
            {f"atari:{i}": 1.0 if i < 3 else NAN for i in range(57)},
            AGGREGATES,
            [
                ("tasks", "57, an episode has ended in 3"),
                ("human-normalised", "median 25.0%, mean 150.0%, capped 62.5% of 2 tasks"),
            ],
        ),
        (
            {f"atari:{i}": NAN for i in range(57)},
            NONE_PLAYED,
            [("tasks", "57, an episode has ended in 0"), ("human-normalised", "-")],
        ),
        (
            {"catch": 0.5, "atari:pong": NAN},
            NONE_PLAYED,
            [
                ("tasks", "2, an episode has ended in 1"),
                ("human-normalised", "-"),
                ("recent return, catch", "0.5"),
                ("recent return, atari:pong", "-"),
            ],
        ),
    ],
)
def test_several_tasks_take_a_few_rows(
    returns: dict[str, float], aggregates: dict[str, float], shown: list[tuple[str, str]]
) -> None:
    rows = view.rows(progress(returns=returns, aggregates=aggregates))
    begin = [name for name, _ in rows].index("tasks")
    assert rows[begin : begin + len(shown)] == shown
    assert rows[begin + len(shown)][0] == "updates"
    assert "recent return" not in dict(rows)


@pytest.mark.parametrize("tasks", [("catch", "gym:Hopper-v5"), ("catch", "atari:pong")])
def test_tasks_without_a_common_unit_are_not_averaged(tasks: tuple[str, ...]) -> None:
    returns = dict(zip(tasks, (-0.7, 940.0), strict=True))
    states = [
        progress(
            returns=returns,
            aggregates=task_returns.aggregates(returns),
            counts=dict(actor_steps=steps),
        )
        for steps in (10, 20, 30)
    ]
    text = _drawn(*states, width=140)
    assert ("steps: recent return" in text) == ("atari:pong" in tasks)
    columns = task_returns.columns(returns)
    evaluation = dict(learner_steps=600, episode_return=469.65, **columns)
    rows = view.rows(progress(evaluations=dict(r2d2=evaluation)))
    assert not any("469" in value for _, value in rows)
    if "atari:pong" not in tasks:
        assert ("evaluated return, gym:Hopper-v5", "940  at update 600") in rows


@pytest.mark.parametrize(
    ("limits", "rates", "left"),
    [
        ((None, None), (830.4, 6.25), "-"),
        ((12_345 + 100, None), (10.0, 6.25), "0:00:10"),
        ((12_345 + 100, 678 + 30), (10.0, 6.0), "0:00:05"),  # the first that is reached
        ((12_345 + 100, 678 + 90), (10.0, 6.0), "0:00:10"),
        ((12_345 + 100, None), (0.0, 6.0), "-"),  # nobody acts yet
        ((12_345 - 100, None), (10.0, 6.0), "0:00:00"),  # passed, while the learner saves
        ((12_345 + 100, None, 3_725.0 + 9), (10.0, 6.0), "0:00:09"),
        ((None, None, 3_725.0 + 90), (0.0, 0.0), "0:01:30"),  # whoever acts
    ],
)
def test_the_time_left_is_that_of_the_first_limit(
    limits: tuple[float | None, ...], rates: tuple[float, float], left: str
) -> None:
    names = ("actor_steps", "learner_steps", "walltime")
    state = progress(
        limits=dict(zip(names, limits, strict=False)), rates=dict(zip(names, rates, strict=False))
    )
    assert view.time_left(state) == left


def test_a_terminal_gets_a_table_that_is_redrawn() -> None:
    text = _drawn(progress(), progress(returns={"atari:pong": -3.0}))
    assert "r2d2 on catch" in text
    assert "\x1b[" in text
    for name, _ in view.rows(progress()):
        assert name in text


@pytest.mark.parametrize("is_terminal", [True, False])
def test_other_outputs_get_a_plain_line_now_and_then(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")  # where a terminal moves no cursor
    (line,) = _drawn(*[progress()] * 5, is_terminal=is_terminal).splitlines()
    assert "\x1b" not in line
    assert line.startswith("actor steps 12,345  (830/s), replay 1,234")
    assert line.endswith("time 1:02:05")


_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # of a column, the lowest first


def _dots(line: str) -> list[int]:
    """The dots that are set in each cell of a line, as one number."""
    return [ord(letter) - 0x2800 for letter in line[9:]]


def _rows(line: str, column: int) -> list[int]:
    """Which rows of dots a line of cells has in a column of them, counted from below."""
    upper = 4 * line.startswith("       3 ")
    cell = _dots(line)[column // 2]
    return [upper + row for row, dot in enumerate(_DOTS[column % 2]) if cell & dot]


def test_a_line_rises_from_the_lower_left_to_the_upper_right() -> None:
    first, second, below = Curve([(0, -1.0), (10, 3.0)]).lines(13, 3)
    assert first.startswith("       3 ")
    assert second.startswith("      -1 ")
    assert below == f"{'':9}0 to"
    # Eight columns and rows of dots: a row higher from column to column, without a gap.
    rows = [_rows(second, column) + _rows(first, column) for column in range(8)]
    assert [min(column) for column in rows] == [0, 0, 1, 2, 3, 4, 5, 6]
    assert [max(column) for column in rows] == list(range(8))


def test_what_is_level_is_drawn_between_the_same_two_numbers() -> None:
    lines = Curve([(0, 2.0), (5, 2.0)]).lines(19, 4)
    assert [line[:8].strip() for line in lines] == ["2", "", "2", ""]
    assert sum(any(_dots(line)) for line in lines[:3]) == 1


def test_what_is_not_known_is_no_point_and_the_newest_of_a_step_stays() -> None:
    points = [(0, math.nan), (3, 1.0), (3, 5.0)]
    assert not Curve(points).is_drawn
    curve = Curve([*points, (4, 2.0)])
    assert curve.is_drawn
    assert curve.lines(19, 3)[0].startswith("       5 ")


def test_what_a_run_that_went_back_had_after_that_is_no_longer_drawn() -> None:
    curve = Curve([(100, 1.0), (200, 9.0), (300, 9.0), (150, 2.0)])
    assert curve.lines(19, 3)[0].startswith("       2 ")


@pytest.mark.parametrize("count", [2 * MOST_POINTS + 1, 2 * MOST_POINTS + 2, 50 * MOST_POINTS])
def test_a_long_run_is_thinned_out_and_keeps_its_ends(count: int) -> None:
    curve = Curve((x, float(x)) for x in range(count))
    assert len(curve._points) <= 2 * MOST_POINTS
    lines = curve.lines(60, 5)
    assert f"0 to {count - 1:,} steps" in lines[-1]
    assert lines[-2].startswith("       0 ")


@pytest.mark.parametrize("value", [-123_456_789.0, 1e-30, 1_234_567.8, -0.000123456])
def test_a_number_has_its_room(value: float) -> None:
    lines = Curve([(0, value), (1, value)]).lines(30, 3)
    assert {len(line) for line in lines[:-1]} == {30}
