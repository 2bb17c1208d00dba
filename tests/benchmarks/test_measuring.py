"""The line of JSON, and the turns that its figures come from."""

import json
import sys

import pytest
from absl import flags

from benchmarks import measuring
from benchmarks.measuring import Contestant


@pytest.fixture(autouse=True)
def parsed_flags() -> None:
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


def test_a_figure_is_the_median_with_its_range() -> None:
    found = measuring.figure([3.0, 1.0, 2.00049], "steps/s")
    assert found == dict(value=2.0, unit="steps/s", low=1.0, high=3.0, samples=3)


def test_the_last_line_holds_everything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["learner.py", "--agent=r2d2", "--peer_python=/home/me/python", "--peer=acme"]
    monkeypatch.setattr(sys, "argv", given)
    made = measuring.Report("learner", {"agent": "r2d2"})
    made.add("speed", measuring.single(1234.56, "frames/s"))
    made.add_versions({"torch": "2"})
    made.print()
    contents = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert contents["benchmark"] == "learner"
    assert contents["command"] == "python -m benchmarks.learner --agent=r2d2 --peer=acme"
    assert contents["settings"] == {"agent": "r2d2"}
    assert contents["figures"] == {"speed": {"value": 1235.0, "unit": "frames/s"}}
    assert contents["versions"]["peer torch"] == "2"
    assert {"python", "numpy", "dm-reverb"} <= set(contents["versions"])
    assert contents["machine"]["cores"] >= 1
    assert contents["machine"]["memory_gb"] > 0


def test_contestants_take_turns_and_steps_fill_a_turn() -> None:
    order: list[tuple[str, int]] = []

    def contestant(name: str, seconds: float, work: float) -> Contestant:
        def run(steps: int) -> float:
            order.append((name, steps))
            return steps * seconds

        return Contestant(run, work)

    turn, rounds = measuring.TURN_SECONDS, measuring.ROUNDS
    fast, slow = turn / 8, 3 * turn
    rates = measuring.alternate({"a": contestant("a", fast, 5.0), "b": contestant("b", slow, 2.0)})
    assert order[:5] == [("a", 1), ("a", 1), ("a", 2), ("b", 1), ("b", 1)]
    assert order[5:] == [("a", 8), ("b", 1)] * rounds
    assert rates["a"] == pytest.approx([5.0 / fast] * rounds)
    assert rates["b"] == pytest.approx([2.0 / slow] * rounds)
    assert measuring.ratios([6.0, 1.0], [3.0, 2.0]) == [2.0, 0.5]


def test_what_was_ready_beforehand_does_not_make_turns_long() -> None:
    waiting = 10  # steps that take next to nothing
    turn = measuring.TURN_SECONDS
    taken: list[int] = []

    def run(steps: int) -> float:
        new = steps - max(0, waiting - sum(taken))
        taken.append(steps)
        return 1e-6 + max(0, new) * turn / 100

    measuring.alternate({"reader": Contestant(run, 1.0)})
    assert 100 <= taken[-1] <= 200
