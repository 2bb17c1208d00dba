"""Values as they are typed, and names as they are mistyped."""

import decimal
import difflib
from collections.abc import Iterable
from typing import Any

_MOST_DIGITS = 30  # that are written out of a power of ten


def whole_number(text: str) -> int:
    """The whole number that a text stands for, also as a multiple of a power of ten: 2.5e6.

    Raises:
      ValueError: it stands for none.
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = decimal.Decimal(text)
        if number.adjusted() < _MOST_DIGITS and number == number.to_integral_value():
            return int(number)
    except (decimal.InvalidOperation, ValueError, OverflowError):  # no number, or not a finite one
        pass
    raise ValueError(f"a whole number was expected, such as 1000000 or 1e6, got {text!r}")


def value_of(name: str, text: str, annotation: Any) -> Any:
    """The value that a text stands for.

    Args:
      name: of a field, for the sentence.
      text: as it was typed.
      annotation: of the field.

    Raises:
      ValueError: when the text is no such value.
    """
    kind = annotation.__name__ if type(annotation) is type else str(annotation)
    or_none = " or none" * ("None" in kind)
    if or_none and text.lower() == "none":
        return None
    kind = kind.removesuffix(" | None")
    try:
        if kind == "bool":
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        if kind in ("int", "float"):
            return whole_number(text) if kind == "int" else float(text)
        if kind.startswith("tuple["):
            parts = [part for part in text.split(",") if part] if text.lower() != "none" else []
            return tuple(map(whole_number, parts)) if kind.startswith("tuple[int") else tuple(parts)
    except (ValueError, KeyError):
        raise ValueError(f"{name} must be of type {kind}{or_none}, got {text!r}.") from None
    return text


def typed(value: Any) -> str:
    """The text that `value_of` makes this value of; a list stands for a tuple, as in JSON."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return ",".join(map(typed, value)) if isinstance(value, list | tuple) else str(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like another, or that it has the initials of; or nothing."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    near += [each for each in names if name == "".join(part[:1] for part in each.split("_"))]
    return next(iter(near), "")


def suggest(name: str, known: Iterable[str]) -> str:
    """` Did you mean "...?"` for the nearest known name, or nothing."""
    near = nearest(name, known)
    return f" Did you mean {near!r}?" if near else ""
