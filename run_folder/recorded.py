"""What the JSON files of a run folder hold, checked: anybody may have edited them.

Every sentence here goes on after the file's name: "runs/pong/config.json cannot be read: ...".
"""

import dataclasses
import difflib
import json
import pathlib
import typing
from collections.abc import Iterable
from typing import Any

from agents.requirements import LARGEST, of_type


def read(path: pathlib.Path) -> Any:
    """The value that a file holds.

    Raises:
      OSError: it cannot be read.
      ValueError: it is no JSON.
    """
    return parse(path.read_text())


def parse(text: str) -> Any:
    """The value that a text stands for.

    Raises:
      ValueError: it is no JSON.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def fields(kind: type, values: Any, *, of: str = "") -> dict[str, Any]:
    """Arguments of a dataclass from an object of JSON. Those that have a default may be missing.

    Args:
      kind: the dataclass, whose annotations say what there has to be.
      values: as JSON gave them: lists where a field is a tuple.
      of: what stands before a field's name in a sentence.

    Raises:
      ValueError: the first value that cannot be, by its name, and what would be right.
    """
    if not isinstance(values, dict):
        what = of.removesuffix(".") or "it"
        raise ValueError(f"{what} must be an object, got {values!r}.")
    annotations = typing.get_type_hints(kind)
    found = {name: _of_python(annotations.get(name), value) for name, value in values.items()}
    for name in values:
        if name not in annotations:
            shown = f"{of}{name}" if name.isidentifier() else repr(f"{of}{name}")
            raise ValueError(f"{shown} is no field here{_nearest(name, annotations)}.")
    for field in dataclasses.fields(kind):
        required = of_type(annotations[field.name])
        if field.name in found:
            if not required.holds(found[field.name]):
                given = values[field.name]
                raise ValueError(f"{of}{field.name} must be {required.text}, got {given!r}.")
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{of}{field.name} is missing: it must be {required.text}.")
    return found


def _of_python(annotation: Any, value: Any) -> Any:
    """A value as its field has it; JSON has no tuples, and may write a float without a point."""
    if isinstance(value, list) and typing.get_origin(annotation) is tuple:
        return tuple(value)
    is_float = annotation is float or float in typing.get_args(annotation)
    if is_float and type(value) is int and abs(value) <= LARGEST:
        return float(value)
    return value


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f", the nearest is {near[0]}" if near else ""
