"""Storms: when they strike, the promises that they find broken, and some minutes of each."""

import pathlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import population_storm, storm
from benchmarks.population_storm import ALL, LAUNCHER, MEMBERS, Seen
from benchmarks.storm import Outcome
from population import settings
from population.folder import PopulationFolder
from run_folder.layout import RunFolder
from run_folder.settings import SettingsError
from tests.population.populations import decide, decision_of, settings_of

KEPT = Outcome(
    code=0,
    seconds=300.0,
    counts={},
    struck=[],
    mended=3,
    begun_again=1,
    redone=[12.0, 17.5],
    stood=[0.0, 19.0],
    longest_save=2.0,
    repeated=[],
    left=[],
)


def test_signals_come_as_often_as_was_asked_and_follow_from_the_seed() -> None:
    found, again = (list(storm._moments(random.Random(1), 60.0, 36_000.0, 60.0)) for _ in range(2))
    assert found == again == sorted(found)
    assert all(60.0 < moment < 36_000.0 for moment in found)
    assert 540 < len(found) < 660  # 599 are expected, give or take 24


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        (dict(redone=[19.9]), []),  # an interval of 15 s, a save of 2, and 3 unseen
        (dict(redone=[1.0, 20.1]), ["It redid 20.1 s."]),
        (dict(longest_save=3.0, redone=[20.1]), []),
        (dict(code=1), ["It ended with code 1."]),
        (dict(repeated=["actor.csv"]), ["A step is logged twice in actor.csv."]),
        (dict(redone=[], left=["a process"]), ["It left a process."]),
    ],
)
def test_what_is_a_broken_promise(changes: dict[str, Any], said: list[str]) -> None:
    assert KEPT._replace(**changes).broken() == said


def test_what_was_played_twice_is_told_from_what_nobody_played() -> None:
    counted = storm.Counts()
    for second in range(20):  # saved at 12 s
        counted.take(dict(walltime=second, actor_steps=100 * second))
    for second in range(20, 38):  # nobody sees yet that the learner stands still
        counted.take(dict(walltime=second, actor_steps=1900))
    for second in range(12, 30):
        counted.take(dict(walltime=second, actor_steps=100 * second))
    for second in range(27, 31):  # what was written last may not be seen: this is no return
        counted.take(dict(walltime=second, actor_steps=100 * second))
    for second in range(20, 22):  # a kill, at once
        counted.take(dict(walltime=second, actor_steps=100 * second))
    assert counted.redone == [7.0, 10.0]
    assert counted.stood == [18.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ("1,5,0.1\n2,5,0.2\n", []),
        ("1,5,0.1\n2,4,0.2\n", ["actor.csv (actor_steps)"]),
        ("2,5,0.1\n1,6,0.2\n", ["actor.csv (learner_steps)"]),
        ("", []),
    ],
)
def test_logs_that_go_back_are_found(tmp_path: pathlib.Path, rows: str, found: list[str]) -> None:
    folder = RunFolder(tmp_path)
    folder.logs.mkdir()
    folder.log("actor").write_text(f"learner_steps,actor_steps,walltime\n{rows}")
    assert storm.repeated(folder) == found


_SLOW = """
import time
import gymnasium

class Slow(gymnasium.Wrapper):
    def step(self, action):
        time.sleep(0.001)
        return super().step(action)

def make():
    return Slow(gymnasium.make("CartPole-v1"))
"""


@pytest.mark.launchpad
@pytest.mark.slow
@pytest.mark.parametrize("agent", ["r2d2", "r2d2,impala"])
def test_a_storm(
    agent: str,
    tmp_path: pathlib.Path,
    write_module: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Strikes every ten seconds, and an environment so slow that there is time for some."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = storm.storm(
        agent,
        tmp_path / "run",
        minutes=5.0,
        per_hour=360.0,
        steps=200_000,  # over 100 s, where 16 copies take turns at 1 ms
        seed=1,
        env=f"{write_module(_SLOW)}:make",
    )
    assert outcome.mended >= 3
    assert outcome.broken() == []


