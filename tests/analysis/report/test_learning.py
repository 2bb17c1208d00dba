"""Rates, priorities, groups of columns and settings, by their numbers."""

import pathlib
from unittest import mock

import numpy as np
import pytest

from analysis import saved_replay
from analysis.report import learning, run
from analysis.report.charts import Legend
from environments import suites
from run_folder.log_reader import Log
from tests.analysis.report.made_up import Folder, lines_of
from tests.analysis.report.pages import Section, section


def test_a_mean_rate_is_over_the_time_asked_for() -> None:
    walltime = np.array([100.0, 200.0, 300.0, 400.0])
    log = Log({"walltime": walltime, "steps": np.array([0.0, 100.0, 400.0, 1_000.0])}, {})
    assert learning.mean_rate(log, "steps") == pytest.approx(1_000 / 300)
    assert learning.mean_rate(log, "steps", seconds=200) == pytest.approx(900 / 200)
    assert np.isnan(learning.mean_rate(log, "steps", seconds=50))
    assert np.isnan(learning.mean_rate(Log({}, {}), "steps"))


def test_a_learners_rate_counts_every_step_of_its_batches(tmp_path: pathlib.Path) -> None:
    sizes = {"burn_in": "3", "length": "8", "period": "4", "batch_size": "5"}
    folder = Folder(tmp_path / "run", overrides={"r2d2": sizes})
    folder.act([0.0] * 100)  # 1,000 steps in ten seconds
    folder.learn("r2d2", rows=100, loss=1.0)  # two updates in ten seconds
    found = section(learning.throughput, lines_of(folder))
    assert found.figures == ["Actor steps per second", "Updates per second"]
    trained = 0.2 * 5 * (3 + 8)
    assert found.tables[0][1] == ["run", "100", "100", "0.2", "0.2", f"{trained:.0f}"]


def test_what_agents_share_is_drawn_once(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path / "run", "r2d2,popart", paced_by="popart")
    folder.act([0.0] * 20)
    for agent in folder.settings.agents:
        folder.learn(agent, rows=20, loss=1.0)
    drawn = {
        title: {line.colour for line in lines}
        for of_lines in (learning.throughput, learning.replay)
        for title, lines in section(of_lines, lines_of(folder)).lines.items()
    }
    assert drawn == {
        "Actor steps per second": {1},
        "Updates per second": {0, 1},
        "Replays per observation": {1},
        "Items in replay": {1},
        "Parameter lag, updates": {0, 1},
    }


def _line(folder: Folder, **replay: list[float]) -> run.Line:
    stored = {
        table: saved_replay.Stored(np.array(priorities), np.full(len(priorities), 2))
        for table, priorities in replay.items()
    }
    with mock.patch.object(saved_replay, "stored", return_value=stored):
        return lines_of(folder)[0]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path / "run", overrides={"r2d2": {"priority_exponent": "0.5"}})


@pytest.mark.parametrize(
    ("priorities", "shares"),
    [([4.0, 0.0, 1.0, 9.0], [1 / 3, 0, 1 / 6, 1 / 2]), ([0.0, 0.0], [0.5, 0.5])],
)
def test_items_are_drawn_by_their_priority_to_the_exponent(
    priorities: list[float], shares: list[float], folder: Folder
) -> None:
    found = learning.priorities(_line(folder, r2d2=priorities))
    assert found is not None
    np.testing.assert_allclose(found.probability, shares)
    assert set(found.times_sampled) == {2}


def test_where_nothing_is_prioritized_there_is_no_histogram(
    folder: Folder, tmp_path: pathlib.Path
) -> None:
    for line in (
        _line(folder),
        _line(Folder(tmp_path / "impala", "impala"), impala=[1.0, 1.0]),  # a queue
    ):
        found = section(learning.replay, [line])
        assert "No checkpoint holds a prioritized replay." in found.text
        assert not found.figures
    # Nor where no item has a priority.
    found = section(learning.replay, [_line(folder, r2d2=[0.0, 0.0])])
    assert found.tables[0][1][1:5] == ["2", "0", "0", "0"]
    assert not found.figures


@pytest.mark.parametrize(
    "priorities", [[0.3, 0.3, 0.3], [1e-6, 1.0, 5.0], [0.1 * i for i in range(100)]]
)
def test_a_histogram_holds_every_item_that_can_be_drawn(
    priorities: list[float], folder: Folder
) -> None:
    found = learning.priorities(_line(folder, r2d2=priorities))
    assert found is not None
    edges = learning.bins([found])
    items, samples = learning.shares(found, edges)
    assert len(items) == learning.BINS
    assert items.sum() == pytest.approx(np.mean(np.array(priorities) > 0))
    assert samples.sum() == pytest.approx(1)
    ratios = edges[1:] / edges[:-1]
    np.testing.assert_allclose(ratios, ratios[0])


def test_lines_are_compared_in_the_same_bins(folder: Folder) -> None:
    low, high = (learning.priorities(_line(folder, r2d2=p)) for p in ([0.1, 0.2], [0.0, 80.0]))
    assert low is not None
    assert high is not None
    edges = learning.bins([low, high])
    np.testing.assert_allclose(edges[[0, -1]], [0.1, 80])
    assert [share.sum() for share in learning.shares(low, edges)] == [1, 1]
    assert [share.sum() for share in learning.shares(high, edges)] == [0.5, 1]


def test_the_table_says_how_uneven_the_draw_is(folder: Folder) -> None:
    found = section(learning.replay, [_line(folder, r2d2=[1.0] * 18 + [81.0] * 2)])
    assert found.tables[0][1] == ["run", "20", "1", "81", "81", "50%", "2"]  # 18 of 36 shares
    items, samples = found.lines["Priorities in replay, %"]
    assert (items.style, samples.style) == ("-", "--")
    assert (items.y[0], items.y[1], items.y[-2]) == (0, 90, 10)
    assert samples.y[-2] == pytest.approx(50)


