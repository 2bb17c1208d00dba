"""What a terminal shows while something lasts: redrawn in place, with lines that stay above it."""

import contextlib
from typing import TypeVar

from rich.console import Console
from rich.live import Live

AnyDrawing = TypeVar("AnyDrawing", bound="Drawing")


class Drawing:
    """A context manager. A terminal that is gone ends nothing.

    Args:
      title: what is drawn.
      console: where to draw; standard output by default.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = console or Console()
        self._live = (
            Live(console=self._console, refresh_per_second=2) if self._console.is_terminal else None
        )
        self._next_line = 0.0  # when there is one again where nothing can be redrawn

    def __enter__(self: AnyDrawing) -> AnyDrawing:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.stop()

    def tell(self, sentence: str) -> None:
        """Prints a line that stays, above what is redrawn."""
        with contextlib.suppress(OSError):
            self._console.print(sentence, soft_wrap=True, highlight=False, markup=False)
