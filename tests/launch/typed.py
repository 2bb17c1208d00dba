"""Commands as they are typed, run in this process."""

import pathlib
import sys
from collections.abc import Callable, Sequence
from unittest import mock

import pytest
from absl import flags
from absl.testing import flagsaver

from launch import command_line, starting  # noqa: F401 (defines flags, which are put back)
from launch.local import supervisor
from run_folder import checkpoints, settings


def run(main: Callable[[Sequence[str]], None], *argv: str) -> int:
    """The exit code of a command's `main` with these arguments; flags are as before afterwards."""
    typed = ["command", *argv]
    with flagsaver.flagsaver(), mock.patch.object(sys, "argv", typed):
        flags.FLAGS.unparse_flags()
        with pytest.raises(SystemExit) as exit_:
            main(command_line.parse_flags(typed))
    assert isinstance(exit_.value.code, int)
    return exit_.value.code


def instead_of_starting(monkeypatch: pytest.MonkeyPatch) -> list[settings.Settings]:
    """The runs that `launch.train` would start from now on."""
    runs: list[settings.Settings] = []

    def run(settings: settings.Settings, manifests: checkpoints.Manifests) -> int:
        runs.append(settings)
        return 0

    monkeypatch.setattr(supervisor, "run", run)
    return runs


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
