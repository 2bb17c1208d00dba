"""Any gymnasium space as agents know it."""

import re
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from environments.copies import conversion
from environments.copies.conversion import MAX_WORDS, MAX_WORDS_OF_TEXT, NUM_WORDS, word_ids
from environments.copies.leaves import leaves

BYTES = dict(low=0, high=255, dtype=np.uint8)
FLOATS = dict(low=0, high=1, dtype=np.float32)
UNBOUNDED = spaces.Box(-np.inf, np.inf, (1,), np.float64)


def _image(*shape: int, **of: Any) -> spaces.Box:
    return spaces.Box(shape=shape, **(of or BYTES))


class Missions(spaces.Space[str]):
    """Texts of a library's own, as MiniGrid's are."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "go to the red ball"


ONE: dict[str, tuple[spaces.Space, tuple[int, ...], Any]] = {
    "vector of float64": (spaces.Box(-1, 1, (3,), np.float64), (3,), np.float32),
    "small table": (spaces.Box(-1, 1, (2, 3), np.float32), (6,), np.float32),
    "number": (spaces.Box(-1, 1, (), np.float32), (1,), np.float32),
    "grey": (_image(8, 6), (8, 6), np.uint8),
    "colour": (_image(8, 6, 3), (8, 6, 3), np.uint8),
    "channels first": (_image(3, 8, 6), (8, 6, 3), np.uint8),
    "stack of frames": (_image(12, 84, 84), (84, 84, 12), np.uint8),
    "planes of a board": (_image(5, 7, 20), (5, 7, 20), np.uint8),
    "square with many channels": (_image(7, 7, 20), (7, 7, 20), np.uint8),
    "float image": (_image(20, 24, **FLOATS), (20, 24), np.float32),
    "float image, channels first": (_image(1, 20, 20, **FLOATS), (20, 20, 1), np.float32),
    "whole numbers": (_image(7, 7, 2, low=0, high=9, dtype=np.int64), (7, 7, 2), np.float32),
    "bytes": (_image(7), (7,), np.uint8),
    "discrete": (spaces.Discrete(4, start=2), (4,), np.float32),
    "several": (spaces.MultiDiscrete([2, 3]), (5,), np.float32),
    "bits": (spaces.MultiBinary(3), (3,), np.float32),
    "one of two": (spaces.OneOf([spaces.Discrete(2), spaces.Box(0, 1)]), (3,), np.float32),
    "stacked colours": (_image(4, 20, 18, 3), (20, 18, 12), np.uint8),
    "stacked, channels first": (_image(2, 3, 20, 18, **FLOATS), (20, 18, 6), np.float32),
    "text": (spaces.Text(9), (5,), np.int32),
    "long text": (spaces.Text(10_000), (MAX_WORDS_OF_TEXT,), np.int32),
    "missions": (Missions(), (MAX_WORDS_OF_TEXT,), np.int32),
    "vectors": (
        spaces.Tuple([spaces.Discrete(3), spaces.Dict(x=spaces.Box(0, 1, (2,)))]),
        (5,),
        np.float32,
    ),
    "dictionary of one": (spaces.Dict(image=_image(8, 6)), (8, 6), np.uint8),
    "no number": (spaces.Box(0, 1, (0,)), (1,), np.float32),
    "an image without pixels": (_image(0, 6), (1,), np.float32),
}


@pytest.mark.parametrize("name", ONE)
def test_one_array(name: str) -> None:
    space, shape, dtype = ONE[name]
    seen = conversion.observed(space)
    assert (seen.space.shape, seen.space.dtype) == (shape, dtype)
    for _ in range(3):
        observation = seen.convert(space.sample())
        assert (observation.shape, observation.dtype) == (shape, dtype)
        assert seen.space.contains(observation)


def test_parts_have_names_and_what_is_joined_has_those_of_its_parts() -> None:
    space = spaces.Dict(
        camera=spaces.Dict(left=_image(8, 6), right=_image(20, 16, 3, **FLOATS)),
        said=spaces.Tuple([spaces.Text(20), Missions()]),
        direction=spaces.Discrete(4),
        touch=_image(2),
    )
    seen = conversion.observed(space)
    assert isinstance(seen.space, spaces.Dict)
    assert {name: (x.shape, str(x.dtype)) for name, x in seen.space.items()} == {
        "camera/left": ((8, 6), "uint8"),
        "camera/right": ((20, 16, 3), "float32"),
        "said/0": ((10,), "int32"),
        "said/1": ((40,), "int32"),
        "direction+touch": ((6,), "float32"),
    }
    observation = space.sample() | {"touch": np.array([51, 255], np.uint8), "direction": 2}
    shown = seen.convert(observation)
    assert seen.space.contains(shown)
    # One choice of four, and bytes as fractions.
    np.testing.assert_allclose(shown["direction+touch"], [0, 0, 1, 0, 0.2, 1])
    np.testing.assert_array_equal(shown["said/0"], word_ids(observation["said"][0], 10))


def test_channels_are_put_last_and_those_of_stacked_images_side_by_side() -> None:
    images = _image(4, 20, 18, 3).sample()
    expected = np.concatenate(images, axis=-1)
    shown = conversion.observed(_image(4, 20, 18, 3)).convert(images)
    np.testing.assert_array_equal(shown, expected)
    shown = conversion.observed(_image(4, 3, 20, 18)).convert(np.moveaxis(images, -1, 1))
    np.testing.assert_array_equal(shown, expected)
    shown = conversion.observed(_image(3, 20, 18)).convert(np.moveaxis(images[0], -1, 0))
    np.testing.assert_array_equal(shown, images[0])


def test_no_part_takes_the_name_of_another() -> None:
    number = spaces.Discrete(2)
    space = spaces.Dict(
        {"a": spaces.Dict(b=_image(8, 6)), "a/b": _image(9, 9), "x": number, "y": number}
        | {"x+y": _image(7, 7)}
    )
    seen = conversion.observed(space)
    assert {name: part.shape for name, part in seen.space.items()} == {  # type: ignore[union-attr]
        "a/b": (8, 6),
        "a/b (2)": (9, 9),
        "x+y": (7, 7),
        "x+y (2)": (4,),
    }
    assert seen.space.contains(seen.convert(space.sample()))


def test_bytes_that_come_as_floats_are_fractions() -> None:
    space = _image(16, 16, low=0, high=255, dtype=np.float32)
    seen = conversion.observed(space)
    shown = seen.convert(np.full((16, 16), 51, np.float32))
    np.testing.assert_allclose(shown, 0.2)
    assert isinstance(seen.space, spaces.Box)
    assert seen.space.high.max() == 1
    likewise = _image(16, 16, low=0, high=9, dtype=np.float32)
    np.testing.assert_array_equal(conversion.observed(likewise).convert(np.full((16, 16), 9)), 9)


def test_ids_of_words_stay_what_they_are() -> None:
    ids = spaces.Box(0, 99, (6,), np.int32)
    space = spaces.Dict(image=_image(8, 6), instruction=ids, more=ids)
    seen = conversion.observed(space)
    assert isinstance(seen.space, spaces.Dict)
    assert seen.space["instruction"] == ids
    assert seen.space["more"].dtype == np.float32


def test_the_images() -> None:
    space = spaces.Dict(a=_image(8, 6), b=_image(9, 9, 3), c=spaces.Discrete(3))
    assert conversion.images(conversion.observed(space).space) == [(8, 6), (9, 9, 3)]
    assert conversion.images(_image(8, 6)) == [(8, 6)]
    assert conversion.images(spaces.Box(0, 1, (3,))) == []


class Sentence(spaces.Space):
    """Does not say whether it forms an array: gymnasium's own answer to that is to raise."""


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (spaces.Sequence(spaces.Discrete(2)), "got Sequence(Discrete(2), stack=False)."),
        (spaces.Dict(a=spaces.Discrete(2), b=spaces.Tuple([Sentence()])), " as 'b/0'."),
        (spaces.Graph(spaces.Discrete(2), None), "got Graph("),
        (spaces.Dict(), "got Dict()."),
        (spaces.Dict(a=spaces.Discrete(10**9)), "65,536 at most, got Discrete(1000000000) as 'a'."),
        (spaces.Dict(a=_image(9, 9, 9, 9)), "got Box(0, 255, (9, 9, 9, 9), uint8) as 'a'."),
        (spaces.Box(0, 1, (1, 2, 2, 2, 2)), "[K, H, W, C] or [K, C, H, W], got Box(0.0, 1.0, (1,"),
    ],
)
def test_what_cannot_be_shown(space: spaces.Space, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as told:
        conversion.observed(space)
    assert str(told.value).startswith("must have observations made of arrays, choices and texts, ")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("space", "observation", "said"),
    [
        (spaces.Box(0, 1, (3,)), np.zeros(2), "must have the space's shape (3,), got (2,)"),
        (spaces.Box(0, 1, (2,)), [1, np.nan], "must be finite in float32, got nan at [1]"),
        (
            spaces.Box(0, 1, (2,), np.float64),
            [0.5, 2.0],
            "must lie in Box(0.0, 1.0, (2,), float64), ",
        ),
        (spaces.Box(0, 0.1, (1,), np.float64), [0.2], "got 0.2 at [0]"),
        (UNBOUNDED, [1e39], "must be finite in float32, got 1e+39 at [0]"),
        (UNBOUNDED, [None], "must be numbers, got [None]"),
        (_image(2, 2), np.array([[0, 1], [0.5, 1]]), "uint8), got 0.5 at [1, 0]"),
        (_image(1), [-1], "must lie in Box(0, 255, (1,), uint8), got -1 at [0]"),
        (_image(1), [256], "got 256 at [0]"),
        (spaces.Discrete(5), -1, "an observation must lie in Discrete(5), got -1"),
        (spaces.MultiDiscrete([2, 2]), np.array([0, 2]), "got array([0, 2])"),
        (
            spaces.Dict(instruction=spaces.Box(0, 9, (2,), np.int32)),
            {"instruction": [1, 10]},
            "10 at",
        ),
        (spaces.Dict(a=spaces.Discrete(2)), {"b": 1}, "there is no 'a' of an observation, got"),
        (spaces.Dict(a=spaces.Discrete(2)), 3, "there is no 'a' of an observation, got 3"),
        (spaces.Dict(a=spaces.Discrete(2)), {"a": 2}, "'a' of an observation must lie in Discrete"),
        (spaces.Tuple([Missions()]), (3,), "'0' of an observation must be text, got 3"),
    ],
)
def test_observations_that_are_not_what_the_space_says(
    space: spaces.Space, observation: Any, said: str
) -> None:
    (leaf,) = leaves(space)
    with pytest.raises(ValueError, match=re.escape(said)):
        leaf.within(observation)


