"""Odd texts and JSON, that nobody thought of, for property-based tests; what may come of them."""

import copy
import dataclasses
import math
import operator
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from agents.requirements import LARGEST
from run_folder.settings import Settings

_NUMBERS = (
    *("nan", "inf", "-inf", "1e400", "-1e400", "1e-400", "-0.0", "0", "1", "-1", "2", "7", "1.5"),
    *("1e15", "1e16", "9223372036854775807", "9223372036854775808", "0x10", "1_000", "٣", " 7 "),
    *("7\n", "1e", "--1", "1/2", "0.1", "1e-15"),
)
_LISTS = ("8,16", "8,,16", ",", "8,-1", "8,nan", "gamma,gamma", "gamma,g_v", "none", "None", ",8")
_WORDS = (
    *("", " ", "\n", "\t", "true", "false", "maybe", "=", "-", "--", "'", '"', "{}", "[]", "%s"),
    *("Größe", "🎲", "\udcff", "\0", "\x1b[2J", "a\nb", "\u202e", "*", "a b", "gs://bucket/run"),
    *("..", "../../x", "/", "/etc/passwd", "~", "~nobody-here", ".", "a/../b"),
    *("mlp", "dqn", "clip", "epsilon", "bfloat16", "local", "paper", "r2d2", "impala", "reset"),
    *("json:loads", "json:nothing", "os.path:sep", "no.such:Thing", "a:b:c", ":", "a:", ":b"),
    *("catch", "catch,catch", "memory:recall", "gym:CartPole-v1", "gym:no:CartPole-v1", "gym:"),
)
_LONG = st.builds(operator.mul, st.sampled_from(["9", "x", "y/"]), st.sampled_from([300, 5_000]))
_VAST = st.just(4_300).map(lambda digits: "0x" + "f" * digits)  # more than Python writes in tens
TEXTS = st.one_of(
    st.sampled_from(_NUMBERS),
    st.sampled_from(_WORDS),
    st.sampled_from(_LISTS),
    _LONG | _VAST,
    st.integers().map(str),
    st.floats().map(str),
    st.lists(st.integers(-1, 99), max_size=5).map(lambda sizes: ",".join(map(str, sizes))),
    st.text(max_size=20),
)

_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from([LARGEST, LARGEST + 1, -LARGEST, 10**400, 1e15, 1e16, 1e308, 0.5, -0.0]),
    TEXTS,
)
JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)

Path = tuple[str, ...]  # of names, from the outermost object to a field
Edits = list[tuple[Path, Any]]
GONE = object()  # in place of a value: the field is missing


def edits(said: dict[str, Any]) -> st.SearchStrategy[Edits]:
    """Up to three fields of a JSON object, at any depth, each replaced, removed or added."""
    where = st.sampled_from(list(_paths(said)))
    beside = st.builds(lambda path, name: (*path[:-1], name), where, st.text(max_size=8))
    return st.lists(
        st.tuples(where | where | beside, _LEAVES | JSON | st.just(GONE)), min_size=1, max_size=3
    )


def edited(said: dict[str, Any], edits: Edits) -> dict[str, Any]:
    """A copy of a JSON object with these edits, as far as earlier ones left what they are in."""
    made = copy.deepcopy(said)
    for path, value in edits:
        inner: Any = made
        for name in path[:-1]:
            inner = inner.get(name) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner[path[-1]] = value
            if value is GONE:
                del inner[path[-1]]
    return made


def _paths(said: dict[str, Any]) -> Iterator[Path]:
    """The path of every field of a JSON object."""
    for name, value in said.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, *path) for path in _paths(value))


def check_sentence(said: str) -> None:
    """Fails for what is no sentence to be read on a terminal."""
    assert said.strip()
    assert said.removesuffix("\n").isprintable(), ascii(said)
    for word in ("Traceback", "Error(", "<class", " object at 0x", "Exceeds the limit"):
        assert word not in said, said


def quotes(said: str, text: str) -> bool:
    """Whether a sentence quotes a text."""
    return repr(text) in said or (text != "" and repr(text)[1:-1] in said)


# Fields in which infinity means that there is no bound.
_MAY_BE_INFINITE = ("rho_bar", "c_bar", "scale_max")


def check_usable(run: Settings) -> None:
    """Fails for settings that no run can use, by what is known without the project's own checks."""
    launch = {name: value for name, value in vars(run).items() if name != "configs"}
    for fields in (launch, *map(dataclasses.asdict, run.configs.values())):
        for name, value in fields.items():
            for each in value if isinstance(value, tuple) else [value]:
                _check_value(name, each)
    assert set(run.acting) <= set(run.configs)
    assert run.paced_by in run.configs
    assert run.num_actors >= len(run.tasks) * len(run.acting)


def _check_value(name: str, value: Any) -> None:
    """Fails for a value that JSON, a file's name or a C++ number cannot hold."""
    if isinstance(value, str):
        value.encode()  # which raises for half a character
        assert "\0" not in value, name
    elif isinstance(value, float):
        if not (value == math.inf and name in _MAY_BE_INFINITE):
            assert math.isfinite(value), name
            assert abs(value) <= 1e15, name
    elif isinstance(value, int):
        assert 0 <= value <= LARGEST, name
    else:
        assert value is None, name
