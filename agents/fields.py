"""Settings are declared once, in their dataclass, with default, requirement and meaning.

    burn_in: int = field(40, BURN_IN, "Steps that only warm up the recurrent state.")

The command line, its help, config.json and the tables in docs/ are made of these declarations.
"""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents.requirements import Requirement, of_type

_MEANING, _REQUIREMENT, _PRESETS, _STAYS = "meaning", "requirement", "presets", "stays"
_IN_TENS = 10**4_000


class Field(NamedTuple):
    """A declared field.

    Attributes:
      annotation: its type.
      requirement: the condition on its values; that of its type where no other is declared.
      meaning: a sentence or several.
      default: `dataclasses.MISSING` where there is none.
      presets: its values by the name of a preset.
      stays: why a run that goes on keeps its value; empty where it may have another.
    """

    annotation: Any
    requirement: Requirement
    meaning: str
    default: Any
    presets: Mapping[str, Any]
    stays: str


def required(requirement: Requirement | None, meaning: str, **presets: Any) -> Any:
    """Declares a field that has no default, as `field` does, with its values by preset."""
    metadata = {_MEANING: meaning, _REQUIREMENT: requirement, _PRESETS: presets}
    return dataclasses.field(metadata=metadata)


def field(default: Any, requirement: Requirement | None, meaning: str, *, stays: str = "") -> Any:
    """Declares a field of a dataclass.

    Args:
      default: its value.
      requirement: the condition on its values beside their type; None for none.
      meaning: its definition, unit, symbol, and the paper's section or table.
      stays: why a run that goes on has to keep its value, as it ends the sentence "forget_bias must
        stay 1.0, with which its gates began"; empty where it may have another.
    """
    metadata = {_MEANING: meaning, _REQUIREMENT: requirement, _STAYS: stays}
    return dataclasses.field(default=default, metadata=metadata)


def declared(kind: type) -> Mapping[str, Field]:
    """The fields of a dataclass by name, in order."""
    annotations = typing.get_type_hints(kind)
    return {
        f.name: Field(
            annotations[f.name],
            f.metadata.get(_REQUIREMENT) or of_type(annotations[f.name]),
            f.metadata.get(_MEANING, ""),
            f.default,
            f.metadata.get(_PRESETS, {}),
            f.metadata.get(_STAYS, ""),
        )
        for f in dataclasses.fields(kind)
    }


def check(config: Any) -> None:
    """Raises ValueError with a sentence about the first field with a wrong value.

    Args:
      config: a dataclass. Its fields have to be of their types and fulfil their requirements.
    """
    for name, declaration in declared(type(config)).items():
        check_value(name, declaration, getattr(config, name))


def check_value(name: str, declaration: Field, value: Any) -> None:
    """Raises ValueError with a sentence about a value that a field cannot have."""
    required = declaration.requirement
    if not (of_type(declaration.annotation).holds(value) and required.holds(value)):
        raise ValueError(f"{name} must be {required.text}, got {_quoted(value)}.")


def check_stays(config: Any, before: Any) -> None:
    """Raises ValueError with a sentence about a value that a run cannot go on with.

    Args:
      config: a dataclass.
      before: what it was, of the same type.
    """
    for name, declaration in declared(type(config)).items():
        value, was = getattr(config, name), getattr(before, name)
        if declaration.stays and value != was:
            raise ValueError(f"{name} must stay {was}, {declaration.stays}; got {value}.")


def _quoted(value: Any) -> str:
    """A value in a sentence; Python writes no number of more than 4,300 digits in tens."""
    return hex(value) if isinstance(value, int) and abs(value) > _IN_TENS else repr(value)
