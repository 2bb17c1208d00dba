"""Only what differs is shown."""

import pathlib

import pytest

from analysis.report import differences, run
from environments import suites
from tests.analysis.report.made_up import Folder


def _rows(*folders: Folder) -> list[list[str]]:
    runs = run.load([str(folder.path) for folder in folders])
    return differences.differing([differences.flat(run.settings) for run in runs])


def test_equal_runs_do_not_differ(tmp_path: pathlib.Path) -> None:
    a, b = Folder(tmp_path / "a"), Folder(tmp_path / "b")
    assert _rows(a, b) == []
    runs = run.load([str(a.path), str(b.path)])
    assert "Nothing." in differences.section(runs).body


def test_settings_and_fields_that_differ_are_named(tmp_path: pathlib.Path) -> None:
    a = Folder(tmp_path / "a", seed=1)
    overrides = {"r2d2": {"hidden_sizes": "8,9", "stored_state": "false", "lstm_size": "64"}}
    b = Folder(tmp_path / "b", overrides=overrides, seed=2, max_actor_steps=500)
    c = Folder(tmp_path / "c", seed=1)
    assert _rows(a, b, c) == [
        ["max_actor_steps", "None", "500", "None"],
        ["seed", "1", "2", "1"],
        ["stored_state", "True", "False", "True"],
        ["hidden_sizes", "256", "8,9", "256"],
    ]


def test_agents_of_other_names_are_compared_field_by_field(tmp_path: pathlib.Path) -> None:
    rows = _rows(Folder(tmp_path / "a"), Folder(tmp_path / "b", "r2d2_feedforward"))
    assert ["agent", "r2d2", "r2d2_feedforward"] in rows
    assert ["lstm_size", "64", "0"] in rows
    assert not [row for row in rows if row[0] == "head_size"]


def test_fields_of_one_of_several_agents_are_named_with_it(tmp_path: pathlib.Path) -> None:
    both = Folder(tmp_path / "a", "r2d2,popart")
    changed = Folder(tmp_path / "b", "r2d2,popart", overrides={"popart": {"discount": "0.5"}})
    assert _rows(both, changed) == [["popart.discount", "0.99", "0.5"]]


def test_what_only_one_run_has_is_a_dash_for_the_others(tmp_path: pathlib.Path) -> None:
    rows = _rows(Folder(tmp_path / "a"), Folder(tmp_path / "b", "impala"))
    assert [row for row in rows if row[0] == "eta"] == [["eta", "0.9", "–"]]


def test_one_run_is_compared_with_its_paper(tmp_path: pathlib.Path) -> None:
    (only,) = run.load([str(Folder(tmp_path / "a", env="atari:pong").path)])
    paper = differences.flat(differences.as_in_paper(only.settings))
    assert (paper["num_actors"], paper["lstm_size"], paper["torso"]) == ("256", "512", "dqn")
    body = differences.section([only]).body
    assert '<th scope="row">lstm_size</th><td>512</td><td>256</td>' in body
    assert ">eta<" not in body


def test_a_run_can_be_shown_where_it_could_not_be_played(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(suites, "check", lambda name: None)  # where it was, there is an engine
        folder = Folder(tmp_path / "lab", env="dmlab:lasertag_three_opponents_small")
    with pytest.raises(ValueError, match="deepmind_lab"):
        suites.check(folder.settings.env)
    (only,) = run.load([str(folder.path)])
    paper = differences.as_in_paper(only.settings)
    rows = differences.differing([differences.flat(s) for s in (paper, only.settings)])
    assert ["lstm_size", "512", "256"] in rows
    assert not [row for row in rows if row[0] == "frame_stack"]
