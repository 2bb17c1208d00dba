"""Metaparameters by head: one run's in a colour for each head, several runs' by run."""

import pathlib
from typing import Any

from analysis.report import groups
from analysis.report.run import lines, load
from tests.analysis.report.made_up import Folder

VALUES = {f"{name}/{head}": 0.99 - head / 100 for name in ("gamma", "alpha") for head in (1, 2, 3)}


def _sections(*folders: Folder) -> list[Any]:
    drawn = lines(load([str(folder.path) for folder in folders]))
    return groups.sections(drawn, [(line.label, line.colour) for line in drawn])


def _stacx(path: pathlib.Path, returned: float, self_tuned: str = "gamma,alpha") -> Folder:
    folder = Folder(path, "stacx", overrides={"stacx": {"self_tuned": self_tuned}})
    names = self_tuned.split(",")
    values = {k: v for k, v in VALUES.items() if k.partition("/")[0] in names}
    folder.learn("stacx", rows=20, loss=1.0, **values)
    folder.act([returned] * 20)
    return folder


def test_one_run_has_a_chart_for_each_metaparameter_and_a_colour_for_each_head(
    tmp_path: pathlib.Path,
) -> None:
    (section,) = _sections(_stacx(tmp_path / "run", 1.0))
    assert section.title == "Metaparameters"
    assert [chart.name for chart in section.charts] == ["gamma", "alpha"]
    for said in ("head 1", "head 2", "head 3", "γ, the discount", "Head 1 acts."):
        assert said in section.body
    assert "head 4" not in section.body


def test_several_runs_are_compared_by_what_they_tune(tmp_path: pathlib.Path) -> None:
    folders = [
        _stacx(tmp_path / "a", 1.0),
        _stacx(tmp_path / "b", 3.0),
        _stacx(tmp_path / "c", 0.5, "gamma"),
    ]
    (section,) = _sections(*folders)
    assert [chart.name for chart in section.charts] == ["gamma", "alpha", "return-by-self-tuned"]
    bars = section.charts[-1].svg
    assert "{gamma, alpha}" in bars
    assert "{gamma}" in bars
    assert "head 2 dashed" in section.body


def test_other_agents_and_runs_without_an_update_have_no_such_section(
    tmp_path: pathlib.Path,
) -> None:
    r2d2 = Folder(tmp_path / "r2d2")
    r2d2.learn("r2d2", rows=3, loss=1.0)
    young = Folder(tmp_path / "young", "stac")
    assert _sections(r2d2, young) == []
    untuned = Folder(tmp_path / "untuned", "stac", overrides={"stac": {"self_tuned": "none"}})
    untuned.learn("stac", rows=3, loss=1.0)
    assert _sections(untuned) == []
