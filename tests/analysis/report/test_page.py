"""The parts of a page, on a desk and on a phone."""

import re

import pytest

from analysis.report import page, style


@pytest.mark.parametrize("columns", [2, page.FEW, page.FEW + 1, 9])
def test_of_a_table_of_many_columns_a_phone_shows_each_cell_with_its_name(columns: int) -> None:
    header = [f"column <{i}>" for i in range(columns)]
    body = page.table(header, [[str(i) for i in range(columns)]] * 2)
    names = re.findall(r'<td data-name="(.*?)">', body)
    many = columns > page.FEW
    assert names == [f"column &lt;{i}&gt;" for i in range(1, columns)] * 2 * many
    assert ('class="many"' in body) == many


def test_nothing_keeps_a_narrow_page_wider_than_it_is() -> None:
    """Words wrap there, tables and commands too."""
    narrow = style.SHEET.partition("@media (max-width: 40rem) {")[2]
    rules = dict(re.findall(r"^  (\S.*?) \{ (.*?) \}$", narrow, re.MULTILINE))
    assert "white-space: normal" in rules["th, td"]
    assert "white-space: pre-wrap" in rules["pre"]
    assert "display: block" in rules[".many, .many tbody, .many tr, .many th, .many td"]
    assert style.SHEET.count("{") == style.SHEET.count("}")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0:00"), (59.9, "0:00"), (3_725.0, "1:02"), (360_000.0, "100:00"), (float("nan"), "–")],
)
def test_a_duration_is_hours_and_minutes(seconds: float, shown: str) -> None:
    assert page.duration(seconds) == shown
