"""Commands as they are typed, run in this process."""

import sys
from collections.abc import Callable, Sequence
from unittest import mock

import pytest
from absl import flags
from absl.testing import flagsaver

from launch import command_line


def run(main: Callable[[Sequence[str]], None], *argv: str) -> int:
    """The exit code of a command's `main` with these arguments; flags are as before afterwards."""
    typed = ["command", *argv]
    with flagsaver.flagsaver(), mock.patch.object(sys, "argv", typed):
        flags.FLAGS.unparse_flags()
        with pytest.raises(SystemExit) as exit_:
            main(command_line.parse_flags(typed))
    assert isinstance(exit_.value.code, int)
    return exit_.value.code