@pytest.mark.parametrize(
    ("space", "observation", "shown"),
    [
        (UNBOUNDED, [np.nan], [np.nan]),
        (UNBOUNDED, [1e39], [np.inf]),
        (spaces.Box(0, 1, (1,), np.float64), [2.0], [2]),
        (_image(2, 2), np.array([[0, 1], [0.5, 1]]), [[0, 1], [0, 1]]),
        (spaces.Discrete(5), -1, [0, 0, 0, 0, 1]),
    ],
)
def test_what_is_not_checked_is_taken_as_it_is(
    space: spaces.Space, observation: Any, shown: Any
) -> None:
    seen = conversion.observed(space, checked=False)
    np.testing.assert_array_equal(seen.convert(observation), shown)


@pytest.mark.parametrize(
    ("space", "observation", "shown"),
    [
        (spaces.Box(0, 1, (2,), np.float64), [0.5, 2.0], [0.5, 2]),  # beyond bounds, yet a number
        (spaces.Box(0.1, 0.3, (2,), np.float64), [0.1, 0.3], [0.1, 0.3]),
        (_image(3), [1.0, 2.0, 3.0], [1, 2, 3]),
        (_image(2), np.array([True, False]), [1, 0]),
        (spaces.Box(-9, 9, (2,), np.int64), [1, -2], [1, -2]),
        (spaces.Text(9), np.array("go"), word_ids("go", 5)),
    ],
)
def test_what_loses_nothing_is_taken(space: spaces.Space, observation: Any, shown: Any) -> None:
    np.testing.assert_allclose(conversion.observed(space).convert(observation), shown)


