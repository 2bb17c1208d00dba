"""How a stream is cut into items. It needs no TensorFlow, so that hyperparameters can name it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a stream is cut into items.

    Attributes:
      burn_in: rows before the trained ones that only warm up the recurrent state.
      length: trained rows.
      period: rows from one item's first trained row to the next one's.
      frame_stack: frames that one network input holds; older ones are context rows of the item.
      crosses_episodes: whether items follow one another through episode ends (V-trace unrolls), or
        start anew with each episode and never cross its end (R2D2).
    """

    burn_in: int
    length: int
    period: int
    frame_stack: int = 1
    crosses_episodes: bool = False

    def __post_init__(self) -> None:
        for name, least in (("burn_in", 0), ("length", 1), ("period", 1), ("frame_stack", 1)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}.")
        if self.period > self.length:
            raise ValueError(
                f"period must be at most length ({self.length}), or steps would never be trained; "
                f"got {self.period}."
            )

    @property
    def context(self) -> int:
        """Rows needed before the first one: for older frames, the previous action and reward."""
        return max(self.frame_stack - 1, 1)


@dataclasses.dataclass(frozen=True)
class BlockLayout:
    """How a stream is cut into blocks, whatever its tables.

    Attributes:
      length: K, rows from one block's first row to the next one's.
      context: C, rows before them that each block repeats, so that an item never needs another
        block for them.
      by_episode: whether an episode's end may end a block too, so that the next block begins with
        the next episode.
    """

    length: int
    context: int
    by_episode: bool = False

    @property
    def num_rows(self) -> int:
        """Rows that a block holds: its context, its own K, and the row after them."""
        return self.context + self.length + 1
