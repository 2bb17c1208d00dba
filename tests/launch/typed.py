"""Commands as they are typed, run in this process."""

import contextlib
import io
import pathlib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest
from absl import flags
from absl.testing import flagsaver

from launch import command_line, starting  # noqa: F401 (defines flags, which are put back)
from launch.local import fork_server, supervisor
from run_folder import settings

# Printed where a run would begin next.
_ANNOUNCED = re.compile(
    r"((Starting [0-9,]+ processes: |Going on with |Measuring how many ).* \.\.\.\n)?"
)


class NoServer:
    """Stands for a fork server where TensorFlow ops have been run: in a test's process."""

    def __init__(self, *, private: bool = False, gpus: Sequence[str] = ()) -> None:
        pass

    def __enter__(self) -> "NoServer":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


def run(main: Callable[[Sequence[str]], None], *argv: str) -> int:
    """The exit code of a command's `main` with these arguments; flags are as before afterwards."""
    typed = ["command", *argv]
    with (
        flagsaver.flagsaver(),
        mock.patch.object(sys, "argv", typed),
        mock.patch.object(fork_server, "ForkServer", NoServer),
    ):
        flags.FLAGS.unparse_flags()
        with pytest.raises(SystemExit) as exit_:
            main(command_line.parse_flags(typed))
        flags.FLAGS.mark_as_parsed()  # also where one could not be read
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


def refused(main: Callable[[Sequence[str]], None], *argv: str) -> str:
    """The one line with which a command refuses these arguments; fails where it does otherwise."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(main, *argv)
    said = err.getvalue()
    assert (code, said.count("\n")) == (2, 1), said
    assert _ANNOUNCED.fullmatch(out.getvalue())
    return said.removesuffix("\n")


def instead_of_starting(monkeypatch: pytest.MonkeyPatch) -> list[settings.Settings]:
    """The runs that `launch.train` would start from now on."""
    runs: list[settings.Settings] = []

    def run(settings: settings.Settings, *_: object) -> int:
        runs.append(settings)
        return 0

    monkeypatch.setattr(supervisor, "run", run)
    return runs


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
