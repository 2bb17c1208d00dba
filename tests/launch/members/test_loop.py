"""A loop's order of turns, its members' decisions, failures, and its view."""

import dataclasses
import errno
import io
import itertools
import math
import os
import signal
import time
from typing import Any

import pytest
from rich.console import Console

from launch.members import loop, view
from launch.members.view import View
from population import adoption, decisions
from population.decisions import Decision, Member
from population.folder import PopulationFolder
from run_folder import run_lock
from run_folder.settings import SettingsError
from tests.launch.members.playing import LIMIT, Make, World, interrupt, steps_of
from tests.population import populations
from tests.population.populations import SWEEP, contents, decision_of, settings_of
from tests.run_folder.holding import Holder
from tests.run_folder.manifests import MANIFEST
from tests.run_folder.saving import saved_in


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
        (dict(flags=dict(max_learner_steps=20)), 1, ["100", "200"]),
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


def test_a_population_goes_on_where_it_was(make: Make, world: World) -> None:
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
    overrides = {"": dict(annealing_frames="none"), "impala": dict(length="8")}
    flags = dict(max_actor_steps=LIMIT, num_actors=5, full_rendering=True)
    given = dict(ready_episodes=6, turn_steps=1_000, burn_in_frames=80)
    assert make(**given, flags=flags, overrides=overrides).run()
    shared = {"impala.length": "8", "annealing_frames": "none", "num_actors": "5"}
    shared |= dict(full_rendering="true")
    assert all(shared.items() <= told.items() for told in world.told)
    assert world.told_to(0, "agent")[:2] == ["impala", None]  # which its run has recorded
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
    own = [decisions.of_member(folder, member) for member in range(3)]
    made = [d for d in itertools.chain.from_iterable(own) if d.adopted is not None]
    assert made
    for decisions_of_one in own:
        ancestor = decisions_of_one[0].member
        for decision in decisions_of_one:
            if decision.adopted is not None and decision.rival is not None:
                ancestor = own[decision.rival][decision.adopted].ancestor
            assert decision.ancestor == ancestor
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


def test_a_failure_is_tried_again_and_forgotten_after_a_success(
    make: Make, world: World, folder: PopulationFolder, told: io.StringIO
) -> None:
    world.codes = {1: [1, -9, 0, 1, 1, 0]}
    assert make().run()
    assert steps_of(folder, 1) == LIMIT
    assert len(world.told_to(1, "run_dir")) == 6
    assert "Member 01 ended with code -9, 2 times in a row; what it said is" in told.getvalue()
    assert "3 times" not in told.getvalue()


def test_who_fails_again_and_again_and_has_nothing_is_left_out(
    make: Make, world: World, folder: PopulationFolder, told: io.StringIO
) -> None:
    world.codes = {1: [1] * 99}
    assert not make().run()
    assert len(world.told_to(1, "run_dir")) == loop.MOST_FAILURES
    assert "Member 01 has no more turns: it failed again and again." in told.getvalue()
    assert [steps_of(folder, member) for member in range(3)] == [LIMIT, 0, LIMIT]
    assert len(decisions.of_member(folder, 1)) == 1
    world.codes.clear()
    assert make().run()  # another time it may play again
    assert steps_of(folder, 1) == LIMIT


def test_who_fails_again_and_again_takes_anothers_learner(
    make: Make, world: World, folder: PopulationFolder, told: io.StringIO
) -> None:
    world.returns = {0: -1.0, 1: 1.0, 2: -1.0}  # it was the best before
    world.codes = {1: [0, 1, 1, 1]}
    assert make(limit=300).run()
    _, second = decisions.of_member(folder, 1)
    assert (second.score, second.rival_score) == (None, -1.0)
    assert second.rival in (0, 2)
    assert second.adopted == 0
    assert steps_of(folder, 1) >= 300
    assert "has no more turns" not in told.getvalue()


@pytest.mark.parametrize("given", [dict(evolve="none"), dict(members=2)])
def test_who_can_take_no_other_learner_is_left_out(
    given: dict[str, Any], make: Make, world: World, folder: PopulationFolder
) -> None:
    world.codes = {0: [0] + [1] * 99, 1: [1] * 99}
    assert not make(**given).run()
    assert len(world.told_to(0, "run_dir")) == 1 + loop.MOST_FAILURES
    assert all(d.adopted is None for d in decisions.of_member(folder, 0))


def test_who_is_asked_to_end_lets_all_turns_end_and_no_other_begin(
    make: Make, world: World, folder: PopulationFolder
) -> None:
    def ask(member: int) -> None:
        if world.polls == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    world.lasting, world.refusing_to_end, world.meanwhile = {0, 1, 2}, True, ask
    assert make(concurrent=2, limit=None, ready_episodes=1).run()  # an end as asked for is no error
    assert world.started == [0, 1]
    assert set(world.signalled) == {0, 1}
    assert not world.playing
    assert all(steps_of(folder, member) > 0 for member in (0, 1))
    assert len(decisions.of_member(folder, 0)) == 2  # it was ready


def test_who_ends_before_it_began_is_no_failure_when_all_end(
    make: Make, world: World, told: io.StringIO
) -> None:
    world.codes = {0: [-signal.SIGTERM]}
    world.meanwhile = lambda member: interrupt()
    assert make().run()
    assert "ended with code" not in told.getvalue()


