"""What a field is declared with is what is checked, and what can be asked of it."""

import dataclasses
import math
import re
from typing import Any, Literal

import pytest

from agents import fields
from agents.fields import field, required
from agents.requirements import FRACTION, or_none, whole
from run_folder import catalogue
from run_folder.settings import Settings

Colour = Literal["red", "blue"]


@dataclasses.dataclass(frozen=True)
class Declared:
    """Of nothing."""

    e: int = required(whole(1), "E.", local=2, paper=3)
    a: int = field(1, whole(1, 9), "A.")
    b: int = 0
    c: Colour = field("red", None, "C.")
    d: float | None = field(0.5, or_none(FRACTION), "D.")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, ""),
        (dict(a=9, b=-1, c="blue", d=None), ""),
        (dict(e=0), "e must be a whole number from 1 to 9,223,372,036,854,775,807, got 0."),
        (dict(a=2.0), "a must be a whole number from 1 to 9, got 2.0."),
        (dict(a="2"), "a must be a whole number from 1 to 9, got '2'."),
        (dict(a=10, c="green"), "a must be a whole number from 1 to 9, got 10."),
        (dict(b=2.5), "b must be a whole number, got 2.5."),
        (dict(c="green"), "c must be one of red, blue, got 'green'."),
        (dict(d=math.nan), "d must be a number from 0 to 1 or None, got nan."),
        (dict(d=5), "d must be a number from 0 to 1 or None, got 5."),
    ],
)
def test_the_first_wrong_field_is_named(values: dict[str, Any], said: str) -> None:
    settings = Declared(**{"e": 1, **values})
    if not said:
        fields.check(settings)
        return
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        fields.check(settings)


def test_what_was_declared_can_be_asked_for() -> None:
    declared = fields.declared(Declared)
    assert list(declared) == ["e", "a", "b", "c", "d"]
    assert declared["e"].presets == {"local": 2, "paper": 3}
    assert declared["e"].default is dataclasses.MISSING
    assert declared["d"].annotation == float | None
    assert (declared["a"].meaning, declared["b"].meaning) == ("A.", "")
    assert declared["b"].requirement.text == "a whole number"


@pytest.mark.parametrize(
    "kind", [Settings, *(type(entry.config) for entry in catalogue.AGENTS.values())]
)
def test_every_setting_says_what_it_is(kind: type) -> None:
    for name, declared in fields.declared(kind).items():
        assert declared.meaning, name
        assert declared.meaning.endswith("."), name
