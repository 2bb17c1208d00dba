"""The page on performance: which lines its rows and curves are of."""

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


def _line(
    command: str, settings: dict[str, Any] | None = None, /, **figures: float
) -> dict[str, Any]:
    default = {"agent": "r2d2", "preset": "paper"}
    return {
        "benchmark": command.split()[0],
        "command": f"python -m benchmarks.{command}",
        "settings": default | (settings or {}),
        "figures": {name: {"value": value, "unit": "u"} for name, value in figures.items()},
        "machine": {"accelerators": []},
    }


def _learner(size: int, **figures: float) -> dict[str, Any]:
    config = {"batch_size": size, "torso": "dqn", "lstm_size": 512}
    settings = {"config": config, "roof": "matmul_float32"}
    return _line(f"learner --r2d2.batch_size={size}", settings, **figures)


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


def test_curves_are_medians_of_the_papers_settings_by_count() -> None:
    lines = [
        _line("actor", **{"both, 16": 3.0, "both, 4": 1.0, "share of the parts, 4": 90.0}),
        _line("actor", **{"both, 4": 2.0}),
        _line("actor", {"preset": "local"}, **{"both, 4": 100.0}),
        _line("replay", **{"both, 4": 100.0}),
    ]
    assert results.curve(lines, "actor", "both") == ([4, 16], [1.5, 3.0])
    on_gpu = _learner(4, learner=9e5) | {"machine": {"accelerators": ["GPU"]}}
    on_cpu = [_learner(4, learner=5.0), _learner(1, learner=7.0)]
    learners = results.learners([*lines, *on_cpu, on_gpu])
    assert list(learners) == ["r2d2, dqn, LSTM 512, float32"]
    (found,) = learners.values()
    assert results.by_batch_size(found, "learner") == ([1, 4], [7.0, 5.0])


def test_every_row_names_another_figure_or_command() -> None:
    rows = [row for row in results.rows() if row.table != "gpu"]
    assert len({(row.command, row.ours, row.ratio) for row in rows}) == len(rows)
    assert {row.table for row in results.rows()} == {"headline", "more", "gpu"}
