"""What the fields of an agent's Config may hold, and the sentence that refuses anything else."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args


class Requirement(NamedTuple):
    """A condition, and how a sentence goes on after "must be"."""

    text: str
    holds: Callable[[Any], bool]


def check_fields(config: Any, requirements: Mapping[str, Requirement]) -> None:
    """Raises ValueError with a sentence about the first field that does not meet its requirement.

    Args:
      config: anything with attributes.
      requirements: by the attribute's name.
    """
    for name, requirement in requirements.items():
        value = getattr(config, name)
        if not requirement.holds(value):
            raise ValueError(f"{name} must be {requirement.text}, got {value!r}.")


def whole(least: int) -> Requirement:
    """Integers from `least` on; True and False are none."""

    def holds(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return Requirement(f"a whole number of at least {least}", holds)


def one_of(choices: Any) -> Requirement:
    """The values of a `Literal`."""
    names = get_args(choices)
    return Requirement("one of " + ", ".join(names), lambda value: value in names)


def or_none(requirement: Requirement) -> Requirement:
    """None too."""
    text, holds = requirement
    return Requirement(f"{text} or None", lambda value: value is None or holds(value))


POSITIVE = Requirement("greater than 0", lambda value: value > 0)
NOT_NEGATIVE = Requirement("at least 0", lambda value: value >= 0)
FRACTION = Requirement("between 0 and 1", lambda value: 0 <= value <= 1)
LAYER_SIZES = Requirement(
    "one or more whole numbers of at least 1",
    lambda value: len(value) > 0 and all(whole(1).holds(size) for size in value),
)
