"""The family tree: who took over whose weights, from where to where."""

import pathlib
from unittest import mock

from analysis.report import lanes, population, population_tree
from analysis.report.lanes import Link, Span
from analysis.report.population import OTHERS
from tests.analysis.report.made_up_population import COST, RATE, Made, evolved


def test_a_line_leads_from_where_weights_were_to_where_they_were_taken_over(
    tmp_path: pathlib.Path,
) -> None:
    evolved(tmp_path)
    members = population.load(tmp_path)
    with mock.patch.object(lanes, "figure", wraps=lanes.figure) as drawn:
        section = population_tree.section(members)
    names, spans, links, *_ = drawn.call_args.args
    assert names == ["02", "01", "00"]
    assert set(links) == {
        Link(from_lane=2, from_x=12_000, to_lane=1, to_x=10_000, colour=0),
        Link(from_lane=1, from_x=15_000, to_lane=0, to_x=20_000, colour=0),
    }
    assert spans == [
        Span(0, 0, 20_000, 2),
        Span(0, 20_000, 40_000, 0),
        Span(1, 0, 10_000, 1),
        Span(1, 10_000, 40_000, 0),
        Span(2, 0, 40_000, 0),
    ]
    assert [chart.name for chart in section.charts] == ["family-tree"]
    assert "from 01" in section.body


def test_a_line_leads_from_where_the_rival_was_of_the_same_family(tmp_path: pathlib.Path) -> None:
    """Where the rival's log does not say when it had made the update, its decisions do."""
    made = Made(tmp_path, 3)
    made.begin({RATE: [1e-4] * 3, COST: [0.5] * 3})
    made.decide(0, 10_000, rival=1, adopts=True)
    made.decide(2, 30_000, rival=0, adopts=True, at=90)  # 45,000 steps, by the log
    made.decide(0, 20_000, rival=1)
    made.play(0, [0.0] * 50)
    made.decide(1, 30_000, rival=2, adopts=True, at=10)  # 2 has no log
    members = population.load(tmp_path)
    places = {member.number: member.number for member in members.ranked}
    from_x = {
        (link.from_lane, link.to_lane): link.from_x
        for link in population_tree.links(members, places)
    }
    assert from_x == {(1, 0): 0, (0, 2): 20_000, (2, 1): 30_000}


def test_families_stand_together_that_of_the_best_first(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, 5)
    made.begin({RATE: [1e-4] * 5, COST: [0.5] * 5})
    for member in range(5):
        made.play(member, [member / 5] * 10)
    made.decide(1, 2_000, rival=4, adopts=True)
    made.decide(0, 2_000, rival=2, adopts=True)
    shown = population_tree.by_family(population.load(tmp_path).ranked)
    assert [member.number for member in shown] == [4, 1, 3, 2, 0]


def test_other_families_are_grey(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, 20)
    made.begin({RATE: [1e-4] * 20, COST: [0.5] * 20})
    for member in range(20):
        made.play(member, [member / 20] * 10)
    made.decide(0, 2_000, rival=1, adopts=True)
    made.decide(2, 2_000, rival=19, adopts=True)
    members = population.load(tmp_path)
    places = {member.number: place for place, member in enumerate(members.ranked)}
    assert {link.colour for link in population_tree.links(members, places)} == {0, OTHERS}


def test_where_nobody_took_anything_over_there_is_a_sentence(tmp_path: pathlib.Path) -> None:
    made = Made(tmp_path, 2)
    made.begin({RATE: [1e-4] * 2, COST: [0.5] * 2})
    made.decide(0, 2_000, rival=1)
    section = population_tree.section(population.load(tmp_path))
    assert "No member has taken over the weights of another yet." in section.body
    assert not section.charts
