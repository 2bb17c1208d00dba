"""Where a decision cannot be written nothing is left of it, and what was decided stays."""

import errno
import os
import pathlib
from typing import Any

import pytest

from population import decisions
from population.folder import PopulationFolder
from run_folder.settings import SettingsError
from tests.population import populations
from tests.population.populations import decide, decision_of, refuse


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> PopulationFolder:
    return PopulationFolder(tmp_path)


def test_a_decision_is_on_the_disk_before_it_has_its_name(
    folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(file: int, sync: Any = os.fsync) -> None:
        synced.append(os.fstat(file).st_size)
        sync(file)

    def link(half: pathlib.Path, path: pathlib.Path, link: Any = os.link) -> None:
        assert synced == [half.stat().st_size]
        link(half, path)

    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)
    assert decisions.write(folder, decision_of(0, 0))
    assert synced[0] == (folder.decisions / "00-0000.json").stat().st_size > 0


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("broken", ["fsync", "link"])
def test_a_full_disk_leaves_nothing(
    broken: str, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = decide(folder, 0, 2)
    with monkeypatch.context() as context:
        context.setattr(os, broken, _full)
        with pytest.raises(OSError, match="No space left"):
            decisions.write(folder, decision_of(0, 2))
        assert not decisions.write(folder, decision_of(0, 1, time=7.0))  # which is there
    assert populations.names(folder) == {"00-0000.json", "00-0001.json"}
    assert decisions.of_member(folder, 0) == made
    assert populations.listed(folder) == made


@pytest.mark.parametrize("code", ["EPERM", "EOPNOTSUPP", "ENOTSUP", "ENOSYS", "EMLINK", "EXDEV"])
def test_a_file_system_without_hard_links_is_named(
    code: str, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = decide(folder, 0, 1)
    number = getattr(errno, code)
    monkeypatch.setattr(os, "link", refuse(number))
    with pytest.raises(SettingsError, match=r"\.$") as error:
        decisions.write(folder, decision_of(0, 1))
    assert f"{folder.decisions} must be on a file system that has hard links" in str(error.value)
    assert os.strerror(number) in str(error.value)
    assert populations.names(folder) == {"00-0000.json"}
    assert decisions.of_member(folder, 0) == made


def test_a_list_that_cannot_be_written_undoes_no_decision(
    folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = decide(folder, 0, 1)
    with monkeypatch.context() as context:
        context.setattr(os, "replace", _full)
        assert decisions.write(folder, decision_of(0, 1))
    assert len(decisions.of_member(folder, 0)) == 2
    assert populations.listed(folder) == made
    decisions.list_all(folder)
    assert populations.listed(folder) == decisions.of_member(folder, 0)
    assert {path.name for path in folder.path.iterdir()} == {"decisions", "population.jsonl"}