def test_settings_that_a_member_refuses_end_all(make: Make, world: World) -> None:
    world.codes, world.lasting = {1: [2]}, {0, 2}
    world.said = "--impala.x must be right."
    with pytest.raises(SettingsError, match=r"Member 01: --impala\.x must be right\."):
        make(concurrent=3).run()
    assert world.signalled == {0: 1, 2: 1}


def test_a_full_disk_puts_a_decision_off(
    make: Make,
    world: World,
    folder: PopulationFolder,
    told: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(folder: PopulationFolder, decision: Decision, write: Any = decisions.write) -> bool:
        if decision.number == 1 and decision.member not in failed:
            failed.add(decision.member)
            raise OSError(errno.ENOSPC, "No space left on device")
        return bool(write(folder, decision))

    failed: set[int] = set()
    monkeypatch.setattr(decisions, "write", write)
    assert make(ready_episodes=8).run()
    assert failed == {0, 1, 2}
    assert "Member 02 could not decide: [Errno 28] No space left on device" in told.getvalue()
    assert all(len(decisions.of_member(folder, member)) > 1 for member in range(3))


def test_a_decision_that_cannot_be_carried_out_ends_all_and_is_carried_out_later(
    make: Make, world: World, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "manifest.json.new")

    world.returns = {0: -1.0, 1: 1.0, 2: 1.0}
    with monkeypatch.context() as context:
        context.setattr(adoption, "publish", publish)
        with pytest.raises(SettingsError, match=r"Member 00 has decided, but manifest\.json\.new"):
            make(limit=1_000, ready_episodes=10).run()
    newest = populations.newest(folder, 0)
    assert newest is not None
    steps = []
    for _ in range(2):
        manifest = saved_in(folder.member(0).checkpoints)
        steps.append(manifest.learner_step)
        make(limit=1_000)
    assert steps == [newest.learner_step, newest.learner_step + 1]


def test_a_run_that_outlived_its_population_is_asked_to_end_and_waited_for(
    make: Make, world: World, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = folder.member(1)
    run.nodes.mkdir(parents=True)
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(loop, "LOCKED_SECONDS", 0.2)
    with Holder(run.path):
        with pytest.raises(SettingsError, match=r"members/01 is being run by another process\."):
            make()
        assert run.stop.exists()
        run.stop.unlink()
        run.nodes.rmdir()
        with pytest.raises(SettingsError, match="is being run by another process"):
            make()  # though there is nowhere to ask
    make()
    run_lock.take(run.path)  # which this process did not keep
    run_lock.release()


VALUES = dict(learning_rate=1 / 3, correction="vtrace", sizes=[64, 32], period=None)


def _member(**given: Any) -> Member:
    manifest = dataclasses.replace(MANIFEST, actor_steps=12_345, episodes=67)
    values: dict[str, Any] = dict(
        decision=decision_of(1, 1, new=VALUES), manifest=manifest, score=0.123456
    )
    return Member(**(values | given))


def _progress() -> dict[str, Any]:
    counts = dict(actor_steps=20_000, episodes=100)
    return dict(counts=counts, returns={"catch": 0.5}, aggregates={})


SAVED = ["12,345", "0.1235", "after 43 episodes"]  # as it had decided after ten


def _far(score: str) -> list[str]:
    return ["20,000", score, "after 10 episodes"]


def _scoring(**returns: float) -> dict[str, Any]:
    return _progress() | dict(returns={name.replace("_", ":"): r for name, r in returns.items()})


@pytest.mark.parametrize(
    ("member", "progress", "plays", "state", "shown"),
    [
        (_member(), None, False, "waiting", SAVED),
        (
            *(_member(manifest=None, score=math.nan, decision=decision_of(1, 0, new=VALUES)), None),
            *(False, "waiting", ["0", "-", "after 100 episodes"]),
        ),
        (_member(left_out="it failed again and again"), None, False, "left out", SAVED),
        (_member(), None, True, "playing", SAVED),  # its run begins
        (_member(), _progress(), True, "playing", _far("0.5")),
        # The score of one that plays is what it returned lately, once an episode has ended.
        (_member(), _scoring(a=1.0, b=2.0, c=math.nan), True, "playing", _far("1.5")),
        (_member(), _scoring(a=math.nan), True, "playing", _far("0.1235")),
        (_member(), _scoring(atari_pong=21.0, a=9.0), True, "playing", _far("1")),
        (_member(), _scoring(atari_pong=math.nan), True, "playing", _far("0.1235")),
    ],
)
def test_a_member_has_a_row(
    member: Member, progress: dict[str, Any] | None, plays: bool, state: str, shown: list[str]
) -> None:
    population = settings_of(ready_episodes=100)
    number, said, steps, score, *values, until = view.row(population, 7, member, plays, progress)
    assert (number, said, [steps, score, until]) == ("07", state, shown)
    assert values == ["0.333", "vtrace", "[64, 32]", "None"]


def _shown(console: Console, *playing: int, times: int = 1) -> None:
    members = {i: _member(decision=decision_of(i, 0)) for i in range(3)}
    with View("3 x impala on catch, runs/[x]", console) as drawn:
        for _ in range(times):
            told = {number: _progress() for number in playing}
            drawn.show(settings_of(), members, told)
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
