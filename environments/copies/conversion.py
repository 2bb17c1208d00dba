"""Any gymnasium space as the rest of the system knows it, whatever interface it came by.

What an environment shows becomes one array, or a dictionary of arrays, of three kinds:

    image    [H, W] or [H, W, C]: uint8 as it is, other numbers float32; [C, H, W] is transposed,
             and K stacked ones, [K, H, W, C] or [K, C, H, W], have K C channels
    words    int32 [L]: the ids of a text's words, then zeros
    vector   all else, joined: float32 [D], choices one-hot and bytes as fractions; bytes alone
             stay uint8 [D]; of no number at all, as a bandit shows, a zero

A nested part is named by its place, `camera/left`, and the parts of a tuple are numbered. A joined
vector has the names of its parts with + between them. A name that is taken gets a number.

An agent acts by one number from 0, by several of them, int [D], or by a bounded vector, float32
[D].
"""

import functools
import itertools
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import is_space_dtype_shape_equiv

from environments.copies.leaves import Leaf, leaves
from environments.copies.vector import has_mask, in_a_line, masks

MAX_WORDS = 16
"""The words of an instruction that are kept; none of the levels of DMLab-30 says more."""

MAX_WORDS_OF_TEXT = 40
"""The words of any other text that are kept: the longest missions of BabyAI have 33."""

NUM_WORDS = 1001
"""The size of the vocabulary: the padding, and 1,000 that words are hashed to."""

ACTIONS_WANTED = "discrete actions, or one vector of floats within finite bounds"
OBSERVATIONS_WANTED = "observations made of arrays, choices and texts"

# A table of floats with a side below this is no image: five vehicles with five features each, say.
_LEAST_SIDE_OF_FLOATS = 16
_MOST_CHANNELS = 4  # of pictures: grey, grey and depth, colours, colours and transparency
_MOST_CHOICES = 65_536  # of a bounded integer that is taken for a choice, and of an observed choice

ActionSpace = spaces.Discrete | spaces.MultiDiscrete | spaces.Box


class Observed(NamedTuple):
    """A space that agents see, and how an environment's observations get there."""

    space: spaces.Box | spaces.Dict  # only of arrays
    convert: Callable[[Any], Any]  # an observation of one environment -> an array or a dictionary


class Acted(NamedTuple):
    """A space that agents act in, and how an environment gets their actions."""

    space: ActionSpace  # choices are numbered from 0
    convert: Callable[[Any], Any]  # an action in this space -> as the environment knows it


def observed(
    space: spaces.Space, actions: spaces.Space | None = None, *, checked: bool = True
) -> Observed:
    """Converts an environment's observations for agents.

    Args:
      space: of its observations.
      actions: of its actions, which a mask of legal ones (`environments.copies.masks`) has to fit.
      checked: whether `convert` raises ValueError, a clause, for a part that is not finite, has
        another shape, or would be changed by its type, as -1 in bytes; else it is taken as it is.

    Raises:
      ValueError: a clause, "must have ..., got ...", that quotes the part that cannot be shown.
    """
    if has_mask(space):
        return Observed(*masks().observed(space, actions, checked=checked))
    parts: dict[str, Observed] = {}
    numbers: list[Leaf] = []
    for leaf in leaves(space, checked=checked):
        part = _words(leaf) or _image(leaf)
        if part is None:
            _check_flat(leaf)
            numbers.append(leaf)
        else:
            parts[_free(leaf.name, parts)] = part
    if numbers:
        parts[_free("+".join(leaf.name for leaf in numbers), parts)] = _vector(numbers)
    if not parts:
        raise ValueError(f"must have {OBSERVATIONS_WANTED}, got {in_a_line(space)}.")
    if len(parts) == 1:
        return next(iter(parts.values()))
    converts = {name: part.convert for name, part in parts.items()}
    return Observed(
        spaces.Dict({name: part.space for name, part in parts.items()}),
        lambda observation: {name: convert(observation) for name, convert in converts.items()},
    )


Spaces = tuple[spaces.Space, spaces.Space]
"""The observations and the actions of one copy, as `observed` and `acted` have them."""


def check_alike(first: Spaces, second: Spaces) -> None:
    """Accepts copies of an environment whose spaces differ in nothing but their bounds.

    Raises:
      ValueError: a clause, "must have ..., got ... and ...".
    """
    for one, another in zip(first, second, strict=True):
        is_equal = one == another
        if isinstance(one, spaces.Box | spaces.Dict):
            is_equal = is_space_dtype_shape_equiv(one, another)
        if not is_equal:
            raise ValueError(
                "must have the same spaces in every copy, but for bounds, got "
                f"{in_a_line(one)} and {in_a_line(another)}."
            )


