"""The leaves of an observation's space, and checks that an observation is in it."""

import reprlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from environments.copies.vector import in_a_line

UNCHECKED = "unchecked_observations"
"""A key of an environment's `metadata`: where it is true, observations are taken as they are."""

_FLOAT32 = np.dtype(np.float32)
_LARGEST = float(np.finfo(np.float32).max)


class NotInSpaceError(ValueError):
    """A value outside its space that could still be used as it is."""


class Leaf(NamedTuple):
    """A part of an observation that has no parts itself."""

    path: tuple[Any, ...]  # the keys that lead to it
    space: spaces.Space  # of its values
    is_text: bool  # whether these are texts
    is_checked: bool  # whether its values must be in the space

    @property
    def name(self) -> str:
        return "/".join(map(str, self.path))

    def of(self, observation: Any) -> Any:
        """This part of an observation.

        Of a Box, an array of the space's type, float32 for all floats. A number may lie beyond the
        bounds of a Box, as in many environments, but none is changed by its new type.

        Raises:
          ValueError: a clause, "... must ..., got ...": the value is not in the space.
        """
        part = observation
        try:
            for key in self.path:
                part = part[key]
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"there is no {self._what}, got {reprlib.repr(observation)}") from None
        if isinstance(self.space, spaces.Box):
            return self._array(part, self.space)
        if not self.is_checked:
            return part
        if self.is_text:
            if not (np.ndim(part) == 0 and isinstance(np.asarray(part).item(), str)):
                raise self._wrong("be text", part)
        elif not self.space.contains(part):
            raise self._wrong(f"lie in {in_a_line(self.space)}", part)
        return part

    def within(self, observation: Any) -> Any:
        """Does as `of`, but no number may lie beyond the bounds of its Box."""
        part = self.of(observation)
        if isinstance(self.space, spaces.Box) and self.is_checked:
            # In the type of the numbers: a bound of float64 has a nearest float32 too.
            low, high = (_cast(x, part.dtype) for x in (self.space.low, self.space.high))
            outside = (part < low) | (part > high)
            if outside.any():
                raise self._wrong(f"lie in {in_a_line(self.space)}", part, outside)
        return part

    @property
    def _what(self) -> str:
        return f"{self.name!r} of an observation" if self.path else "an observation"

    def _array(self, part: Any, space: spaces.Box) -> np.ndarray:
        array = np.asarray(part)
        dtype = _FLOAT32 if space.dtype.kind == "f" else space.dtype
        if not self.is_checked:
            return _cast(array, dtype)
        if array.shape != space.shape:
            raise ValueError(
                f"{self._what} must have the space's shape {space.shape}, got {array.shape}"
            )
        if array.dtype.kind not in "biuf":
            raise self._wrong("be numbers", part)
        if dtype is _FLOAT32:
            fine = np.isfinite(array) if array.dtype == dtype else np.abs(array) <= _LARGEST
            if not fine.all():
                raise self._wrong("be finite in float32", array, ~fine)
            return array.astype(dtype, copy=False)
        cast = array if array.dtype == dtype else _cast(array, dtype)
        if cast is not array and (changed := cast != array).any():
            raise self._wrong(f"lie in {in_a_line(space)}", array, changed)
        return cast

    def _wrong(self, must: str, got: Any, where: np.ndarray | None = None) -> NotInSpaceError:
        """The error about a part, or about the first number of an array that is wrong."""
        said, place = reprlib.repr(got), ""
        if where is not None:
            index = np.unravel_index(np.argmax(where), where.shape)
            said = str(got[index])
            place = f" at [{', '.join(map(str, index))}]" if index else ""
        return NotInSpaceError(f"{self._what} must {must}, got {said}{place}")


def leaves(
    space: spaces.Space, path: tuple[Any, ...] = (), *, checked: bool = True
) -> Iterator[Leaf]:
    """The parts of an observation, in the space's own order."""
    if isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from leaves(part, (*path, name), checked=checked)
    elif isinstance(space, spaces.Tuple):
        for number, part in enumerate(space.spaces):
            yield from leaves(part, (*path, number), checked=checked)
    else:
        yield Leaf(path, space, _is_text(space), checked)


def are_checked(env: gymnasium.Env) -> bool:
    """Returns whether an environment's observations are checked against its space."""
    return not env.metadata.get(UNCHECKED, False)


def _cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Casts without a warning about numbers that the type cannot hold."""
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype, copy=False)


def _is_text(space: spaces.Space) -> bool:
    """Returns whether a space holds texts; a library's own may, such as MiniGrid's missions."""
    if isinstance(space, spaces.Text):
        return True
    if type(space).__module__.startswith("gymnasium.spaces"):
        return False
    try:
        return isinstance(space.sample(), str)
    except Exception:  # whatever a space of somebody's own raises
        return False
