"""The stand-in for DeepMind Lab's module and, where it is installed, the real one: one suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments.dmlab import engines, module
from tests.environments.dmlab.fakes import deepmind_lab as fake


@pytest.mark.parametrize("which", engines.MODULES)
@pytest.mark.parametrize("check", module.CHECKS)
def test_the_module(which: str, check: str, tmp_path: Path) -> None:
    """Runs a check in a temporary folder of its own: an engine that is killed leaves its files."""
    first = [str(Path(fake.__file__).parent)] if which == "fake" else []
    path = os.pathsep.join([*first, *filter(None, sys.path)])
    ran = subprocess.run(
        [sys.executable, "-m", module.__name__, check],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
