"""studies.population_storm: what it calls undone or a contradiction, and a storm of three kills."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from population import settings
from population.folder import PopulationFolder
from run_folder.settings import SettingsError
from studies import population_storm
from studies.population_storm import ALL, LAUNCHER, MEMBERS, Seen
from tests.population.populations import decide, decision_of, settings_of

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
