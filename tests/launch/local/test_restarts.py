"""How often, and how soon, what has died starts again."""

from launch.local.restarts import (
    FIRST_SECONDS,
    LONGEST_DELAY,
    PROGRAM,
    WINDOW_SECONDS,
    Restarts,
)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_each_delay_is_twice_the_last_of_the_same() -> None:
    restarts = Restarts(100, is_new=False, clock=Clock())
    delays = [restarts.delay("actor/0") for _ in range(6)]
    assert delays == [1, 2, 4, 8, LONGEST_DELAY, LONGEST_DELAY]
    assert restarts.delay("actor/1") == 1
    assert restarts.count == 7


def test_so_many_are_mended_in_ten_minutes_whatever_they_are() -> None:
    clock = Clock()
    restarts = Restarts(3, is_new=False, clock=clock)
    assert [restarts.delay("actor/0"), restarts.delay("actor/1")] == [1, 1]
    clock.now += WINDOW_SECONDS - 1
    assert not restarts.why_not()
    assert restarts.delay("evaluator/0") == 1
    assert "--restarts=3 mends so many deaths in 10 minutes" in restarts.why_not()
    clock.now += 2  # the first two are forgotten
    assert [restarts.delay("actor/0"), restarts.delay("actor/0")] == [1, 2]
    assert restarts.why_not()
    assert restarts.count == 5


def test_the_program_begins_again_so_often_from_one_checkpoint() -> None:
    clock = Clock()
    restarts = Restarts(3, is_new=False, clock=clock)
    for saves in (False, False, False, True, True, True, True, False, False):
        clock.now += WINDOW_SECONDS + 1
        if saves:
            restarts.saved()
        assert not restarts.why_not()
        restarts.delay(PROGRAM)
    clock.now += WINDOW_SECONDS + 1
    assert "--restarts=3 mends so many deaths in 10 minutes, or from one" in restarts.why_not()
    restarts.saved()
    assert not restarts.why_not()


def test_none_is_mended_where_none_is_to_be() -> None:
    assert "--restarts=0" in Restarts(0, is_new=False).why_not()


def test_a_new_runs_first_minute_mends_nothing() -> None:
    clock = Clock()
    restarts = Restarts(3, is_new=True, clock=clock)
    clock.now += FIRST_SECONDS - 1
    assert "what dies in the first 60 s of a new run would die again" in restarts.why_not()
    clock.now += 1
    assert not restarts.why_not()
    assert restarts.delay("actor/0") == 1  # and what came before does not count
