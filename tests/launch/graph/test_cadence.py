"""When a log's next row is due."""

import math

import pytest

from launch.graph import cadence
from launch.graph.cadence import Cadence

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
    assert cadence.steps_between(limit, 0.25) == steps
