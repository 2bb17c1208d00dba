"""Where everything is in a population's folder."""

import pathlib

from population import folder
from population.folder import PopulationFolder


def test_members_are_run_folders_below_it() -> None:
    found = PopulationFolder(pathlib.Path("runs/population"))
    assert found.member(3).config == pathlib.Path("runs/population/members/03/config.json")
    assert found.member(123).path.name == "123"
    assert found.output(3) == pathlib.Path("runs/population/outputs/03.txt")


def test_a_folder_is_a_populations_by_its_settings(tmp_path: pathlib.Path) -> None:
    assert not folder.is_population(tmp_path)
    assert not folder.is_population(tmp_path / "nothing")
    (tmp_path / "population.json").write_text("{}")
    assert folder.is_population(tmp_path)
    assert not folder.is_population(tmp_path / "population.json")
