"""The five scripts of docs/scripts.md run in their order; the page counts their lines rightly."""

import pathlib
import re
import runpy
import sys

import matplotlib.pyplot as plt
import pytest

import recurrent_replay
from tests.docs.pages import ROOT

pytestmark = pytest.mark.repository

PAGE = ROOT / "docs" / "scripts.md"
RIVALS = ROOT / "docs" / "data" / "scripts"
NAMES = ("train", "task", "torso", "step", "compare")  # of rivals' files, in the page's order
OURS = dict(re.findall(r"^```python\n# (\w+)\.py\n(.*?)^```", PAGE.read_text(), re.M | re.S))


def _lines(code: str) -> int:
    """Lines that are neither blank nor a comment."""
    return sum(not re.match(r"\s*(#|$)", line) for line in code.splitlines())


def test_lines_that_are_blank_or_comments_do_not_count() -> None:
    assert _lines("# a.py\n\nx = 1  # a number\nif x:\n    # why\n    y = 2\n") == 3


def test_the_table_has_the_lines_of_every_script() -> None:
    rows = re.findall(r"^\| \[.*?\]\(#.*?\) \| (.*) \|$", PAGE.read_text(), re.M)
    counted = []
    for name, ours in zip(NAMES, OURS.values(), strict=True):
        files = [f"{rival}_{name}.py" for rival in ("sb3", "acme")]
        links = [f"[{_lines((RIVALS / f).read_text())}](data/scripts/{f})" for f in files]
        counted.append(" | ".join([str(_lines(ours)), *links]))
    assert rows == counted


@pytest.mark.slow
@pytest.mark.launchpad
def test_the_scripts_run_in_their_order(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    plt.switch_backend("agg")
    for name, code in OURS.items():
        file = tmp_path / f"{name}.py"
        file.write_text(code)
        capfd.readouterr()
        runpy.run_path(str(file), run_name="__main__")
        monkeypatch.delitem(sys.modules, name, raising=False)  # that the script gives itself
        printed = capfd.readouterr().out.splitlines()[-1]
        assert 0 <= float(printed.split()[-1]) <= 500, printed
    assert (tmp_path / "returns.png").stat().st_size > 1000
    legend = plt.gca().get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["r2d2", "impala"]
    plt.close("all")
    torso = recurrent_replay.open("runs/wide").settings.configs["impala"]
    assert "wide:wide" in str(torso)
