"""When a task whose simulators are lost one after the other is given up."""

MAX_LOSSES = 3  # simulators, without a step in between


class CannotPlayError(RuntimeError):
    """A task cannot be played here.

    Attributes:
      task: its name, where one environment plays several.
    """

    task: str | None = None


class Losses:
    """Counts the simulators of one task that were lost since one made a step."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def forget(self) -> None:
        """A step was made."""
        self._in_a_row = 0

    def add(self, what: str, said: str, cause: Exception) -> None:
        """One more was lost.

        Args:
          what: was lost, in the plural.
          said: about this one.
          cause: of its loss.

        Raises:
          CannotPlayError: it was the third.
        """
        self._in_a_row += 1
        if self._in_a_row == MAX_LOSSES:
            raise CannotPlayError(
                f"{MAX_LOSSES} {what} in a row were lost before a step was made. The last one "
                f"{said}"
            ) from cause
