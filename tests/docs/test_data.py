"""The pages and pictures show what docs/data holds, and that is every run of its study."""

import functools
import pathlib
from collections.abc import Callable, Collection

import matplotlib.image
import pytest
from PIL import Image

from benchmarks import (
    cores,
    corrections,
    demonstrations,
    figures,
    legal_actions,
    performance,
    populations,
    reproduction,
    results,
    results_runs,
    returns,
    scale,
    self_tuning,
    study,
    training,
)
from benchmarks.populations import STUDIES as POPULATIONS
from benchmarks.reproduction import STUDIES
from benchmarks.study import DOCS

pytestmark = pytest.mark.repository

LINES = study.read_lines(performance.DATA)
REPRODUCED = study.read(reproduction.DATA, study.Run, reproduction.Result)
CORRECTED = study.read(corrections.DATA, corrections.Run, corrections.Result)
TUNED = study.read(self_tuning.DATA, self_tuning.Run, self_tuning.Result)
CORED = study.read(cores.DATA, cores.Run, cores.Result)
SHOWN = study.read(demonstrations.DATA, study.Run, study.Evaluation)
MASKED = study.read(legal_actions.DATA, legal_actions.Run, legal_actions.Result)
RETURNS = study.read(returns.data(returns.SMALL), study.Run, returns.Result)
PONG = study.read(returns.data(returns.PONG), study.Run, study.Evaluation)
EVOLVED = {name: populations.parse(populations.data(name)) for name in POPULATIONS}


def _of_populations(_: str) -> list[str]:
    told = [POPULATIONS[name].tell(rows).split("\n\n") for name, rows in EVOLVED.items()]
    return [part for parts in told for part in parts]


def _of_performance(name: str) -> list[str]:
    (page,) = (page for page in performance.PAGES if page.name == name)
    return [performance.written(page, LINES)]


def _text(name: str) -> str:
    return (DOCS.parent if name == "README.md" else DOCS).joinpath(name).read_text()


# Parts of a page, or the whole page, as the data has them.
TOLD: dict[str, Callable[[str], list[str]]] = {
    "README.md": lambda name: [*_of_performance(name), results.summary()],
    "performance.md": _of_performance,
    "cores.md": lambda _: [cores.block(CORED)],
    "demonstrations.md": lambda _: [demonstrations.table(SHOWN)],
    "legal-actions.md": lambda _: [legal_actions.GRIDS[0].table(MASKED, "final_return")],
    "returns.md": lambda _: [
        returns.table(found, returns.MEASURES[name])
        for name, found in ((returns.SMALL, RETURNS), (returns.PONG, PONG))
    ],
    "results.md": lambda name: [results.written(_text(name))],
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
    "cores": (cores.RUNS, CORED),
    "demonstrations": (demonstrations.RUNS, SHOWN),
    "corrections": (corrections.RUNS, CORRECTED),
    "populations": (
        [(name, i) for name in POPULATIONS["evolution"].populations for i in range(4)],
        populations.by_member(EVOLVED["evolution"]),
    ),
    "legal_actions": (legal_actions.RUNS, MASKED),
    "returns": (returns.RUNS[returns.SMALL], RETURNS),
    "returns_pong": (returns.RUNS[returns.PONG], PONG),
    "reproduction": (reproduction.runs(STUDIES, reproduction.SEEDS), REPRODUCED),
    "self_tuning": (self_tuning.RUNS, TUNED),
}


@pytest.mark.parametrize("name", MADE)
def test_the_file_holds_every_run_of_the_study_once_and_no_other(name: str) -> None:
    asked, found = MADE[name]
    assert len(set(asked)) == len(asked) == len(found)
    assert set(asked) == set(found)


RESULTS = [name for name in results_runs.STUDIES if results_runs.data(name, "runs").exists()]


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_of_results_has_no_training_that_its_study_does_not_make(name: str) -> None:
    asked = set(results_runs.STUDIES[name].runs)
    assert len(asked) == len(results_runs.STUDIES[name].runs)
    made = study.read(results_runs.data(name, "runs"), study.Run, results_runs.Made)
    assert set(made) <= asked
    assert set(results.read(name)) == set(made)
    played = study.read(results_runs.data(name, "returns"), study.Run, study.Evaluation)
    assert {run for run in played if run.arm != results_runs.RANDOM} <= set(made)


def test_every_line_of_a_benchmark_is_shown() -> None:
    """In a row or among the profiles."""
    for line in LINES:
        in_table = any(performance.select([line], row.command) for row in performance.rows())
        assert in_table or line["benchmark"] == "profile", line["command"]


DRAWN: dict[str, Callable[[pathlib.Path], None]] = {
    **{f"{name}_curves": functools.partial(results.draw, name) for name in RESULTS},
    "impala-corrections": functools.partial(training.draw, CORRECTED, corrections.GRIDS),
    "cores": functools.partial(cores.draw, CORED),
    "legal-actions": functools.partial(training.draw, MASKED, legal_actions.GRIDS),
    "stac_small": functools.partial(training.draw, TUNED, self_tuning.GRIDS),
    **{
        f"populations_{name}": functools.partial(found.draw, EVOLVED[name])
        for name, found in POPULATIONS.items()
    },
    "reproduction_state": functools.partial(
        reproduction.draw, REPRODUCED, reproduction.arms("state")
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_data_can_be_drawn(name: str, tmp_path: pathlib.Path) -> None:
    image = tmp_path / "images" / f"{name}.png"
    DRAWN[name](image)
    assert matplotlib.image.imread(image).std() > 0.05


def test_pictures_were_drawn_of_the_data_that_is_kept() -> None:
    for name in STUDIES:
        shown = reproduction.shown(REPRODUCED, reproduction.arms(name))
        with Image.open(reproduction.image(DOCS, name)) as image:
            assert image.info["Description"] == figures.fingerprint(shown)
    assert figures.fingerprint(LINES) != figures.fingerprint(LINES[1:])
