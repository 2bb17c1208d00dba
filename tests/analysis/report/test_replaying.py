"""Priorities of what is stored, and of what is drawn."""

import pathlib
from unittest import mock

import numpy as np
import pytest

from analysis.report import replaying, run, stored_priorities
from tests.analysis.report.made_up import Folder
from tests.analysis.report.pages import tables


def _line(folder: Folder, **replay: list[float]) -> run.Line:
    stored = {
        table: stored_priorities.Stored(np.array(priorities), np.full(len(priorities), 2))
        for table, priorities in replay.items()
    }
    with mock.patch.object(stored_priorities, "read", return_value=stored):
        return run.lines(run.load([str(folder.path)]))[0]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path / "run", overrides={"r2d2": {"priority_exponent": "0.5"}})


def test_items_are_drawn_by_their_priority_to_the_exponent(folder: Folder) -> None:
    found = replaying.priorities(_line(folder, r2d2=[4.0, 0.0, 1.0, 9.0]))
    assert found is not None
    np.testing.assert_allclose(found.probability, np.array([2, 0, 1, 3]) / 6)
    assert found.times_sampled.tolist() == [2, 2, 2, 2]


def test_items_without_any_priority_are_drawn_evenly(folder: Folder) -> None:
    found = replaying.priorities(_line(folder, r2d2=[0.0, 0.0]))
    assert found is not None
    assert found.probability.tolist() == [0.5, 0.5]
    assert not len(replaying.bins([found]))
    section = replaying.section([_line(folder, r2d2=[0.0, 0.0])], [])
    ((_, row),) = tables(section.body)
    assert row[1:5] == ["2", "0", "0", "0"]
    assert not section.charts


def test_where_nothing_is_prioritized_there_is_no_histogram(
    folder: Folder, tmp_path: pathlib.Path
) -> None:
    assert replaying.priorities(_line(folder)) is None
    queue = _line(Folder(tmp_path / "impala", "impala"), impala=[1.0, 1.0])
    assert replaying.priorities(queue) is None


@pytest.mark.parametrize(
    "priorities", [[0.3, 0.3, 0.3], [1e-6, 1.0, 5.0], [0.1 * i for i in range(100)]]
)
def test_a_histogram_holds_every_item_that_can_be_drawn(
    priorities: list[float], folder: Folder
) -> None:
    found = replaying.priorities(_line(folder, r2d2=priorities))
    assert found is not None
    edges = replaying.bins([found])
    items, samples = replaying.outlines(found, edges, 3)
    assert len(items.heights) == replaying.BINS
    assert items.colour == 3
    assert items.heights.sum() == pytest.approx(np.mean(np.array(priorities) > 0))
    assert samples.heights.sum() == pytest.approx(1)
    ratios = edges[1:] / edges[:-1]
    np.testing.assert_allclose(ratios, ratios[0])


def test_lines_are_compared_in_the_same_bins(folder: Folder) -> None:
    low, high = (replaying.priorities(_line(folder, r2d2=p)) for p in ([0.1, 0.2], [0.0, 80.0]))
    assert low is not None
    assert high is not None
    edges = replaying.bins([low, high])
    np.testing.assert_allclose(edges[[0, -1]], [0.1, 80])
    assert [outline.heights.sum() for outline in replaying.outlines(low, edges, 0)] == [1, 1]
    assert [outline.heights.sum() for outline in replaying.outlines(high, edges, 0)] == [0.5, 1]


def test_the_table_says_how_uneven_the_draw_is(folder: Folder) -> None:
    line = _line(folder, r2d2=[1.0] * 18 + [81.0] * 2)  # 18 of 36 shares
    section = replaying.section([line], [("run", 0)])
    ((_, row),) = tables(section.body)
    assert row == ["run", "20", "1", "81", "81", "50%", "2"]
    assert "priorities-in-replay" in [chart.name for chart in section.charts]
