"""The page on performance: its table follows from the data, and its images are drawn from it."""

import pathlib
from typing import Any

import matplotlib.image
import pytest

from studies import performance_results as results
from studies import plot_performance
from studies.performance_results import Row
from studies.performance_rows import GPU_ROWS, HEADLINES, ROWS

ROWS_OF_TWO = [
    Row("step", "learner --agent=r2d2 --peer=acme", "learner", "peer", "learner_to_peer", "2.1"),
    Row("sampled", "replay --agent=r2d2", "sampled, 1", target="1,200"),
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


def _lines() -> list[dict[str, Any]]:
    together = {"environments, 4": 8.0, "inference, 4": 4.0, "both, 4": 2.0}
    items = {"sampled, 1": 1_500.0, "batches, 1": 900.0, "inserted, 1": 50.0}
    work = {"learner": 3e3, "useful_work": 300.0, "matmul_float32": 500.0, "matmul_bfloat16": 900.0}
    return [
        _line("actor --agent=r2d2", **together),
        _line("replay --agent=r2d2", **items),
        _learner(1, **work),
        _learner(16, **work),
    ]


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


def test_no_data_make_no_table() -> None:
    assert results.table(ROWS_OF_TWO, []) == ""


def test_a_profile_is_a_row_of_shares() -> None:
    config = {"batch_size": 8, "torso": "resnet", "lstm_size": 0, "precision": "bfloat16"}
    profile = _line("profile --agent=impala", {"agent": "impala", "config": config}, step=1234.5)
    profile["figures"] |= {name: {"value": 12.34, "unit": "%"} for name in ("pooling", "Python")}
    assert results.profiles([_line("replay"), profile]).splitlines() == [
        "|  | step | pooling, % | Python, % |",
        "| --- | --- | --- | --- |",
        "| impala, resnet, bfloat16, batch 8 | 1,234 u | 12.3 | 12.3 |",
    ]
    assert results.profiles([_line("replay")]) == ""


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


def test_a_block_is_replaced_and_nothing_else() -> None:
    page = "a\n<!-- table: begin -->\nold\n<!-- table: end -->\nb\n"
    replaced = results.replace_block(page, "table", "new")
    assert replaced == "a\n<!-- table: begin -->\n\nnew\n\n<!-- table: end -->\nb\n"
    assert results.replace_block(replaced, "table", "new") == replaced
    with pytest.raises(ValueError, match="Expected one <!-- images: begin -->"):
        results.replace_block(page, "images", "new")


def test_images_say_what_they_were_drawn_from(tmp_path: pathlib.Path) -> None:
    lines = _lines()
    for draw in (plot_performance.draw_roofline, plot_performance.draw_cost):
        path = tmp_path / "image.png"
        draw(lines, path)
        assert plot_performance.drawn_from(path) == plot_performance.fingerprint(lines)
        assert plot_performance.drawn_from(path) != plot_performance.fingerprint(lines[1:])
        assert matplotlib.image.imread(path).std() > 0


def test_every_row_names_another_figure_or_command() -> None:
    assert len({(row.command, row.ours, row.ratio) for row in ROWS}) == len(ROWS)
    assert set(HEADLINES) <= set(ROWS)


@pytest.mark.repository
def test_the_pages_and_images_agree_with_the_data() -> None:
    lines = results.read(plot_performance.DATA)
    for page in plot_performance.PAGES:
        assert page.read_text() == plot_performance.written(page, lines), page
    for image in (plot_performance.ROOFLINE, plot_performance.COST):
        if lines:
            assert plot_performance.drawn_from(image) == plot_performance.fingerprint(lines)
        else:
            assert not image.exists()


def test_every_line_is_shown() -> None:
    """In a row, among the profiles or, a learner of other sizes, in a plot."""
    for line in results.read(plot_performance.DATA):
        in_table = any(line in results.select([line], row.command) for row in (*ROWS, *GPU_ROWS))
        assert in_table or line["benchmark"] in ("learner", "profile"), line["command"]
