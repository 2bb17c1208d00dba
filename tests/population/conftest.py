"""Two members, one of whom takes over what the other has learned."""

import pathlib

import pytest

from run_folder.layout import RunFolder
from tests.population.learners import Learning, saved


@pytest.fixture
def rival(tmp_path: pathlib.Path) -> Learning:
    """One that has learned for 9 updates, and saved three times."""
    return saved(RunFolder(tmp_path / "rival"), 3.0, [2, 3, 4])


@pytest.fixture
def own(tmp_path: pathlib.Path) -> Learning:
    """Who adopts: at update 5."""
    return saved(RunFolder(tmp_path / "own"), -1.0, [3, 2])
