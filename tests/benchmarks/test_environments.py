"""The table of docs/environments.md is of what happens here."""

import pytest

from benchmarks import environments
from tests.docs.pages import ROOT

LINES = (ROOT / "docs" / "environments.md").read_text().splitlines()


def _documented(row: environments.Row) -> bool:
    return f"| {' | '.join(row)} |" in LINES


@pytest.mark.parametrize("name", environments.OBSERVATIONS)
def test_observations(name: str) -> None:
    row = environments.space_row(name)
    assert _documented(row), row


@pytest.mark.parametrize("name", environments.ACTIONS)
def test_actions(name: str) -> None:
    row = environments.space_row(name, acting=True)
    assert _documented(row), row


@pytest.mark.parametrize("name", environments.SUITES)
def test_suites(name: str) -> None:
    missing = environments.missing_package(name)
    if missing:
        pytest.skip(f"{missing} is not installed; docs/environments.md says how.")
    row = environments.suite_row(name)
    assert _documented(row), row


def test_the_page_has_a_line_for_each() -> None:
    lines = [line for line in LINES if line.startswith("| ")]
    first = lines.index(next(line for line in lines if line.startswith("| observations |")))
    rows = (environments.OBSERVATIONS, environments.ACTIONS, environments.SUITES)
    assert len(lines[first:]) == 3 + sum(map(len, rows))
