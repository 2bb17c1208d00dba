"""How far an evaluation is: a bar where the terminal is one, else a line now and then."""

import time
from types import TracebackType

from rich import progress
from rich.console import Console

LINE_SECONDS = 10.0


class Progress:
    """A context manager; `step` says what happened.

    Args:
      title: what is played.
      episodes: how many there will be.
      console: where it is drawn; by default standard error, so that standard output has results
        alone.
    """

    def __init__(self, title: str, episodes: int, console: Console | None = None) -> None:
        self._title = title
        self._episodes = episodes
        self._console = console or Console(stderr=True)
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("episodes, {task.fields[steps]:,} steps"),
            progress.TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=episodes, steps=0)
        self._steps = self._ended = 0
        self._line_at = time.monotonic() + LINE_SECONDS

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def step(self, steps: int, ended: int) -> None:
        """So many actor steps were made, and so many episodes ended, since the last call."""
        self._steps += steps
        self._ended += ended
        if self._console.is_terminal:
            self._bar.update(self._task, advance=ended, steps=self._steps)
        elif time.monotonic() >= self._line_at:
            self._line_at = time.monotonic() + LINE_SECONDS
            self._console.print(
                f"{self._title}: {self._ended} of {self._episodes} episodes, {self._steps:,} steps",
                soft_wrap=True,
                highlight=False,
            )
