"""Counts a second are those of the last thirty looks."""

from launch.graph.rates import Rates


def _counts(actor: float, learner: float) -> dict[str, float]:
    return dict(actor_steps=actor, learner_steps=learner, episodes=9)


def test_they_are_what_counts_grew_by_over_the_seconds_between() -> None:
    rates = Rates()
    assert rates.now() == dict(actor_steps=0.0, learner_steps=0.0)
    rates.take(10.0, _counts(100, 5))
    assert rates.now() == dict(actor_steps=0.0, learner_steps=0.0)
    rates.take(12.0, _counts(160, 6))
    rates.take(14.0, _counts(180, 9))
    assert rates.now() == dict(actor_steps=20.0, learner_steps=1.0)


def test_what_is_long_ago_and_what_was_undone_counts_no_more() -> None:
    rates = Rates()
    for second in range(60):
        rates.take(float(second), _counts(0 if second < 30 else 29.0 * (second - 30), 0))
    assert rates.now()["actor_steps"] == 29.0
    rates.clear()
    rates.take(60.0, _counts(5, 0))
    rates.take(61.0, _counts(7, 0))
    assert rates.now()["actor_steps"] == 2.0
