"""The stand-in for DeepMind Lab's module and, where it is installed, the real one: one suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments.fakes import deepmind_lab as fake
from tests.environments.lab import contract, engines


@pytest.mark.parametrize("module", engines.MODULES)
@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_module(module: str, check: str) -> None:
    first = [str(Path(fake.__file__).parent)] if module == "fake" else []
    ran = subprocess.run(
        [sys.executable, "-m", contract.__name__, check],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*first, *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
