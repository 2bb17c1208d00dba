"""The parts of a page, on a desk and on a phone."""

import pathlib
import re

import pytest

from analysis.report import page
from tests.analysis.report.pages import parsed


@pytest.mark.parametrize("columns", [2, page.FEW, page.FEW + 1, 9])
def test_of_a_table_of_many_columns_a_phone_shows_each_cell_with_its_name(columns: int) -> None:
    made = page.Page("title", pathlib.Path())
    made.section("Part")
    made.table([f"column <{i}>" for i in range(columns)], [[str(i) for i in range(columns)]] * 2)
    text = made.document()
    names = re.findall(r'<td data-name="(.*?)">', text)
    many = columns > page.FEW
    assert names == [f"column &lt;{i}&gt;" for i in range(1, columns)] * 2 * many
    assert ('class="many"' in text) == many


def test_nothing_keeps_a_narrow_page_wider_than_it_is() -> None:
    """Words wrap there, tables and commands too."""
    sheet = pathlib.Path(page.__file__).with_name("style.css").read_text()
    narrow = sheet.partition("@media (max-width: 40rem) {")[2]
    rules = dict(re.findall(r"^  (\S.*?) \{ (.*?) \}$", narrow, re.MULTILINE))
    assert "white-space: normal" in rules["th, td"]
    assert "white-space: pre-wrap" in rules["pre"]
    assert "display: block" in rules[".many, .many tbody, .many tr, .many th, .many td"]
    assert sheet.count("{") == sheet.count("}")


def test_what_there_is_much_of_is_folded() -> None:
    made = page.Page("title", pathlib.Path())
    made.section("Part")
    for count in (page.MANY, page.MANY + 1):
        with made.folded(count, "tasks"):
            made.text("inside")
    assert parsed(made).sections["Part"].text.count("inside") == 2
    assert made.document().count("<details><summary>All 9 tasks</summary>") == 1


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0:00"), (59.9, "0:00"), (3_725.0, "1:02"), (360_000.0, "100:00"), (float("nan"), "–")],
)
def test_a_duration_is_hours_and_minutes(seconds: float, shown: str) -> None:
    assert page.duration(seconds) == shown