def acted(space: spaces.Space) -> Acted:
    """Converts agents' actions for an environment.

    Raises:
      ValueError: a clause, "must have ..., got ...".
    """
    if isinstance(space, spaces.Discrete):
        one = space.dtype.type
        return Acted(spaces.Discrete(space.n), lambda number: one(number + space.start))
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) and space.shape:
        counts = space.nvec if isinstance(space, spaces.MultiDiscrete) else np.full(space.shape, 2)
        low = space.start if isinstance(space, spaces.MultiDiscrete) else np.zeros(space.shape)
        return _choices(counts, low, space)
    if isinstance(space, spaces.Box) and space.dtype.kind in "iu":
        low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        if space.low.size and (high - low < _MOST_CHOICES).all():
            return _choices(high - low + 1, low, space)
    if isinstance(space, spaces.Box) and space.dtype.kind == "f" and len(space.shape) == 1:
        vector = _float32(space)
        if np.isfinite([vector.low, vector.high]).all() and vector.shape[0]:
            low, high, dtype = space.low, space.high, space.dtype
            # Clipped: the float32 nearest to a bound of float64 may lie beyond it.
            return Acted(vector, lambda action: np.clip(action.astype(dtype), low, high))
    raise ValueError(f"must have {ACTIONS_WANTED}, got {in_a_line(space)}.")


def images(space: spaces.Space) -> list[tuple[int, ...]]:
    """The shapes of the images in an observation.

    Args:
      space: an `Observed.space`.
    """
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else (space,)
    return [part.shape for part in parts if part.shape is not None and len(part.shape) > 1]


@functools.lru_cache(maxsize=1024)
def word_ids(text: str, max_words: int = MAX_WORDS) -> np.ndarray:
    """Hashes each word of a text; which words there are need not be known.

    Args:
      text: words between spaces.
      max_words: of the result; any word after so many is dropped.

    Returns:
      int32 [max_words], read-only: an id in [1, NUM_WORDS) for each word, the same in every
      process and on every machine, then zeros.
    """
    ids = np.zeros(max_words, np.int32)
    for place, word in enumerate(text.split()[:max_words]):
        ids[place] = 1 + zlib.crc32(word.encode()) % (NUM_WORDS - 1)
    ids.setflags(write=False)
    return ids


def word_space(max_words: int) -> spaces.Box:
    """The space of `word_ids`."""
    return spaces.Box(0, NUM_WORDS - 1, (max_words,), np.int32)


