"""What the terminal shows of a population."""

import io
import math
import time
from typing import Any

import pytest
from rich.console import Console

from launch.members import view
from launch.members.view import View
from population.decisions import Decision, Member
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


def _progress() -> dict[str, Any]:
    counts = dict(actor_steps=20_000, episodes=100)
    return dict(counts=counts, returns={"catch": 0.5}, aggregates={})


def _until(decision: Decision, actor_steps: int, episodes: int) -> str:
    return f"{decision.number}, {actor_steps}, {episodes}"


SAVED = ["12,345", "0.1235", "0, 12345, 67"]


def _far(score: str) -> list[str]:
    return ["20,000", score, "0, 20000, 100"]


def _scoring(returns: dict[str, float], **aggregates: float) -> dict[str, Any]:
    return _progress() | dict(returns=returns, aggregates=aggregates)


@pytest.mark.parametrize(
    ("member", "progress", "plays", "state", "shown"),
    [
        (_member(), None, False, "waiting", SAVED),
        (_member(manifest=None, score=math.nan), None, False, "waiting", ["0", "-", "0, 0, 0"]),
        (_member(left_out="it failed again and again"), None, False, "left out", SAVED),
        (_member(), None, True, "playing", SAVED),  # its run begins
        (_member(), _progress(), True, "playing", _far("0.5")),
        # The score of one that plays is what it returned lately, once an episode has ended.
        (_member(), _scoring({"a": 1.0, "b": 2.0, "c": math.nan}), True, "playing", _far("1.5")),
        (_member(), _scoring({"a": math.nan}), True, "playing", _far("0.1235")),
        (_member(), _scoring({}, mean_capped=0.75), True, "playing", _far("0.75")),
        (_member(), _scoring({}, mean_capped=math.nan), True, "playing", _far("-")),
    ],
)
def test_a_member_has_a_row(
    member: Member, progress: dict[str, Any] | None, plays: bool, state: str, shown: list[str]
) -> None:
    number, said, steps, score, *values, until = view.row(7, member, plays, progress, _until)
    assert (number, said, [steps, score, until]) == ("07", state, shown)
    assert values == ["0.333", "vtrace", "[64, 32]", "None"]


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