GROUP = {f"{name}/{head}": 0.99 - head / 100 for name in ("gamma", "alpha") for head in (1, 2, 3)}


def _groups(*folders: Folder) -> Section:
    lines = lines_of(*folders)
    legend: Legend = [(line.label, line.colour) for line in lines]
    return section(learning.groups, lines, legend)


def _stacx(path: pathlib.Path, returned: float, self_tuned: str = "gamma,alpha") -> Folder:
    folder = Folder(path, "stacx", overrides={"stacx": {"self_tuned": self_tuned}})
    names = self_tuned.split(",")
    values = {k: v for k, v in GROUP.items() if k.partition("/")[0] in names}
    folder.learn("stacx", rows=20, loss=1.0, **values)
    folder.act([returned] * 20)
    return folder


def test_one_run_has_a_chart_for_each_metaparameter_and_a_colour_for_each_head(
    tmp_path: pathlib.Path,
) -> None:
    found = _groups(_stacx(tmp_path / "run", 1.0))
    assert found.figures == ["gamma", "alpha"]
    assert [line.colour for line in found.lines["gamma"]] == [0, 1, 2]
    for said in ("head 1", "head 2", "head 3", "γ, the discount", "Head 1 acts."):
        assert said in found.text
    assert "head 4" not in found.text


def test_several_runs_are_compared_by_what_they_tune(tmp_path: pathlib.Path) -> None:
    folders = [
        _stacx(tmp_path / "a", 1.0),
        _stacx(tmp_path / "b", 3.0),
        _stacx(tmp_path / "c", 0.5, "gamma"),
    ]
    found = _groups(*folders)
    assert found.figures == ["gamma", "alpha", "Return by self_tuned"]
    assert [line.style for line in found.lines["gamma"][:3]] == ["-", "--", ":"]
    assert [line.colour for line in found.lines["alpha"]] == [0, 0, 0, 1, 1, 1]
    assert "head 2 dashed" in found.text


def test_other_agents_and_runs_without_an_update_have_no_such_section(
    tmp_path: pathlib.Path,
) -> None:
    r2d2 = Folder(tmp_path / "r2d2")
    r2d2.learn("r2d2", rows=3, loss=1.0)
    young = Folder(tmp_path / "young", "stac")
    untuned = Folder(tmp_path / "untuned", "stac", overrides={"stac": {"self_tuned": "none"}})
    untuned.learn("stac", rows=3, loss=1.0)
    for folders in ((r2d2, young), (untuned,)):
        with pytest.raises(ValueError, match="unpack"):
            _groups(*folders)


def _settings(*folders: Folder) -> list[list[str]]:
    """The rows of the table; none where nothing differs."""
    runs = run.load([str(folder.path) for folder in folders])
    found = section(learning.settings, runs)
    assert bool(found.tables) != ("Nothing." in found.text)
    return found.tables[0][1:] if found.tables else []


def test_settings_and_fields_that_differ_are_named(tmp_path: pathlib.Path) -> None:
    a = Folder(tmp_path / "a", seed=1)
    overrides = {"r2d2": {"hidden_sizes": "8,9", "stored_state": "false", "lstm_size": "64"}}
    b = Folder(tmp_path / "b", overrides=overrides, seed=2, max_actor_steps=500)
    c = Folder(tmp_path / "c", seed=1)
    assert _settings(a, b, c) == [
        ["max_actor_steps", "None", "500", "None"],
        ["seed", "1", "2", "1"],
        ["stored_state", "True", "False", "True"],
        ["hidden_sizes", "256", "8,9", "256"],
    ]
    assert _settings(a, c) == []


def test_agents_of_other_names_are_compared_field_by_field(tmp_path: pathlib.Path) -> None:
    r2d2 = Folder(tmp_path / "a")
    rows = _settings(r2d2, Folder(tmp_path / "b", "r2d2_feedforward"))
    assert ["agent", "r2d2", "r2d2_feedforward"] in rows
    assert ["lstm_size", "64", "0"] in rows
    assert not [row for row in rows if row[0] == "head_size"]
    rows = _settings(r2d2, Folder(tmp_path / "c", "impala"))
    assert [row for row in rows if row[0] == "eta"] == [["eta", "0.9", "–"]]
    both = Folder(tmp_path / "d", "r2d2,popart")
    changed = Folder(tmp_path / "e", "r2d2,popart", overrides={"popart": {"discount": "0.5"}})
    assert _settings(both, changed) == [["popart.discount", "0.99", "0.5"]]


@pytest.mark.parametrize("name", ["a", "paper"])
def test_one_run_is_compared_with_its_paper(name: str, tmp_path: pathlib.Path) -> None:
    rows = _settings(Folder(tmp_path / name, env="atari:pong"))
    for row in (["num_actors", "256", "32"], ["lstm_size", "512", "256"]):
        assert row in rows
    assert "eta" not in [row[0] for row in rows]


def test_a_run_can_be_shown_where_it_could_not_be_played(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(suites, "check", lambda name: None)  # where it was, there is an engine
        folder = Folder(tmp_path / "lab", env="dmlab:lasertag_three_opponents_small")
    with pytest.raises(ValueError, match="deepmind_lab"):
        suites.check(folder.settings.env)
    rows = _settings(folder)
    assert ["lstm_size", "512", "256"] in rows
    assert "frame_stack" not in [row[0] for row in rows]
