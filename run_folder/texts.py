"""Values as they are typed and as JSON files hold them, and names as they are mistyped.

Anybody may have edited a file of a run folder. So what one holds is checked, and each sentence goes
on after the file's name: "runs/pong/config.json cannot be read: ...".
"""

import contextlib
import dataclasses
import decimal
import difflib
import json
import pathlib
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agents.requirements import LARGEST, choices, of_type

_MOST_DIGITS = 30  # that are written out of a power of ten


class SettingsError(ValueError):
    """A setting or a file that cannot be used. The message is a sentence for the terminal."""


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
    """The value that a text, as it was typed, stands for in a field of this name and annotation.

    Raises:
      ValueError: when the text is no such value.
    """
    several = choices(annotation)
    kind, *_ = [choice for choice in several if choice is not types.NoneType] or [str]
    or_none = " or none" * (types.NoneType in several)
    if or_none and text.lower() == "none":
        return None
    try:
        if typing.get_origin(kind) is tuple:
            convert = _OF_TEXT.get(typing.get_args(kind)[0], str)
            parts = text.split(",") if text.lower() != "none" else ()
            return tuple(convert(part) for part in parts if part)
        if typing.get_origin(kind) is typing.Literal:
            return {str(choice): choice for choice in typing.get_args(kind)}.get(text, text)
        return _OF_TEXT.get(kind, str)(text)
    except (ValueError, KeyError):
        word = kind.__name__ if type(kind) is type else str(kind)
        raise ValueError(f"{name} must be of type {word}{or_none}, got {text!r}.") from None


def _bool(text: str) -> bool:
    return {"true": True, "false": False, "1": True, "0": False}[text.lower()]


_OF_TEXT: dict[Any, Callable[[str], Any]] = {bool: _bool, int: whole_number, float: float}


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


def parse_json(text: str) -> Any:
    """The value that a text of JSON stands for. Raises ValueError where it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def read_json(path: pathlib.Path) -> Any:
    """The value that a file of JSON holds. Raises OSError and ValueError."""
    return parse_json(path.read_text())


def fields_of(kind: type, values: Any, *, of: str = "") -> dict[str, Any]:
    """Arguments of a dataclass from an object of JSON. Those that have a default may be missing.

    Args:
      kind: the dataclass, whose annotations say what there has to be.
      values: as JSON gave them: lists where a field is a tuple.
      of: what stands before a field's name in a sentence.

    Raises:
      ValueError: the first value that cannot be, by its name, and what would be right.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{of.removesuffix('.') or 'it'} must be an object, got {values!r}.")
    annotations = typing.get_type_hints(kind)
    found = {name: _of_python(annotations.get(name), value) for name, value in values.items()}
    for name in values:
        if name not in annotations:
            shown = f"{of}{name}" if name.isidentifier() else repr(f"{of}{name}")
            near = difflib.get_close_matches(name, annotations, n=1)
            hint = f", the nearest is {near[0]}" if near else "; it may be another version's"
            raise ValueError(f"{shown} is no field here{hint}.")
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
    several = choices(annotation)
    found = [choice for choice in several if typing.get_origin(choice) is tuple]
    if isinstance(value, list) and found:
        part, *_ = typing.get_args(found[0]) or [None]
        return tuple(_of_python(part, each) for each in value)
    if float in several and type(value) is int and abs(value) <= LARGEST:
        return float(value)
    return value


@contextlib.contextmanager
def reading(path: pathlib.Path, *, absent: str = "") -> Iterator[None]:
    """Turns what is wrong with a file that is read into a sentence that names it.

    `absent` is the sentence where there is no such file.

    Raises:
      SettingsError: it cannot be read, or a ValueError told what it says in vain.
    """
    try:
        yield
    except OSError as error:
        if absent and isinstance(error, FileNotFoundError | NotADirectoryError):
            raise SettingsError(absent) from None
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # which may begin as a flag does
        said = str(error).removeprefix("--").removesuffix(".")
        raise SettingsError(f"{path} cannot be read: {said}.") from None
