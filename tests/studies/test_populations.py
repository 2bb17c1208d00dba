"""The study of populations: what it asks for is accepted, and its rows, tables and pictures."""

import pathlib

import pytest

from launch.members import turn
from population import ranges
from population.folder import PopulationFolder
from run_folder import run_lock
from studies import populations, populations_results
from studies.populations import STUDIES
from studies.populations_results import Row
from tests.analysis.report.made_up_population import COST, RATE, evolved
from tests.launch import typed_populations


def _row(population: str, member: int, steps: float, score: float, **values: str) -> Row:
    return Row(population, member, steps, score, "", values)


def test_the_file_holds_every_population_of_the_study_and_no_other() -> None:
    study = STUDIES["evolution"]
    rows = populations_results.parse(populations.data("evolution"))
    assert {row.population for row in rows} == set(study.populations)
    assert {tuple(row.values) for row in rows} == {study.fields}
    ends = [own[-1] for own in populations_results.by_member(rows).values()]
    assert len(ends) == populations.MEMBERS * len(study.populations)
    # The last of equal parts of its life, by its middle; a turn ends soon after the limit.
    first = 1 - 1 / study.points
    assert all(first < end.actor_steps / populations.STEPS < 1.05 for end in ends)


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
    config = turn.settings_of(made, PopulationFolder(tmp_path), 0, drawn).configs[made.agent]
    assert config.annealing_frames is None or not made.evolves


def test_both_arms_draw_the_same() -> None:
    found = STUDIES["evolution"].populations
    for seed in populations.SEEDS:
        evolving, apart = found[f"all-{seed}"], found[f"none-{seed}"]
        assert set(evolving) ^ set(apart) == {"--evolve=all", "--evolve=none"}


def test_rows_are_what_a_population_left(tmp_path: pathlib.Path) -> None:
    evolved(tmp_path / "all-0")
    rows = list(populations_results.read(tmp_path / "all-0", (RATE, COST), 4))
    members = populations_results.by_member(rows)
    assert list(members) == [("all-0", member) for member in range(3)]
    one = members["all-0", 1]
    assert [row.score for row in one] == pytest.approx([-1, -1, 0.5, 0.5])
    assert [row.adopted_from for row in one] == ["", "0", "", ""]
    assert [row.values[RATE] for row in one] == ["0.001", "0.0001", "0.0001", "0.0001"]
    assert [row.values[COST] for row in one] == ["0.4", "0.25", "0.25", "0.25"]
    path = tmp_path / "rows.csv"
    populations_results.write(path, (RATE, COST), rows)
    again = populations_results.parse(path)
    assert [row._replace(actor_steps=0, score=0) for row in again] == [
        row._replace(actor_steps=0, score=0) for row in rows
    ]
    for old, new in zip(rows, again, strict=True):
        assert new.actor_steps == pytest.approx(old.actor_steps, abs=0.5)
        assert new.score == pytest.approx(old.score, abs=1e-4)


def _arms() -> list[Row]:
    """Members of whom that of number m ends at m / 10 and a half more where it evolves."""
    return [
        _row(
            f"{arm}-{seed}",
            member,
            100.0 * i,
            i / 5 * (member / 10 + (arm == "all") / 2),
            learning_rate="1e-3",
        )
        for seed in range(3)
        for arm, better in (("all", 0.5), ("none", 0.0))
        for member in range(4)
        for i in range(1, 6)
    ]


def test_a_table_compares_both_arms(tmp_path: pathlib.Path) -> None:
    rows = _arms()
    lines = populations_results.tell_evolution(rows).splitlines()
    # The last three of five points are 0.6, 0.8 and 1 times the last.
    assert lines[2] == "| evolves | 0.52 ± 0.00 | 0.64 ± 0.00 | 0.40 ± 0.00 |"
    assert lines[3] == "| does not | 0.12 ± 0.00 | 0.24 ± 0.00 | 0.00 ± 0.00 |"
    assert lines[7] == "| 0 | 0 | 1.0e-03 | 1.0e-03 | 0.40 | 0.00 |"
    assert len(lines) == 7 + 12
    populations_results.draw_evolution(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_samples_are_sorted_by_score(tmp_path: pathlib.Path) -> None:
    rows = [
        _row(
            "corrections",
            2 * sample + place,
            90.0,
            sample * (1 - 2 * place),
            correction=correction,
            learning_rate="0.01",
        )
        for sample in range(3)
        for place, correction in enumerate(("vtrace", "none"))
    ]
    assert populations_results.sorted_scores(rows) == {"vtrace": [2, 1, 0], "none": [0, -1, -2]}
    lines = populations_results.tell_corrections(rows).splitlines()
    assert lines[2:] == [
        "| vtrace | 2.00 | 0.00 | 1.00 | 0.00 | 1.00 |",
        "| none | 0.00 | -2.00 | -1.00 | -2.00 | -1.00 |",
    ]
    populations_results.draw_corrections(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_each_member_of_popart_has_a_line_and_a_row(tmp_path: pathlib.Path) -> None:
    rows = [
        Row("popart", member, 1e6 * i, member / 10, "2" if i == 3 else "", dict(a="1e-3", b="7"))
        for member in range(4)
        for i in range(1, 6)
    ]
    lines = populations_results.tell_popart(rows).splitlines()
    assert lines[0] == "| member | steps | score | a | b |"
    assert lines[3] == "| 1 | 5,000,000 | 0.100 | 0.001 | 7 |"
    populations_results.draw_popart(rows, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_a_population_has_ended_at_its_members_limit(tmp_path: pathlib.Path) -> None:
    assert not populations.has_ended(tmp_path / "nothing")
    evolved(tmp_path / "all-0")
    assert not populations.has_ended(tmp_path / "all-0")
