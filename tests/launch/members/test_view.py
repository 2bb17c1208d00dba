"""What the terminal shows of a population."""

import errno
import io
import math
import time
from typing import Any

import pytest
from rich.console import Console

from launch.members import view
from launch.members.state import Member
from launch.members.view import View
from population.decisions import Decision
from run_folder.checkpoints import Manifest
from tests.population.populations import decision_of, settings_of

VALUES = dict(learning_rate=1 / 3, correction="vtrace", sizes=[64, 32], period=None)


def _member(**given: Any) -> Member:
    manifest = Manifest(
        agent="impala",
        learner_step=3,
        learner="learner-impala/3",
        replay=None,
        replay_items=0,
        replay_saved_at=0.0,
        replay_seconds=0.0,
        actor_steps=12_345,
        episodes=67,
        trained_steps=0,
        walltime=1.0,
        sizes={},
    )
    values: dict[str, Any] = dict(
        decision=decision_of(1, 0, new=VALUES), manifest=manifest, score=0.123456
    )
    return Member(**(values | given))


def _progress(**given: Any) -> dict[str, Any]:
    counts = dict(actor_steps=20_000, episodes=100)
    return dict(counts=counts, returns={"catch": 0.5}, aggregates={}) | given


def _until(decision: Decision, actor_steps: int, episodes: int) -> str:
    return f"{decision.number}, {actor_steps}, {episodes}"


def _row(
    member: Member, progress: dict[str, Any] | None = None, *, plays: bool = False
) -> list[str]:
    return view.row(7, member, plays, progress, _until)


def test_a_member_that_waits_is_as_it_was_saved() -> None:
    shown = ["0.333", "vtrace", "[64, 32]", "None"]
    assert _row(_member()) == ["07", "waiting", "12,345", "0.1235", *shown, "0, 12345, 67"]


def test_a_member_that_has_not_begun_has_no_score() -> None:
    found = _row(_member(manifest=None, score=math.nan))
    assert (found[2], found[3], found[-1]) == ("0", "-", "0, 0, 0")


def test_a_member_that_plays_is_as_far_as_it_says() -> None:
    assert _row(_member(), plays=True)[1:4] == ["playing", "12,345", "0.1235"]
    found = _row(_member(), _progress(), plays=True)
    assert (found[1:4], found[-1]) == (["playing", "20,000", "0.5"], "0, 20000, 100")


@pytest.mark.parametrize(
    ("progress", "score"),
    [
        (_progress(returns={"a": 1.0, "b": 2.0, "c": math.nan}), "1.5"),
        (_progress(returns={"a": math.nan}), "0.1235"),  # until an episode has ended
        (_progress(aggregates=dict(mean_capped=0.75)), "0.75"),
        (_progress(aggregates=dict(mean_capped=math.nan)), "-"),
    ],
)
def test_the_score_of_a_member_that_plays_is_what_it_returns_lately(
    progress: dict[str, Any], score: str
) -> None:
    assert _row(_member(), progress, plays=True)[3] == score


def test_a_member_that_is_left_out_is_named_so() -> None:
    assert _row(_member(left_out="it failed again and again"))[1] == "left out"


def _shown(console: Console, *playing: int, times: int = 1) -> None:
    members = {i: _member(decision=decision_of(i, 0)) for i in range(3)}
    with View("3 x impala on catch, runs/[x]", console) as drawn:
        for _ in range(times):
            told = {number: _progress() for number in playing}
            drawn.show(settings_of(), members, told, _until)
        drawn.tell("Member 01 keeps [bold]its own[/bold].")


def test_a_terminal_shows_a_table_with_a_line_for_each_member() -> None:
    file = io.StringIO()
    _shown(Console(file=file, force_terminal=True, width=120), 1)
    text = file.getvalue()
    for word in ("learning_rate", "entropy_cost", "decides", "00", "01", "02", "playing"):
        assert word in text
    assert "Member 01 keeps [bold]its own[/bold]." in text


def test_elsewhere_a_line_for_each_that_plays_comes_every_half_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, now = io.StringIO(), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    _shown(Console(file=file, width=80), 0, 2, times=3)
    lines = file.getvalue().splitlines()
    assert [line.partition(" ")[2] for line in lines] == [
        "member 00 playing, 20,000 steps, score 0.5",
        "member 02 playing, 20,000 steps, score 0.5",
        "Member 01 keeps [bold]its own[/bold].",
    ]


class _Gone(io.StringIO):
    """The standard output of a process whose terminal was closed."""

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_that_is_gone_ends_nothing(is_terminal: bool) -> None:
    _shown(Console(file=_Gone(), force_terminal=is_terminal, width=80), 1, times=2)
