"""The curve of characters."""

import math

import pytest

from launch.local.curve import MOST_POINTS, Curve

_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # of a column, the lowest first


def _dots(line: str) -> list[int]:
    """Of each cell of a line the dots that are set, as one number."""
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
