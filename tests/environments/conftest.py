"""DeepMind Lab, on the stand-in and the real engine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.dmlab.environment import DMLab
from tests.environments.dmlab import engines
from tests.environments.dmlab.fakes import deepmind_lab as fake


@pytest.fixture(params=engines.MODULES)
def make_dmlab(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[engines.Make]:
    """Makes environments whose engine is the parameter's, ends them, and looks for their files."""
    if request.param == "fake":
        monkeypatch.syspath_prepend(Path(fake.__file__).parent)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made: list[DMLab] = []

    def make(level: str = engines.FIXED, num_envs: int = 2, **arguments: Any) -> DMLab:
        made.append(DMLab(level, num_envs, cache=tmp_path / "cache", **arguments))
        return made[-1]

    yield make
    for env in made:
        env.close()
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}
