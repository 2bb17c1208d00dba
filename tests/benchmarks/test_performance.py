"""The page on performance: which lines its rows are of."""

from typing import Any

from benchmarks import performance as results
from benchmarks.performance import Row

ROWS_OF_TWO = [
    Row(
        "more",
        "step",
        "learner --agent=r2d2 --peer=acme",
        "learner",
        "peer",
        "learner_to_peer",
        "2.1",
    ),
    Row("more", "sampled", "replay --agent=r2d2", "sampled, 1", target="1,200"),
]


def _line(command: str, **figures: float) -> dict[str, Any]:
    return {
        "command": f"python -m benchmarks.{command}",
        "figures": {name: {"value": value, "unit": "u"} for name, value in figures.items()},
    }


def test_a_row_shows_every_line_of_its_command_and_only_those() -> None:
    figures = dict(learner=2_905.4, peer=1_380.0, learner_to_peer=2.1054)
    again = dict(learner=99.46, peer=50.0, learner_to_peer=1.989)
    lines = [
        _line("learner --agent=r2d2 --peer=acme", **figures),
        _line("learner --peer=acme --agent=r2d2", **again),
        _line("learner --agent=r2d2 --peer=acme --rounds=1", **again),
    ]
    assert results.table(ROWS_OF_TWO, lines).splitlines()[2:] == [
        "| step | 2,905 / 99.5 u | 1,380 / 50 u | 2.11 / 1.99 u | 2.1 |"
        " `learner --agent=r2d2 --peer=acme` |"
    ]


def test_every_row_names_another_figure_or_command() -> None:
    rows = [row for row in results.rows() if row.table != "gpu"]
    assert len({(row.command, row.ours, row.ratio) for row in rows}) == len(rows)
    assert {row.table for row in results.rows()} == {"headline", "more", "gpu"}
