"""Requirements of the fields of settings, each with the sentence that refuses anything else.

A field's annotation is its type. An int is a float too; True and False are no numbers, nor is NaN.
Bounds are generous: they keep out values that no machine can hold, and slips of a finger. The
requirements of several agents' hyperparameters are at the end.
"""

import functools
import itertools
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from agents.networks.named import CORE_EXAMPLE, CORES, TORSO_EXAMPLE
from environments.import_path import is_import_path

LARGEST = 2**63 - 1  # of the int64 in which steps are counted
MOST_WEIGHTS = 2**28  # a gigabyte; a learner keeps four: two networks and Adam's moments
MOST_OLD_WEIGHTS = 2**31  # eight gigabytes
MOST_MEMORY_STEPS = 10_000  # of a limited memory: as many states are kept for each environment


class Requirement(NamedTuple):
    """A condition, and its words after "must be" in a sentence."""

    text: str
    holds: Callable[[Any], bool]


def choices(annotation: Any) -> tuple[Any, ...]:
    """The types that a value of an annotation may have: of a union each, else the one."""
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation,)


@functools.cache
def of_type(annotation: Any) -> Requirement:
    """The values of an annotation's type; any value for an annotation that is not known here."""
    arguments = get_args(annotation)
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        return one_of(annotation)
    if len(several := choices(annotation)) > 1:
        each = [of_type(choice) for choice in several]
        text = " or ".join(one.text for one in each)
        return Requirement(text, lambda value: any(one.holds(value) for one in each))
    if kind in (tuple, dict) and arguments:  # tuple[int, ...], dict[str, int]
        part = of_type(arguments[0] if kind is tuple else arguments[1])
        return Requirement(
            f"{'several' if kind is tuple else 'an object'}, each {part.text}",
            lambda value: (
                isinstance(value, kind)
                and all(map(part.holds, value.values() if kind is dict else value))
            ),
        )
    return _PLAIN.get(kind, Requirement("anything", lambda value: True))


def whole(least: int, most: int = LARGEST) -> Requirement:
    """Integers from `least` to `most`; True and False are none."""
    return Requirement(
        f"a whole number from {least:,} to {most:,}",
        lambda value: _is_whole(value) and least <= value <= most,
    )


def number(least: float, most: float) -> Requirement:
    """Numbers from `least` to `most`; True and False are none."""
    return Requirement(
        f"a number from {least:,g} to {most:,g}",
        lambda value: _is_number(value) and least <= value <= most,
    )


def one_of(choices: Any) -> Requirement:
    """The values of a `Literal`, or of a sequence of names."""
    names = choices if isinstance(choices, tuple) else get_args(choices)
    known = [(type(name), name) for name in names]  # 1 is not True
    return Requirement(
        "one of " + ", ".join(map(str, names)), lambda value: (type(value), value) in known
    )


def or_none(requirement: Requirement) -> Requirement:
    """None too."""
    text, holds = requirement
    return Requirement(f"{text} or None", lambda value: value is None or holds(value))


def or_infinite(requirement: Requirement) -> Requirement:
    """Infinity too, for no limit."""
    text, holds = requirement
    return Requirement(f"{text} or inf", lambda value: holds(value) or value == math.inf)


def check_layers(
    hidden_sizes: Sequence[int],
    lstm_size: int,
    head_size: int = 0,
    policy_lag: int = 0,
    core: str = "lstm",
) -> None:
    """Raises ValueError for layers that are each possible, but not together.

    They may be more than a machine holds, or the core may have no units.

    Args:
      hidden_sizes: units of fully connected layers.
      lstm_size: units of the core after them; 0 is none.
      head_size: units of each of two layers after that.
      policy_lag: copies of all that are kept.
      core: its kind; one of a user's own is taken for as large as an LSTM.
    """
    if core != "lstm" and not lstm_size:
        raise ValueError(
            f"core={core} needs an lstm_size of at least 1, the units of any core; 0 is a network "
            "without one."
        )
    sizes = [size for size in (*hidden_sizes, lstm_size) if size]
    weights = sum(a * b for a, b in itertools.pairwise(hidden_sizes))
    by_square, by_inputs = CORES.get(core, CORES["lstm"])
    weights += lstm_size * (by_square * lstm_size + by_inputs * sum(hidden_sizes[-1:]))
    weights += 2 * head_size * (sizes[-1] if sizes else 0)
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"hidden_sizes, lstm_size{' and head_size' * bool(head_size)} must come to "
            f"{MOST_WEIGHTS:,} weights at most between them, got {weights:,}."
        )
    if weights * policy_lag > MOST_OLD_WEIGHTS:
        raise ValueError(
            f"policy_lag must be at most {MOST_OLD_WEIGHTS // weights:,} for {weights:,} weights, "
            f"of which as many copies are kept, got {policy_lag}."
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and not math.isnan(value))


def _is_text(value: Any) -> bool:
    """JSON can spell halves of characters, which cannot be written anywhere else."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


_PLAIN = {
    bool: Requirement("true or false", lambda value: isinstance(value, bool)),
    int: Requirement("a whole number", _is_whole),
    float: Requirement("a number", _is_number),
    str: Requirement("text", _is_text),
    types.NoneType: Requirement("None", lambda value: value is None),
}

# Learners compute in float32, which has nothing much below 1e-38 or above 3e38: beyond these bounds
# the squares of numbers would be 0 or infinite.
POSITIVE = number(1e-15, 1e15)
NOT_NEGATIVE = number(0, 1e15)
FRACTION = number(0, 1)
EXPONENT = number(0, 10)  # a power must not become infinite

COUNT = whole(1)
BURN_IN, LENGTH = whole(0, 4_096), whole(1, 4_096)  # an update's graph has a part for each step
FRAMES = whole(1, 256)
ITEMS = whole(1, 2**31 - 1)
BATCH_SIZE = whole(1, 65_536)  # Reverb's samples are copied one by one
LAYER_SIZE, OPTIONAL_LAYER_SIZE = whole(1, 65_536), whole(0, 65_536)
LAYER_SIZES = Requirement(
    f"1 to 64 layers, each {LAYER_SIZE.text}",
    lambda value: 1 <= len(value) <= 64 and all(map(LAYER_SIZE.holds, value)),
)

# The choices, by name.
Precision = Literal["float32", "bfloat16"]
RewardTransform = Literal["none", "clip", "asymmetric"]
TorsoKind = Literal["dqn", "shallow", "resnet", "strided", "mlp"]

TORSO = Requirement(
    f"one of {', '.join(get_args(TorsoKind))}, or your own as {TORSO_EXAMPLE}",
    lambda name: name in get_args(TorsoKind) or is_import_path(name),
)
GATE_BIAS = number(-20, 20)
LOG_SIGMA = number(-20, 20)  # σ² and its inverse must not become infinite
CORE = Requirement(
    f"one of {', '.join(CORES)}, or your own as {CORE_EXAMPLE}",
    lambda name: name in CORES or is_import_path(name),
)
