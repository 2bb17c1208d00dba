"""Values as they are typed, and names as they are mistyped."""

import difflib
from collections.abc import Iterable
from typing import Any


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
            return int(text) if kind == "int" else float(text)
        if kind.startswith("tuple["):
            parts = [part for part in text.split(",") if part] if text.lower() != "none" else []
            return tuple(map(int, parts)) if kind.startswith("tuple[int") else tuple(parts)
    except (ValueError, KeyError):
        raise ValueError(f"{name} must be of type {kind}{or_none}, got {text!r}.") from None
    return text


def typed(value: Any) -> str:
    """The text that `value_of` makes this value of; a list stands for a tuple, as in JSON."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return ",".join(map(typed, value)) if isinstance(value, list | tuple) else str(value)


def suggest(name: str, known: Iterable[str]) -> str:
    """` Did you mean "...?"` for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
