"""docs/control.md has the returns that docs/data has."""

import pytest

from studies import arguments, control_curves

pytestmark = pytest.mark.repository


def test_the_page_shows_what_the_data_says() -> None:
    assert control_curves.table(arguments.DOCS) in (arguments.DOCS / "control.md").read_text()
