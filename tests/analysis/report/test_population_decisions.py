"""What the members decided, the newest first."""

import json
import pathlib
from unittest import mock

from analysis.report import population, population_decisions
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved
from tests.analysis.report.pages import tables


def test_the_newest_decision_comes_first(tmp_path: pathlib.Path) -> None:
    made = evolved(tmp_path)
    (table,) = tables(population_decisions.section(population.load(tmp_path)).body)
    assert [row[:2] for row in table[1:]] == [
        *(["02", "1"], ["00", "1"], ["01", "1"]),
        *(["02", "0"], ["01", "0"], ["00", "0"]),
    ]
    kept, took, began = table[2], table[3], table[-1]
    assert kept[3:] == [
        *("15,000", "0.5", "02", "−1", "kept its own, not 02's"),
        "learning_rate 0.0001 → 0.00012",
    ]
    assert took[2:8] == ["2023-11-14 22:13:24", "10,000", "−0.5", "00", "0.5", "took over 00's"]
    assert took[8] == "learning_rate 0.001 → 0.0001, entropy_cost 0.4 → 0.25"
    assert began[3:] == [
        *("0", "–", "–", "–", "began"),
        "learning_rate 0.0001, entropy_cost 0.2",
    ]
    made.decide(0, 40_000, rival=1)
    path = made.path(0, 2)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"time": 1e15}))  # no clock has it
    (table,) = tables(population_decisions.section(population.load(tmp_path)).body)
    assert table[1][2] == "1,000,000,000,000,000"
    assert table[1][-2:] == ["kept its own, not 01's", "as before"]


def test_older_ones_are_folded_and_the_oldest_of_many_left_out(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, 2)
    made.begin({RATE: [1e-4] * 2, COST: [0.5] * 2})
    for number in range(80):
        made.decide(0, 1_000 * number, rival=1)
    members = population.load(tmp_path)
    body = population_decisions.section(members).body
    newest, earlier = tables(body)
    assert [row[1] for row in (newest[1], newest[-1], earlier[1])] == ["80", "31", "30"]
    assert len(earlier) == 1 + 82 - 50
    assert "<details><summary>All 32 before these</summary>" in body
    assert "population.jsonl" not in body
    with mock.patch.object(population_decisions, "MOST", 60):
        body = population_decisions.section(members).body
    assert [len(table) for table in tables(body)] == [51, 11]
    assert "All 82 decisions are in population.jsonl." in body
