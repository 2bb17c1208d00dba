"""The stand-in for DeepMind Lab's module and, where it is installed, the real one: one suite."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.environments.fakes import deepmind_lab as fake
from tests.environments.lab import contract, engines


@pytest.mark.parametrize("module", engines.MODULES)
@pytest.mark.parametrize("check", contract.CHECKS)
def test_the_module(
    module: str, check: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    ran = _run(module, check)
    assert ran.returncode == 0, ran.stderr
    assert not list(tmp_path.iterdir())


def _run(module: str, check: str) -> subprocess.CompletedProcess[str]:
    """Runs a check in a temporary folder of its own: an engine that is killed leaves its files."""
    first = [str(Path(fake.__file__).parent)] if module == "fake" else []
    path = os.pathsep.join([*first, *filter(None, sys.path)])
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, "-m", contract.__name__, check],
            env={**os.environ, "PYTHONPATH": path, "TMPDIR": folder},
            capture_output=True,
            text=True,
            timeout=300,
        )
