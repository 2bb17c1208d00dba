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
    """Of many members, the other families are grey."""
    made = Made(tmp_path, 14)
    made.begin({RATE: [1e-4] * 14, COST: [0.5] * 14})
    for member in range(14):
        made.play(member, [member / 14] * 10)
    made.decide(1, 2_000, rival=13, adopts=True)
    made.decide(0, 2_000, rival=2, adopts=True)
    members = population.load(tmp_path)
    shown = [member.number for member in population_tree.by_family(members.ranked)]
    assert shown == [13, 1, *range(12, 1, -1), 0]
    places = {number: place for place, number in enumerate(shown)}
    found = population_tree.links(members, places)
    assert {(link.from_lane, link.to_lane, link.colour) for link in found} == {
        (0, 1, 0),
        (12, 13, OTHERS),
    }