@pytest.mark.parametrize(
    ("space", "expected", "action", "given"),
    [
        (spaces.Discrete(4, start=3), spaces.Discrete(4), 1, 4),
        (spaces.Box(2, 5, (), np.int64), spaces.Discrete(4), 3, 5),
        (spaces.MultiDiscrete([2, 3]), spaces.MultiDiscrete([2, 3]), [1, 2], [1, 2]),
        (
            spaces.MultiDiscrete([2, 3], start=[-1, 5]),
            spaces.MultiDiscrete([2, 3]),
            [0, 1],
            [-1, 6],
        ),
        (spaces.MultiBinary(3), spaces.MultiDiscrete([2, 2, 2]), [1, 0, 1], [1, 0, 1]),
        (
            spaces.MultiBinary([2, 2]),
            spaces.MultiDiscrete([2, 2, 2, 2]),
            [1, 0, 1, 1],
            [[1, 0], [1, 1]],
        ),
        (spaces.Box(-1, 1, (2,), np.int8), spaces.MultiDiscrete([3, 3]), [0, 2], [-1, 1]),
        (
            spaces.Box(-1, 1, (2,), np.float64),
            spaces.Box(-1, 1, (2,), np.float32),
            [0.5, 1],
            [0.5, 1],
        ),
    ],
)
def test_actions(space: spaces.Space, expected: spaces.Space, action: Any, given: Any) -> None:
    act = conversion.acted(space)
    assert act.space == expected
    converted = act.convert(np.array(action, expected.dtype))
    np.testing.assert_array_equal(converted, given)
    assert converted.dtype == space.dtype
    for _ in range(5):
        assert space.contains(act.convert(act.space.sample()))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(np.array([-1, -1], np.float32), np.array([1, np.inf], np.float32)),
        spaces.Box(-1e300, 1e300, (2,), np.float64),
        spaces.Box(-1, 1, (2, 2)),
        spaces.Box(-1, 1, ()),
        spaces.Box(-1, 1, (0,)),
        spaces.Box(-(2**31), 2**31 - 1, (2,), np.int32),
        spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]),
        spaces.Text(3),
    ],
)
def test_ways_to_act_that_no_agent_has(space: spaces.Space) -> None:
    wanted = "must have discrete actions, or one vector of floats within finite bounds, got "
    with pytest.raises(ValueError, match=re.escape(wanted)) as told:
        conversion.acted(space)
    assert "\n" not in str(told.value)


def test_ids_of_words_are_the_same_everywhere_and_for_ever() -> None:
    """Fixed numbers: a checkpoint's embeddings belong to them."""
    ids = word_ids("red balloon red")
    assert ids.tolist() == [456, 473, 456] + [0] * (MAX_WORDS - 3)
    assert ids.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 7
    assert not word_ids(" \n").any()
    assert {int(word_ids(f"w{i}")[0]) for i in range(20_000)} == set(range(1, NUM_WORDS))


def test_long_instructions_lose_their_end() -> None:
    words = [f"word{i}" for i in range(MAX_WORDS + 5)]
    full = word_ids(" ".join(words[:MAX_WORDS]))
    assert (full > 0).all()
    np.testing.assert_array_equal(word_ids(" ".join(words)), full)
