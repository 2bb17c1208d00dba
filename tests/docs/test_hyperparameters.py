"""The page of hyperparameters says what is declared."""

import pytest

from agents import fields
from benchmarks import hyperparameters
from run_folder import catalogue
from tests.docs.pages import ROOT

pytestmark = pytest.mark.repository


def test_the_page_is_as_new() -> None:
    """`python -m benchmarks.hyperparameters docs/hyperparameters.md` makes it so."""
    assert (ROOT / "docs" / "hyperparameters.md").read_text() == hyperparameters.page()


def test_every_agent_and_field_has_its_line() -> None:
    page = hyperparameters.page()
    for name, entry in catalogue.AGENTS.items():
        assert f"\n## {name}\n" in page
        for field in fields.declared(type(entry.config)):
            assert f"| `{field}` | " in page
    local = dict(catalogue.AGENTS["r2d2"].local["small"])
    line = next(line for line in page.splitlines() if line.startswith("| `burn_in` | "))
    assert line.split(" | ")[1:7] == ["40", "", "8", "8", "8", str(local["burn_in"])]
