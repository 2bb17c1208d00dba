"""Any gymnasium space as the rest of the system knows it, whatever interface it came by.

What an environment shows becomes one array, or a dictionary of arrays, of three kinds:

    image    [H, W] or [H, W, C]: uint8 as it is, other numbers float32; [C, H, W] is transposed
    words    int32 [L]: the ids of a text's words, then zeros
    vector   all else, joined: float32 [D], choices one-hot and bytes as fractions; bytes alone
             stay uint8 [D]

A nested part is named by its place, `camera/left`, and the parts of a tuple are numbered; what is
joined has the names of its parts with + between them.

An agent acts by one number from 0, by several of them, int [D], or by a bounded vector, float32
[D].
"""

import functools
import reprlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from gymnasium import spaces

from environments import instructions

ACTIONS_WANTED = "discrete actions, or one vector of floats within finite bounds"
OBSERVATIONS_WANTED = "observations made of arrays, choices and texts"

# A table of floats with a side below this is no image: five vehicles with five features each, say.
_LEAST_SIDE_OF_FLOATS = 16
_MOST_CHANNELS = 4  # of pictures: grey, grey and depth, colours, colours and transparency
_MOST_CHOICES = 65_536  # numbers that a bounded integer may have, to be one of several choices

ActionSpace = spaces.Discrete | spaces.MultiDiscrete | spaces.Box


class Observed(NamedTuple):
    """How observations become what agents see."""

    space: spaces.Box | spaces.Dict  # of arrays alone
    convert: Callable[[Any], Any]  # an observation of one environment -> an array or a dictionary


class Acted(NamedTuple):
    """How agents act."""

    space: ActionSpace  # choices are numbered from 0
    convert: Callable[[Any], Any]  # an action in this space -> as the environment knows it


class Leaf(NamedTuple):
    """A part of an observation that has no parts itself."""

    path: tuple[Any, ...]
    space: spaces.Space

    @property
    def name(self) -> str:
        return "/".join(map(str, self.path))

    def of(self, observation: Any) -> Any:
        """This part of an observation."""
        return functools.reduce(lambda part, key: part[key], self.path, observation)

    def check(self, observation: Any) -> None:
        """Raises ValueError where an observation's part is not what the space says."""
        what = f"{self.name!r} of an observation" if self.path else "an observation"
        try:
            part = self.of(observation)
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"there is no {what}, got {reprlib.repr(observation)}") from None
        space = self.space
        if is_text(space):
            if not isinstance(part, str):
                raise ValueError(f"{what} must be text, got {reprlib.repr(part)}")
        elif not isinstance(space, spaces.Box):
            if not space.contains(part):
                raise ValueError(f"{what} must lie in {in_a_line(space)}, got {reprlib.repr(part)}")
        elif np.shape(part) != space.shape:
            raise ValueError(
                f"{what} must have the space's shape {space.shape}, got {np.shape(part)}"
            )
        elif not np.isfinite(np.asarray(part, space.dtype)).all():
            raise ValueError(f"{what} must be finite, got {reprlib.repr(part)}")


def observed(space: spaces.Space) -> Observed:
    """What agents see of an environment.

    Raises:
      ValueError: a clause, "must have ..., got ...", that quotes the part that cannot be shown.
    """
    parts: dict[str, Observed] = {}
    numbers: list[Leaf] = []
    for leaf in leaves(space):
        part = _words(leaf) or _image(leaf)
        if part is None:
            _check_flat(leaf)
            numbers.append(leaf)
        else:
            parts[leaf.name] = part
    if numbers:
        parts["+".join(leaf.name for leaf in numbers)] = _vector(numbers)
    if not parts:
        raise ValueError(f"must have {OBSERVATIONS_WANTED}, got {in_a_line(space)}.")
    if len(parts) == 1:
        return next(iter(parts.values()))
    converts = {name: part.convert for name, part in parts.items()}
    return Observed(
        spaces.Dict({name: part.space for name, part in parts.items()}),
        lambda observation: {name: convert(observation) for name, convert in converts.items()},
    )


