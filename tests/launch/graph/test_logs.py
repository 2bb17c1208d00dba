"""When a log's next row is due, and how fast a run goes."""

import math

import pytest

from launch.graph import logs
from launch.graph.logs import Cadence, Rates

NO_LIMIT: dict[str, int | None] = dict(actor_steps=None, learner_steps=None)


@pytest.mark.parametrize(
    ("limits", "counts", "now", "due"),
    [
        (NO_LIMIT, (10**9, 10**9), 9.9, False),
        (NO_LIMIT, (0, 0), 10.0, True),
        (dict(actor_steps=20_000, learner_steps=None), (199, 7_000), 0.0, False),
        (dict(actor_steps=20_000, learner_steps=None), (200, 0), 0.0, True),
        (dict(actor_steps=20_000, learner_steps=50), (0, 1), 0.0, True),
        (dict(actor_steps=20_000, learner_steps=5_000), (199, 49), 9.9, False),
    ],
)
def test_a_row_is_due_after_ten_seconds_or_a_hundredth_of_a_limit(
    limits: dict[str, int | None], counts: tuple[int, int], now: float, due: bool
) -> None:
    rows = Cadence(limits, dict(actor_steps=0, learner_steps=0), 0.0)
    reached = dict(zip(("actor_steps", "learner_steps"), counts, strict=True))
    assert rows.due(reached, now) == due
    assert not rows.due(reached, now)  # it is written


def test_a_run_that_goes_on_has_no_row_before_its_first_step_and_one_that_asks_at_once() -> None:
    limits: dict[str, int | None] = dict(actor_steps=1_000)
    begun = dict(actor_steps=777)
    assert not Cadence(limits, begun, 5.0).due(begun, 5.0)
    assert Cadence(limits, begun, -math.inf).due(begun, 5.0)


@pytest.mark.parametrize(("limit", "steps"), [(20_000, 50), (10, 0.025), (None, math.inf)])
def test_a_quarter_of_the_actors_reports_after_a_quarter_of_a_hundredth(
    limit: int | None, steps: float
) -> None:
    assert logs.steps_between(limit, 0.25) == steps


def _counts(walltime: float, actor: float, learner: float) -> dict[str, float]:
    return dict(walltime=walltime, actor_steps=actor, learner_steps=learner, episodes=9)


def test_rates_are_of_the_last_seconds_and_what_was_undone_counts_no_more() -> None:
    rates = Rates()
    assert rates.now() == dict(actor_steps=0.0, learner_steps=0.0)
    for second in range(60):
        rates.take(_counts(second, 0 if second < 30 else 29.0 * (second - 30), 0))
    assert rates.now()["actor_steps"] == 29.0
    rates.clear()
    rates.take(_counts(60.0, 5, 0))
    rates.take(_counts(61.0, 7, 0))
    assert rates.now()["actor_steps"] == 2.0
