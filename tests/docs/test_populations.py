"""docs/populations.md has the tables that docs/data gives."""

import pytest

from studies import arguments, populations, populations_results
from studies.populations import STUDIES

pytestmark = pytest.mark.repository


@pytest.mark.parametrize("name", STUDIES)
def test_the_page_shows_what_the_data_says(name: str) -> None:
    page = (arguments.DOCS / "populations.md").read_text()
    told = STUDIES[name].tell(populations_results.parse(populations.data(name)))
    tables = [part for part in told.split("\n\n") if part.startswith("|")]
    assert tables
    for table in tables:
        assert table in page
