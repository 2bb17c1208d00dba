"""What goes wrong in a turn or a decision, and how all of them end: with turns that are stubs."""

import errno
import io
import os
import signal
from typing import Any

import pytest

from launch.members import loop
from population import adoption, decisions
from population.decisions import Decision
from population.folder import PopulationFolder
from run_folder import checkpoints, run_lock
from run_folder.settings import SettingsError
from tests.launch.members.playing import LIMIT, Make, World, interrupt, steps_of
from tests.population import populations
from tests.run_folder.holding import Holder


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


def test_settings_that_a_member_refuses_end_all(
    make: Make, world: World, folder: PopulationFolder
) -> None:
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
        manifest = checkpoints.read(folder.member(0).checkpoints)
        assert manifest is not None
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
