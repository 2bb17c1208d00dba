"""The pages and pictures show what docs/data holds, and that is every run of its study."""

import functools
import pathlib
from collections.abc import Callable, Collection

import matplotlib.image
import pytest

from studies import (
    control_curves,
    corrections,
    corrections_results,
    memory,
    plot_performance,
    populations,
    populations_results,
    records,
    reproduction,
    reproduction_results,
    scale,
    self_tuning,
)
from studies.arguments import DOCS
from studies.performance_results import read as read_lines
from studies.populations import STUDIES as POPULATIONS
from studies.reproduction_arms import STUDIES, runs

pytestmark = pytest.mark.repository

LINES = read_lines(plot_performance.DATA)
REPRODUCED = reproduction_results.read(reproduction.DATA)
MEMORY = memory.read(DOCS / "data" / "memory.csv")
CORRECTED = records.read(corrections.DATA, corrections_results.Run, corrections_results.Result)
TUNED = records.read(self_tuning.DATA, self_tuning.Run, self_tuning.Result)
RETURNS = records.read(
    DOCS / "data" / "control_returns.csv", control_curves.Run, control_curves.Result
)
EVOLVED = {name: populations_results.parse(populations.data(name)) for name in POPULATIONS}


def _of_populations(_: str) -> list[str]:
    told = [POPULATIONS[name].tell(rows).split("\n\n") for name, rows in EVOLVED.items()]
    return [part for parts in told for part in parts if part.startswith("|")]


def _of_performance(name: str) -> list[str]:
    (page,) = (page for page in plot_performance.PAGES if page.name == name)
    return [plot_performance.written(page, LINES)]


def _text(name: str) -> str:
    return (DOCS.parent if name == "README.md" else DOCS).joinpath(name).read_text()


# What stands on a page, some of them whole pages.
TOLD: dict[str, Callable[[str], list[str]]] = {
    "README.md": _of_performance,
    "performance.md": _of_performance,
    "control.md": lambda _: [control_curves.table(DOCS)],
    "r2d2.md": lambda _: [memory.table(MEMORY)],
    "populations.md": _of_populations,
    "reproduction.md": lambda name: [reproduction.written(_text(name), REPRODUCED)],
    "scale.md": lambda name: [scale.render(_text(name), scale.newest())],
}


@pytest.mark.parametrize("name", TOLD)
def test_a_page_shows_what_the_data_says(name: str) -> None:
    parts = TOLD[name](name)
    assert parts
    for part in parts:
        assert part in _text(name)


MADE: dict[str, tuple[Collection[object], Collection[object]]] = {
    "control_curves": (control_curves.RUNS, {r for r in RETURNS if r.agent != "random"}),
    "corrections": (corrections.runs(), CORRECTED),
    "memory": (memory.RUNS, MEMORY),
    "populations": (
        [(name, i) for name in POPULATIONS["evolution"].populations for i in range(4)],
        populations_results.by_member(EVOLVED["evolution"]),
    ),
    "reproduction": (runs(STUDIES, reproduction.SEEDS), REPRODUCED),
    "self_tuning": (self_tuning.runs(), TUNED),
}


@pytest.mark.parametrize("study", MADE)
def test_the_file_holds_every_run_of_the_study_once_and_no_other(study: str) -> None:
    asked, found = MADE[study]
    assert len(set(asked)) == len(asked) == len(found)
    assert set(asked) == set(found)


def test_every_line_of_a_benchmark_is_shown() -> None:
    """In a row, among the profiles or, a learner of other sizes, in a plot."""
    for line in LINES:
        rows = (*plot_performance.ROWS, *plot_performance.GPU_ROWS)
        in_table = any(plot_performance.results.select([line], row.command) for row in rows)
        assert in_table or line["benchmark"] in ("learner", "profile"), line["command"]


def _control_curves(image: pathlib.Path) -> None:
    (image.parents[1] / "data").symlink_to(DOCS / "data")
    control_curves.draw(image.parents[1])


DRAWN: dict[str, Callable[[pathlib.Path], None]] = {
    "control_curves": _control_curves,
    "memory": lambda image: memory.draw(MEMORY, image),
    "impala-corrections": lambda image: corrections_results.draw(
        corrections.panels(CORRECTED, "mean_return"), "return", image
    ),
    "stac_small": lambda image: self_tuning.draw(TUNED, image),
    **{
        f"populations_{name}": functools.partial(study.draw, EVOLVED[name])
        for name, study in POPULATIONS.items()
    },
    "performance_roofline": lambda image: plot_performance.draw_roofline(LINES, image),
    "performance_cost": lambda image: plot_performance.draw_cost(LINES, image),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_data_can_be_drawn(name: str, tmp_path: pathlib.Path) -> None:
    image = tmp_path / "images" / f"{name}.png"
    image.parent.mkdir()
    DRAWN[name](image)
    assert matplotlib.image.imread(image).std() > 0.05
    if name.startswith("performance"):
        assert plot_performance.drawn_from(image) == plot_performance.fingerprint(LINES)


def test_pictures_were_drawn_of_the_data_that_is_kept() -> None:
    for image in (plot_performance.ROOFLINE, plot_performance.COST):
        assert plot_performance.drawn_from(image) == plot_performance.fingerprint(LINES)
    for name, study in STUDIES.items():
        found = plot_performance.drawn_from(reproduction.image(DOCS, name))
        assert found == reproduction_results.fingerprint(REPRODUCED, study.arms)
    assert plot_performance.fingerprint(LINES) != plot_performance.fingerprint(LINES[1:])
