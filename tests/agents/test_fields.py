"""Declared fields are checked: values on both sides of every requirement's bounds."""

import dataclasses
import math
import re
import typing
from typing import Any, Literal

import pytest

from agents import fields
from agents.fields import field, required
from agents.impala.config import Config as Impala
from agents.popart.config import Config as PopArt
from agents.requirements import (
    COUNT,
    EXPONENT,
    FRACTION,
    LARGEST,
    LAYER_SIZES,
    NOT_NEGATIVE,
    POSITIVE,
    Requirement,
    check_layers,
    number,
    of_type,
    one_of,
    or_infinite,
    or_none,
    whole,
)
from r2d2.config import Config as R2D2
from run_folder import catalogue
from run_folder.settings import Settings

Colour = Literal["red", "blue"]
INFINITE, NAN = float("inf"), float("nan")
MAY_BE_INFINITE = {"rho_bar", "c_bar", "scale_max"}
MAY_BE_NEGATIVE = {"forget_bias", "log_sigma_min", "log_sigma_max", "munchausen_l0"}


@pytest.mark.parametrize(
    ("requirement", "good", "bad"),
    [
        (whole(1), [1, 2, LARGEST], [0, -1, 1.0, True, "1", None, LARGEST + 1]),
        (whole(0, 8), [0, 8], [-1, 9, 10**400]),
        (number(0.5, 8), [0.5, 1, 8], [0.49, 9, True, NAN, INFINITE, -INFINITE, "1", None]),
        (one_of(Colour), ["red", "blue"], ["green", None, ["red"]]),
        (one_of(("red", "blue")), ["red"], ["green"]),
        (or_none(POSITIVE), [None, 1e-9], [0, -1.0]),
        (or_infinite(POSITIVE), [INFINITE, 1e-9], [0, -INFINITE, NAN]),
        (POSITIVE, [1e-9, 3, 1e9], [0, -1.0, 1e-30, 1e30, 1e308, INFINITE, NAN]),
        (NOT_NEGATIVE, [0, 3], [-1e-9, INFINITE, NAN]),
        (FRACTION, [0, 0.5, 1], [-1e-9, 1.001, NAN]),
        (EXPONENT, [0, 0.9, 10], [-0.1, 11, INFINITE]),
        (COUNT, [1, 10**12], [0, 2**63]),
        (LAYER_SIZES, [(1,), (8, 4)], [(), (8, 0), (8.0,), (10**8,), (8,) * 65]),
    ],
)
def test_what_holds_and_what_does_not(
    requirement: Requirement, good: list[Any], bad: list[Any]
) -> None:
    assert all(requirement.holds(value) for value in good)
    assert not any(requirement.holds(value) for value in bad)


@pytest.mark.parametrize(
    ("annotation", "text", "good", "bad"),
    [
        (int, "a whole number", [0, -5], [True, 1.0, "1", None, [1]]),
        (float, "a number", [0, 0.5, INFINITE], [False, NAN, "0.5", None]),
        (bool, "true or false", [True, False], [0, 1, "true", None]),
        (str, "text", ["", "x"], [None, 1, b"x"]),
        (Colour, "one of red, blue", ["red"], ["green", None, 1, {}]),
        (float | None, "a number or None", [None, 1, 0.5], ["none", True]),
        (int | None, "a whole number or None", [None, 1], [0.5]),
        (
            tuple[int, ...],
            "several, each a whole number",
            [(), (1, 2)],
            [[1], (1.5,), ("1",), 1, None],
        ),
        (
            dict[str, int],
            "an object, each a whole number",
            [{}, {"a": 1}],
            [{"a": 1.5}, {"a": None}, [], None],
        ),
        (Any, "anything", [None, 1, []], []),
    ],
)
def test_a_fields_annotation_says_what_it_may_hold(
    annotation: Any, text: str, good: list[Any], bad: list[Any]
) -> None:
    requirement = of_type(annotation)
    assert requirement.text == text
    assert all(requirement.holds(value) for value in good)
    assert not any(requirement.holds(value) for value in bad)


@pytest.mark.parametrize("kind", [R2D2, Impala, PopArt])
@pytest.mark.parametrize("value", ["1", [1], {}, None, True, NAN, INFINITE, -1, 10**20, 2.0**70])
def test_no_field_of_a_config_takes_what_it_cannot_be(kind: type, value: Any) -> None:
    annotations = typing.get_type_hints(kind)
    for name in (each.name for each in dataclasses.fields(kind)):
        may_be = {
            "None": type(None) in typing.get_args(annotations[name]),
            "True": annotations[name] is bool,
            "inf": name in MAY_BE_INFINITE,
            "-1": name in MAY_BE_NEGATIVE,
        }
        if not may_be.get(str(value)):
            with pytest.raises(ValueError, match=rf"^{name} must be .*, got "):
                kind(**{name: value})


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (((256,), 512, 512, 0), ""),
        (((65_536,), 0, 64, 0), ""),
        (((), 8_000, 0, 0), ""),
        (((256,), 256, 0, 500), ""),
        (((65_536, 65_536), 0, 0, 0), "hidden_sizes, lstm_size must come to 268,435,456 weights"),
        (((8,), 65_536, 0, 0), "at most between them, got 17,181,966,336."),
        (((8,), 8_000, 65_536, 0), "hidden_sizes, lstm_size and head_size must come to"),
        (
            ((256,), 1_024, 0, 1_000),
            "policy_lag must be at most 409 for 5,242,880 weights, .* 1000",
        ),
    ],
)
def test_layers_that_no_machine_holds_are_refused_together(
    sizes: tuple[tuple[int, ...], int, int, int], said: str
) -> None:
    if not said:
        check_layers(*sizes)
        return
    with pytest.raises(ValueError, match=said):
        check_layers(*sizes)


@pytest.mark.parametrize(
    ("core", "weights"),
    [
        ("lstm", 4 * 8_192 * (8_192 + 1_024)),
        ("gru", 3 * 8_192 * (8_192 + 1_024)),
        ("lru", 8_192 * (6 * 8_192 + 1_024)),
        ("mingru", 2 * 8_192 * 1_024),
        ("my_package.cores:Core", 4 * 8_192 * (8_192 + 1_024)),
    ],
)
def test_each_core_has_weights_of_its_own(core: str, weights: int) -> None:
    if weights <= 2**28:
        check_layers((1_024,), 8_192, core=core)
        return
    with pytest.raises(ValueError, match=f"between them, got {weights:,}"):
        check_layers((1_024,), 8_192, core=core)


@pytest.mark.parametrize("core", ["gru", "my_package.cores:Core"])
def test_a_core_without_units_is_refused(core: str) -> None:
    check_layers((8,), 0)
    with pytest.raises(ValueError, match=f"core={core} needs an lstm_size of at least 1"):
        check_layers((8,), 0, core=core)


@dataclasses.dataclass(frozen=True)
class Declared:
    """A dataclass with a field of each kind."""

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
