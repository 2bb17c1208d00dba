"""The first run's notebook, in a kernel of Jupyter, with a tenth of its steps."""

import pathlib

import nbclient
import nbformat
import pytest

from tests.docs.pages import ROOT
from tests.patience import PATIENCE

pytestmark = [pytest.mark.repository, pytest.mark.launchpad]

NOTEBOOK = ROOT / "docs" / "first_run.ipynb"


def _printed(cell: nbformat.NotebookNode) -> str:
    """What a cell has printed, and the value of its last line."""
    texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell.outputs]
    return "".join(texts)


def test_the_notebook_runs_and_shows_the_lines_of_its_runs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))  # and nobody's own start-up files
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = {cell.source: cell for cell in notebook.cells if cell.cell_type == "code"}
    assert not any(cell.outputs for cell in cells.values())  # they are no part of the repository
    for cell in notebook.cells:
        cell.source = cell.source.replace("0_000", "_000")
    nbclient.NotebookClient(notebook, timeout=int(4 * PATIENCE), kernel_name="python3").execute()
    printed = {source: _printed(cell) for source, cell in cells.items()}
    trained, *_ = (text for source, text in printed.items() if "rr.train" in source)
    assert "Starting" in trained
    assert "\x1b" not in trained  # lines, and no view that is drawn again and again
    assert "The run has ended: 2,000 actor steps were reached." in trained
    assert trained.endswith(" actor steps)")  # the run's own words
    evaluated, *_ = (text for source, text in printed.items() if "run.evaluate" in source)
    assert -1 <= float(evaluated.split()[0]) <= 1
    (film,) = (text for source, text in printed.items() if "run.film" in source)
    assert pathlib.Path(film.strip()).stat().st_size > 1000
    (action,) = (text for source, text in printed.items() if "policy.step" in source)
    assert int(action) in range(3)
    drawn = [out for cell in cells.values() for out in cell.outputs if "image/png" in str(out)]
    assert len(drawn) == 2
