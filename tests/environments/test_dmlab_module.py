"""The stand-in for DeepMind Lab's module and, where it is installed, the real one: one suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from environments import dmlab
from tests.environments import lab_contract
from tests.environments.fakes import deepmind_lab as fake

MODULES = ["fake", "real"] if dmlab.installed() else ["fake"]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("check", lab_contract.CHECKS)
def test_the_module(module: str, check: str) -> None:
    first = [str(Path(fake.__file__).parent)] if module == "fake" else []
    ran = subprocess.run(
        [sys.executable, "-m", lab_contract.__name__, check],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*first, *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
