"""docs/runs.md has every column that a run logs."""

import pathlib
import re

import pytest

from agents.environment_loop import Episode
from launch.graph import process
from launch.graph.coordinator import Coordinator
from launch.graph.evaluator_node import summary
from launch.graph.logs import LABELS, Logs
from run_folder.layout import RunFolder
from tests.docs.pages import ROOT

pytestmark = pytest.mark.repository

TASKS = ("atari:pong", "catch")


def test_every_column_is_on_the_page(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "enter", lambda *_: None)
    begun = dict(actor_steps=0, episodes=0, walltime=0.0)
    limits = dict(max_actor_steps=100, max_learner_steps=None)
    node = Coordinator(str(tmp_path), TASKS, 1, begun, {"r2d2": (0, 0)}, **limits, replays=[])
    node.report_steps([0], 9, [(0, 0, 1.0, 9, 9)], 0)
    node.get_counts()
    node._write_logs(Logs(tmp_path, True, 0))
    headers = [RunFolder(tmp_path).log(label).read_text().split("\n")[0] for label in LABELS]
    of_evaluations = summary(TASKS, TASKS, [Episode(0, 1.0, 9), Episode(1, -1.0, 9)])
    columns = {*",".join(headers).split(","), *of_evaluations}

    told = set(re.findall(r"`([\w/<>]+)`", (ROOT / "docs/runs.md").read_text()))
    assert not {re.sub("/.*", "/<task>", column) for column in columns} - told
    assert {"median_normalised", "environments_lost", "task"} <= columns