KINDS = (ALL, LAUNCHER, MEMBERS)
MADE = [[decision_of(0, 0), decision_of(0, 1)], [decision_of(1, 0)]]
BEFORE = Seen(MADE, [(100, 10), (50, 5)], {0, 1})


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (BEFORE, []),
        (BEFORE._replace(saved=[(100, 11), (60, 5)], runs={0, 1, 2}), []),
        (BEFORE._replace(made=[[*MADE[0], decision_of(0, 2)], MADE[1]]), []),
        (BEFORE._replace(runs={1}), ["Member 00 is gone."]),
        (BEFORE._replace(made=[MADE[0][:1], MADE[1]]), ["A decision of member 00 is not what"]),
        (
            BEFORE._replace(made=[MADE[0], [decision_of(1, 0, time=3.0)]]),
            ["A decision of member 01 is not what it was."],
        ),
        (BEFORE._replace(saved=[(99, 10), (50, 5)]), ["Member 00 went back from (100, 10)"]),
        (BEFORE._replace(saved=[(100, 10), (50, 4)]), ["Member 01 went back from (50, 5) steps"]),
    ],
)
def test_what_is_undone_is_said(after: Seen, said: list[str]) -> None:
    found = list(population_storm.undone(BEFORE, after))
    assert len(found) == len(said)
    assert all(map(str.startswith, found, said))


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> PopulationFolder:
    """Of two members that have decided, with all that belongs to it."""
    made = PopulationFolder(tmp_path)
    settings.record(made, settings_of(members=2, ready_episodes=10, burn_in_frames=100))
    decide(made, 0, 3)
    decide(made, 1, 1)
    for member, numbers in enumerate((range(3), range(1))):
        made.member(member).logs.mkdir(parents=True)
        rows = "".join(f"{5 * i},{100 * i},{i},\n" for i in numbers)
        made.member(member).log("values").write_text(
            f"learner_steps,actor_steps,decision,adopted_from\n{rows}"
        )
    return made


def test_what_was_done_is_looked_at(folder: PopulationFolder) -> None:
    found = population_storm.look(folder, 2)
    assert [len(made) for made in found.made] == [3, 1]
    assert (found.saved, found.runs) == ([(0, 0), (0, 0)], set())
    just_ready = _with(1, score=0.0, rival_score=1.0, episodes=10)(folder, found)
    for seen in (found, just_ready):
        assert list(population_storm.contradictions(folder, seen)) == []
    path = folder.decisions / "00-0001.json"
    path.write_text(path.read_text()[:40])
    with pytest.raises(SettingsError, match=r"00-0001\.json cannot be read"):
        population_storm.look(folder, 2)


def _with(number: int, **changes: Any) -> Callable[[PopulationFolder, Seen], Seen]:
    """A decision of member 0 is another."""

    def change(_: PopulationFolder, seen: Seen) -> Seen:
        own = list(seen.made[0])
        own[number] = decision_of(0, number, **changes)
        return seen._replace(made=[own, seen.made[1]])

    return change


def _listed_twice(folder: PopulationFolder, seen: Seen) -> Seen:
    folder.listing.write_text(folder.listing.read_text() * 2)
    return seen


def _logged_twice(folder: PopulationFolder, seen: Seen) -> Seen:
    folder.member(1).log("actor").write_text("actor_steps\n20\n10\n")
    return seen


def _value_not_logged(folder: PopulationFolder, seen: Seen) -> Seen:
    path = folder.member(0).log("values")
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    return seen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_with(1, old=dict(learning_rate=7.0)), "Decision 1 of member 00 begins with other values"),
        (_with(1, score=0.0, rival_score=1.0, episodes=9), "1 of member 00 was made after 9 epis"),
        (_with(1, actor_steps=99), "Decision 1 of member 00 was made at 99 steps."),
        (_with(2, actor_steps=101, learner_step=4), "Decision 2 of member 00 was made at update 4"),
        (_with(2, rival=1, adopted=1), "adopts decision 1 of 1, which is not there."),
        (_listed_twice, "population.jsonl lists 8 decisions of 4."),
        (_logged_twice, "A step of member 01 is logged twice in actor.csv (actor_steps)."),
        (_value_not_logged, "The log of values of member 00 lists [0.0, 1.0]."),
    ],
)
def test_what_contradicts_itself_is_said(
    change: Callable[[PopulationFolder, Seen], Seen], said: str, folder: PopulationFolder
) -> None:
    seen = change(folder, population_storm.look(folder, 2))
    (found,) = population_storm.contradictions(folder, seen)
    assert said in found


def test_who_is_killed_and_when_follows_from_the_seed() -> None:
    found, again = (population_storm.plan(90, 1, (3.0, 30.0)) for _ in range(2))
    assert found == again != population_storm.plan(90, 2, (3.0, 30.0))
    assert {kind for kind, _ in found} == set(KINDS)
    assert all(3 <= wait <= 30 for _, wait in found)


@pytest.mark.launchpad
@pytest.mark.slow
def test_three_kills(tmp_path: pathlib.Path) -> None:
    outcome = population_storm.run(
        tmp_path / "population",
        kills=3,
        members=2,
        seed=8,
        seconds=(5.0, 12.0),
        more_steps=20_000,  # many times what makes a member ready, on any machine
    )
    assert outcome.wrong == []
    assert sorted(outcome.struck) == sorted(KINDS)
    assert max(map(len, outcome.last.made)) > 1