def _words(leaf: Leaf) -> Observed | None:
    """Shows a text; also the ids of words, where they are called what DeepMind Lab calls them."""
    space = leaf.space
    is_named = leaf.path[-1:] == ("instruction",)
    if is_named and isinstance(space, spaces.Box) and _are_ids(space):
        return Observed(space, leaf.within)
    if not leaf.is_text:
        return None
    most = MAX_WORDS_OF_TEXT
    if isinstance(space, spaces.Text):
        most = min(most, (space.max_length + 1) // 2)
    return Observed(word_space(most), lambda observation: word_ids(str(leaf.of(observation)), most))


def _are_ids(space: spaces.Box) -> bool:
    return space.dtype.kind == "i" and len(space.shape) == 1 and not space.low.any()


def _image(leaf: Leaf) -> Observed | None:
    space = leaf.space
    if not isinstance(space, spaces.Box) or len(space.shape) < 2 or 0 in space.shape:
        return None
    is_bytes = _is_bytes(space)
    if not is_bytes and len(space.shape) == 2 and min(space.shape) < _LEAST_SIDE_OF_FLOATS:
        return None
    axes = _axes(leaf)
    shape = tuple(space.shape[axis] for axis in axes)
    shape = (*shape[:2], -1) if len(shape) == 4 else shape
    # Bytes that come as other numbers are divided.
    scale = 255 if not is_bytes and not space.low.any() and (space.high == 255).all() else 1

    def arranged(array: np.ndarray) -> np.ndarray:
        array = array.transpose(axes).reshape(shape)
        if is_bytes:
            return array
        array = array.astype(np.float32, copy=False)
        return array if scale == 1 else array / np.float32(scale)

    box = space if is_bytes else _float32(space)
    low, high = arranged(box.low), arranged(box.high)
    shown = spaces.Box(low, high, dtype=low.dtype.type)
    return Observed(shown, lambda observation: arranged(leaf.of(observation)))


def _axes(leaf: Leaf) -> tuple[int, ...]:
    """An image's axes, in the order of height, width and the channels of each stacked one."""
    shape = leaf.space.shape
    assert shape is not None
    if len(shape) < 4:
        return (1, 2, 0) if _has_channels_first(shape) else tuple(range(len(shape)))
    for axes in ((1, 2, 0, 3), (2, 3, 0, 1)) if len(shape) == 4 else ():
        height, width, stacked, channels = (shape[axis] for axis in axes)
        if channels <= _MOST_CHANNELS and stacked < min(height, width):
            return axes
    raise ValueError(
        f"must have {OBSERVATIONS_WANTED}, of arrays with more than three axes only stacked "
        f"images, [K, H, W, C] or [K, C, H, W], got {in_a_line(leaf.space)}{_where(leaf)}."
    )


def _has_channels_first(shape: tuple[int, ...]) -> bool:
    """Returns whether axes are [C, H, W]: few channels, or frames of a square image."""
    if len(shape) != 3:
        return False
    first, height, width = shape
    few = first <= _MOST_CHANNELS < min(height, width)
    return few or first < height == width


def _check_flat(leaf: Leaf) -> None:
    """Raises ValueError for a space that cannot become a vector of fixed size."""
    choices = spaces.Discrete | spaces.MultiDiscrete  # each is a number of a vector
    if isinstance(leaf.space, choices) and spaces.flatdim(leaf.space) > _MOST_CHOICES:
        raise ValueError(
            f"must have {OBSERVATIONS_WANTED}, of choices {_MOST_CHOICES:,} at most, "
            f"got {in_a_line(leaf.space)}{_where(leaf)}."
        )
    try:
        if leaf.space.is_np_flattenable:
            return
    except Exception:  # a space of somebody's own need not know
        pass
    raise ValueError(f"must have {OBSERVATIONS_WANTED}, got {in_a_line(leaf.space)}{_where(leaf)}.")


def _where(leaf: Leaf) -> str:
    return f" as {leaf.name!r}" if leaf.path else ""


def _free(name: str, taken: dict[str, Observed]) -> str:
    """A name that is not taken: itself, or with a number."""
    names = itertools.chain([name], (f"{name} ({number})" for number in itertools.count(2)))
    return next(free for free in names if free not in taken)


def _vector(leaves: list[Leaf]) -> Observed:
    """Joins all parts that are neither images nor texts; a zero stands for no number at all."""
    if not sum(spaces.flatdim(leaf.space) for leaf in leaves):  # a bandit's; oneDNN would abort
        return Observed(spaces.Box(0.0, 0.0, (1,)), lambda observation: np.zeros(1, np.float32))
    alone = leaves[0].space if len(leaves) == 1 else None
    if alone is not None and _is_bytes(alone):
        (leaf,) = leaves
        flat = spaces.Box(alone.low.ravel(), alone.high.ravel(), dtype=np.uint8)
        return Observed(flat, lambda observation: leaf.of(observation).ravel())
    scales = [np.float32(255 if _is_bytes(leaf.space) else 1) for leaf in leaves]
    boxes = [_float32(spaces.flatten_space(leaf.space)) for leaf in leaves]
    ends = np.cumsum([len(box.low) for box in boxes])
    each = list(zip(leaves, scales, boxes, strict=True))
    space = spaces.Box(
        np.concatenate([box.low / scale for _, scale, box in each]),
        np.concatenate([box.high / scale for _, scale, box in each]),
    )

    def convert(observation: Any) -> np.ndarray:
        vector = np.empty(ends[-1], np.float32)
        for (leaf, scale, box), end in zip(each, ends, strict=True):
            part = leaf.of(observation)
            is_box = isinstance(leaf.space, spaces.Box)
            flat = part.ravel() if is_box else np.asarray(spaces.flatten(leaf.space, part))
            vector[end - len(box.low) : end] = flat / scale
        return vector

    return Observed(space, convert)


def _is_bytes(space: spaces.Space) -> TypeGuard[spaces.Box]:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8


def _choices(counts: np.ndarray, low: np.ndarray, space: spaces.Space) -> Acted:
    """Numbers several choices; a single one that has no axis is just that."""
    shape, dtype = space.shape, space.dtype
    assert shape is not None
    assert dtype is not None
    start = np.asarray(low, np.int64)

    def convert(action: Any) -> Any:
        return np.asarray(np.reshape(action, shape) + start, dtype)

    flat = np.asarray(counts, np.int64).ravel()
    wanted = spaces.MultiDiscrete(flat) if shape else spaces.Discrete(int(flat[0]))
    return Acted(wanted, convert)


def _float32(space: spaces.Space) -> spaces.Box:
    assert isinstance(space, spaces.Box)
    with np.errstate(over="ignore"):  # what float32 cannot hold is unbounded
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32))