def acted(space: spaces.Space) -> Acted:
    """How agents act in an environment.

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
    """The shapes of the images among what agents see.

    Args:
      space: an `Observed.space`.
    """
    parts = space.spaces.values() if isinstance(space, spaces.Dict) else (space,)
    return [part.shape for part in parts if part.shape is not None and len(part.shape) > 1]


def in_a_line(space: Any) -> str:
    """A space as it is printed, without the lines into which numpy lays long bounds out."""
    return " ".join(str(space).split())


def leaves(space: spaces.Space, path: tuple[Any, ...] = ()) -> Iterator[Leaf]:
    """The parts of an observation, in the space's own order."""
    if isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from leaves(part, (*path, name))
    elif isinstance(space, spaces.Tuple):
        for number, part in enumerate(space.spaces):
            yield from leaves(part, (*path, number))
    else:
        yield Leaf(path, space)


def _words(leaf: Leaf) -> Observed | None:
    """A text's; also the ids of words, where they are called what DeepMind Lab calls them."""
    space = leaf.space
    is_named = leaf.path[-1:] == ("instruction",)
    if is_named and isinstance(space, spaces.Box) and _are_ids(space):
        return Observed(space, leaf.of)
    if not is_text(space):
        return None
    most = instructions.MAX_WORDS_OF_TEXT
    if isinstance(space, spaces.Text):
        most = min(most, (space.max_length + 1) // 2)
    ids = spaces.Box(0, instructions.NUM_WORDS - 1, (most,), np.int32)
    return Observed(ids, lambda observation: instructions.word_ids(str(leaf.of(observation)), most))


def _are_ids(space: spaces.Box) -> bool:
    return space.dtype.kind == "i" and len(space.shape) == 1 and not space.low.any()


def is_text(space: spaces.Space) -> bool:
    """Whether a space is of texts, also one of a library's own, such as MiniGrid's missions."""
    if isinstance(space, spaces.Text):
        return True
    if type(space).__module__.startswith("gymnasium.spaces"):
        return False
    try:
        return isinstance(space.sample(), str)
    except Exception:  # whatever a space of somebody's own raises
        return False


def _image(leaf: Leaf) -> Observed | None:
    space = leaf.space
    if not isinstance(space, spaces.Box) or len(space.shape) not in (2, 3):
        return None
    is_bytes = _is_bytes(space)
    if not is_bytes and len(space.shape) == 2 and min(space.shape) < _LEAST_SIDE_OF_FLOATS:
        return None
    axes = (1, 2, 0) if _has_channels_first(space.shape) else tuple(range(len(space.shape)))
    # Bytes that come as other numbers.
    scale = 255 if not is_bytes and not space.low.any() and (space.high == 255).all() else 1
    dtype = np.uint8 if is_bytes else np.float32

    def convert(observation: Any) -> np.ndarray:
        image: np.ndarray = np.asarray(leaf.of(observation), dtype).transpose(axes)
        return image if scale == 1 else image.astype(np.float32) / scale

    if is_bytes:
        low, high = space.low, space.high
    else:
        box = _float32(space)
        low, high = box.low / np.float32(scale), box.high / np.float32(scale)
    return Observed(spaces.Box(low.transpose(axes), high.transpose(axes), dtype=dtype), convert)


def _has_channels_first(shape: tuple[int, ...]) -> bool:
    """Whether an array [C, H, W] is meant: few channels, or frames of a square image."""
    if len(shape) != 3:
        return False
    first, height, width = shape
    few = first <= _MOST_CHANNELS < min(height, width)
    return few or first < height == width


def _check_flat(leaf: Leaf) -> None:
    """Raises ValueError for what is no vector of a fixed size."""
    try:
        if leaf.space.is_np_flattenable:
            return
    except Exception:  # a space of somebody's own need not know
        pass
    where = f" as {leaf.name!r}" if leaf.path else ""
    raise ValueError(f"must have {OBSERVATIONS_WANTED}, got {in_a_line(leaf.space)}{where}.")


def _vector(leaves: list[Leaf]) -> Observed:
    """Of all parts that are neither images nor texts."""
    alone = leaves[0].space if len(leaves) == 1 else None
    if alone is not None and _is_bytes(alone):
        (leaf,) = leaves
        flat = spaces.Box(alone.low.ravel(), alone.high.ravel(), dtype=np.uint8)
        return Observed(flat, lambda observation: np.asarray(leaf.of(observation)).ravel())
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
            flat = np.asarray(spaces.flatten(leaf.space, leaf.of(observation)))
            vector[end - len(box.low) : end] = flat / scale
        return vector

    return Observed(space, convert)


def _is_bytes(space: spaces.Space) -> TypeGuard[spaces.Box]:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8


def _choices(counts: np.ndarray, low: np.ndarray, space: spaces.Space) -> Acted:
    """Several numbers; of a single one that has no axis, just that."""
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
