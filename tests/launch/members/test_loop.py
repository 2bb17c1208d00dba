"""Who plays next and for how long, and who decides and when: with turns that are stubs."""

import io
import itertools
from typing import Any

import pytest

from launch.members import view
from population import decisions
from population.folder import PopulationFolder
from tests.launch.members.playing import LIMIT, Make, World, interrupt, steps_of
from tests.population.populations import SWEEP, contents, decision_of, settings_of


def test_who_has_played_least_is_next_until_all_have_reached_the_limit(
    make: Make, world: World, folder: PopulationFolder
) -> None:
    assert make().run()
    assert world.started == [0, 1, 2, 0, 1, 2]
    assert world.told_to(1, "max_actor_steps") == ["100", "200"]
    assert world.told_to(1, "seed") == [str(settings_of().seed_of(1)), None]
    assert world.most == 1
    assert [steps_of(folder, member) for member in range(3)] == [LIMIT] * 3


@pytest.mark.parametrize(
    ("given", "most", "until"),
    [
        (dict(concurrent=2), 2, ["100", "200"]),
        (dict(concurrent=9), 3, ["100", "200"]),
        (dict(limit=160), 1, ["100", "160"]),
        (dict(limit=None, train=dict(values=dict(max_learner_steps=20))), 1, ["100", "200"]),
        (dict(evolve="none", ready_episodes=2), 1, ["100", "200"]),
    ],
)
def test_each_plays_to_a_limit_with_as_many_at_a_time_as_was_asked_for(
    given: dict[str, Any],
    most: int,
    until: list[str],
    make: Make,
    world: World,
    folder: PopulationFolder,
) -> None:
    world.returns = {0: 0.25, 1: 0.5, 2: 0.75}
    made = make(**given)
    assert all(score != score for score in made.scores().values())
    assert made.run()
    assert made.scores() == world.returns
    assert world.most == most
    assert sorted(world.started) == [0, 0, 1, 1, 2, 2]
    assert world.told_to(0, "max_actor_steps") == until
    assert [len(decisions.of_member(folder, member)) for member in range(3)] == [1, 1, 1]
    assert not world.asked


def test_a_turn_may_be_longer_than_any_run(make: Make, world: World) -> None:
    largest = 2**63 - 1
    world.meanwhile = lambda _: interrupt() if world.polls in (3, 6) else None
    for _ in range(2):
        assert make(range(1), limit=None, turn_steps=largest).run()
    assert world.told_to(0, "max_actor_steps") == [str(largest)] * 2


def test_a_population_goes_on_where_it_was(
    make: Make, world: World, folder: PopulationFolder
) -> None:
    assert make(range(1)).run()  # one member has been trained alone
    world.started.clear()
    world.told.clear()
    assert make().run()
    assert world.started == [1, 2, 1, 2]
    world.started.clear()
    assert make().run()
    assert world.started == []


def test_a_member_that_is_ready_is_asked_to_end_its_turn_and_decides(
    make: Make, world: World, folder: PopulationFolder
) -> None:
    fields = {"": dict(annealing_frames="none"), "impala": dict(length="8")}
    values = dict(max_actor_steps=LIMIT, num_actors=5, full_rendering=True)
    train = dict(values=values, fields=fields)
    assert make(ready_episodes=6, turn_steps=1_000, burn_in_frames=80, train=train).run()
    shared = {"impala.length": "8", "annealing_frames": "none", "num_actors": "5"}
    shared |= dict(full_rendering="true", agent="impala")
    assert all(shared.items() <= told.items() for told in world.told)
    for member in range(3):
        made = decisions.of_member(folder, member)
        episodes = [decision.episodes for decision in made]
        assert episodes[0] == 0
        assert all(b - a >= 6 for a, b in itertools.pairwise(episodes))
        assert made[1].actor_steps >= 80  # the burn-in
        assert len(made) >= 3
        assert world.asked[member] >= len(made) - 1
        told = zip(*(world.told_to(member, f"impala.{name}") for name in SWEEP), strict=True)
        assert list(told) == [tuple(map(repr, decision.new.values())) for decision in made]
        assert all(a.new == b.old for a, b in itertools.pairwise(made))
        assert made[-1].episodes < LIMIT // 10  # who has reached the limit decides no more


def test_the_better_is_adopted_and_goes_on_from_there(
    make: Make, world: World, folder: PopulationFolder, told: io.StringIO
) -> None:
    world.returns = {0: -1.0, 1: 1.0, 2: 0.9}
    assert make(ready_episodes=10, mutation_probability=0.0, limit=500).run()
    made = [d for d in decisions.every(folder, 3) if d.adopted is not None]
    assert made
    for decision in made:
        assert decision.rival is not None
        rivals = decisions.of_member(folder, decision.rival)
        assert decision.adopted is not None
        assert decision.new == rivals[decision.adopted].new
        if decision.score is not None and decision.rival_score is not None:
            assert decision.rival_score - decision.score > 0.05
        assert f"Member 0{decision.member} (" in told.getvalue()
        assert f"takes over what member 0{decision.rival}" in told.getvalue()
    assert {decision.member for decision in made} == {0, 2}
    steps = [decision.learner_step for decision in decisions.of_member(folder, 0)]
    assert steps == sorted(set(steps))


def test_members_that_others_train_are_read_and_left_alone(
    make: Make, world: World, folder: PopulationFolder
) -> None:
    assert make(range(2, 3), ready_episodes=6).run()
    assert set(world.started) == {2}
    assert len(decisions.of_member(folder, 2)) > 1
    assert [len(decisions.of_member(folder, member)) for member in (0, 1)] == [1, 1]
    assert not folder.member(0).path.exists()
    before = contents(folder.decisions)
    assert make(range(1)).run()
    assert before.items() <= contents(folder.decisions).items()


def test_what_was_decided_is_a_sentence() -> None:
    new = dict(learning_rate=1 / 3, correction="vtrace", period=None, batch_size=8)
    kept = decision_of(3, 1, score=0.25, rival=1, rival_score=-12.34567, new=new)
    assert view.sentence(kept) == (
        "Member 03 (0.25) keeps its own, not what member 01 (-12.35) has; now learning_rate 0.333, "
        "correction vtrace, period None, batch_size 8."
    )
    taken = decision_of(3, 1, rival=1, rival_score=0.5, adopted=2, new=dict(learning_rate=1e-5))
    assert view.sentence(taken) == (
        "Member 03 (no score) takes over what member 01 (0.5) has; now learning_rate 1e-05."
    )


@pytest.mark.parametrize(
    ("given", "counts", "said"),
    [
        (dict(evolve="none"), (100, 10), "none"),
        (dict(burn_in_frames=2_000), (100, 10), "burn-in, 100 of 2,000 frames"),
        (dict(ready_episodes=5_000), (100, 10), "after 4,990 episodes"),
        (dict(ready_episodes=5), (100, 10), "after 0 episodes"),
    ],
)
def test_how_far_it_is_to_the_next_decision(
    given: dict[str, Any], counts: tuple[int, int], said: str, make: Make
) -> None:
    assert make(**given)._next_decision(decision_of(0, 0), *counts) == said
