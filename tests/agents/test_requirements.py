"""Requirements on both sides of their bounds, and the sentence that refuses a field."""

import types
from typing import Any, Literal

import pytest

from agents.requirements import (
    FRACTION,
    LAYER_SIZES,
    NOT_NEGATIVE,
    POSITIVE,
    Requirement,
    check_fields,
    one_of,
    or_none,
    whole,
)

Colour = Literal["red", "blue"]


@pytest.mark.parametrize(
    ("requirement", "good", "bad"),
    [
        (whole(1), [1, 2], [0, -1, 1.0, True, "1", None]),
        (one_of(Colour), ["red", "blue"], ["green", None]),
        (or_none(POSITIVE), [None, 1e-9], [0, -1.0]),
        (POSITIVE, [1e-9, 3], [0, -1.0, float("nan")]),
        (NOT_NEGATIVE, [0, 3], [-1e-9, float("nan")]),
        (FRACTION, [0, 0.5, 1], [-1e-9, 1.001, float("nan")]),
        (LAYER_SIZES, [(1,), (8, 4)], [(), (8, 0), (8.0,)]),
    ],
)
def test_what_holds_and_what_does_not(
    requirement: Requirement, good: list[Any], bad: list[Any]
) -> None:
    assert all(requirement.holds(value) for value in good)
    assert not any(requirement.holds(value) for value in bad)


def test_the_first_wrong_field_is_named() -> None:
    config = types.SimpleNamespace(a=1, b=0, c="green")
    check_fields(config, {"a": whole(1)})
    with pytest.raises(ValueError, match=r"^b must be a whole number of at least 1, got 0\.$"):
        check_fields(config, {"a": whole(1), "b": whole(1), "c": one_of(Colour)})
    with pytest.raises(ValueError, match=r"^c must be one of red, blue, got 'green'\.$"):
        check_fields(config, {"c": one_of(Colour)})
    with pytest.raises(ValueError, match=r"^b must be greater than 0 or None, got 0\.$"):
        check_fields(config, {"b": or_none(POSITIVE)})
