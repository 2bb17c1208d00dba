"""docs/r2d2.md has the returns on memory tasks that docs/data has."""

import pytest

from studies import arguments, memory

pytestmark = pytest.mark.repository


def test_the_page_shows_what_the_data_says() -> None:
    points = memory.read(arguments.DOCS / "data" / "memory.csv")
    assert set(points) == set(memory.RUNS)
    assert memory.table(points) in (arguments.DOCS / "r2d2.md").read_text()
