"""The study of populations: what it asks for is accepted, and its rows are what it left."""

import dataclasses
import pathlib
from collections.abc import Iterator

import pytest

from benchmarks import populations
from benchmarks.populations import STUDIES
from population import ranges
from population.folder import PopulationFolder
from run_folder import checkpoints, run_lock
from run_folder.checkpoints import Manifest
from tests.analysis.report.made_up_population import COST, RATE, evolved
from tests.launch import typed_populations
from tests.run_folder.manifests import MANIFEST


@pytest.mark.parametrize(
    ("name", "population"),
    [("evolution", "all-0"), ("corrections", "corrections"), ("popart", "popart")],
)
def test_its_populations_are_accepted(
    name: str, population: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = typed_populations.instead_of_training(monkeypatch)
    flags = STUDIES[name].populations[population]
    assert typed_populations.run(*flags, f"--run_dir={tmp_path / 'population'}") == 0
    ((made, *_),) = stub.trained
    run_lock.release()
    drawn = ranges.draw(made.ranges, 0, made.seed)
    assert set(STUDIES[name].fields) <= set(drawn)
    config = made.run_of(PopulationFolder(tmp_path), 0, drawn).configs[made.agent]
    assert config.annealing_frames is None or not made.evolves


def test_both_arms_draw_the_same() -> None:
    found = STUDIES["evolution"].populations
    for seed in populations.SEEDS:
        evolving, apart = found[f"all-{seed}"], found[f"none-{seed}"]
        assert set(evolving) ^ set(apart) == {"--evolve=all", "--evolve=none"}


def test_rows_are_what_a_population_left(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path / "all-0")
    rows = list(populations.rows_of(tmp_path / "all-0", (RATE, COST), 4))
    members = populations.by_member(rows)
    assert list(members) == [("all-0", member) for member in range(3)]
    one = members["all-0", 1]
    assert [row.score for row in one] == pytest.approx([-1, -1, 0.5, 0.5])
    assert [row.adopted_from for row in one] == ["", "0", "", ""]
    assert [row.values[RATE] for row in one] == ["0.001", "0.0001", "0.0001", "0.0001"]
    assert [row.values[COST] for row in one] == ["0.4", "0.25", "0.25", "0.25"]
    path = tmp_path / "rows.csv"
    populations.write(path, (RATE, COST), rows)
    again = populations.parse(path)
    assert [row._replace(actor_steps=0, score=0) for row in again] == [
        row._replace(actor_steps=0, score=0) for row in rows
    ]
    for old, new in zip(rows, again, strict=True):
        assert new.actor_steps == pytest.approx(old.actor_steps, abs=0.5)
        assert new.score == pytest.approx(old.score, abs=1e-4)


def test_a_population_has_ended_where_every_member_is_at_its_limit(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not populations.has_ended(tmp_path / "nothing")
    flags = ("--agent=impala", "--env=catch", "--members=2", "--max_actor_steps=100")
    typed_populations.instead_of_training(monkeypatch)
    assert typed_populations.run(*flags, f"--run_dir={tmp_path}/both") == 0
    run_lock.release()
    for first, second, ended in ((100, None, False), (100, 99, False), (100, 101, True)):
        saved = iter([first, second])

        def parse(_: pathlib.Path, saved: Iterator[int | None] = saved) -> Manifest | None:
            steps = next(saved)
            return dataclasses.replace(MANIFEST, actor_steps=steps) if steps else None

        monkeypatch.setattr(checkpoints, "parse", parse)
        assert populations.has_ended(tmp_path / "both") == ended
