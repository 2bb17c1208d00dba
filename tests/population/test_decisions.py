"""A decision is the rule's, made whole, once, by one; whoever finds it undone carries it out."""

import errno
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import signal
from collections.abc import Callable
from concurrent import futures
from typing import Any

import pytest

from population import adoption, decisions, ranges, rule
from population.decisions import LABEL, Decision, State
from population.folder import PopulationFolder
from run_folder import checkpoints, disk, log_reader, rewinding
from run_folder.settings import SettingsError
from tests.forks import fork, garbage_is_kept
from tests.population import populations
from tests.population.learners import again, saved
from tests.population.populations import (
    AGENT,
    RETURNS,
    contents,
    decide,
    decision_of,
    log_episodes,
    refuse,
    settings_of,
)
from tests.run_folder.saving import saved_in


def test_what_was_decided_is_read_again(folder: PopulationFolder) -> None:
    assert populations.newest(folder, 1) is None
    first = decision_of(1, 0, new=dict(learning_rate=5e-6, kind="vtrace", sizes=[8], period=None))
    second = decision_of(
        1,
        1,
        score=0.1,
        rival=2,
        rival_score=0.3,
        adopted=4,
        rival_learner_step=77,
        old=first.new,
        new=dict(first.new, learning_rate=1 / 3),
    )
    assert decisions.write(folder, first)
    assert decisions.write(folder, second)
    assert populations.newest(folder, 1) == second
    assert (first.learner_step_after, second.learner_step_after) == (0, 6)
    assert not decisions.write(folder, decision_of(1, 1, time=5.0))  # who comes second
    assert decisions.of_member(folder, 1) == [first, second]
    assert decisions.of_member(folder, 0) == []
    assert populations.names(folder) == {"01-0000.json", "01-0001.json"}


def _race(path: str, racer: int) -> list[int]:
    """Tries to make twenty decisions that others try to make, too; returns those that it made."""
    folder = PopulationFolder(pathlib.Path(path))
    new = dict(racer=racer, filling="x" * 10_000)
    return [n for n in range(20) if decisions.write(folder, decision_of(1, n, new=new))]


def test_of_many_at_a_time_one_makes_it(folder: PopulationFolder) -> None:
    forks = multiprocessing.get_context("fork")
    with garbage_is_kept(), futures.ProcessPoolExecutor(4, forks) as racers:
        made = list(racers.map(_race, itertools.repeat(str(folder.path)), range(8)))
    assert sorted(itertools.chain.from_iterable(made)) == list(range(20))
    found = decisions.of_member(folder, 1)
    for racer, numbers in enumerate(made):
        assert all(found[number].new["racer"] == racer for number in numbers)
    assert all(len(decision.new["filling"]) == 10_000 for decision in found)
    assert populations.names(folder) == {f"01-{number:04}.json" for number in range(20)}
    decisions.list_all(folder)
    assert populations.listed(folder) == found


@pytest.mark.parametrize(
    ("of", "call", "made"),
    [
        (pathlib.Path, "write_text", False),
        (os, "fsync", False),
        (os, "link", False),
        (pathlib.Path, "unlink", True),  # it has both names
        (decisions, "list_all", True),
        (os, "replace", True),
    ],
)
def test_a_kill_instead_of_any_call_leaves_a_decision_or_none(
    of: Any, call: str, made: bool, folder: PopulationFolder
) -> None:
    decide(folder, 1, 1)

    def decide_until_killed() -> None:
        setattr(of, call, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        decisions.write(folder, decision_of(1, 1))

    pid = fork(decide_until_killed)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert decisions.of_member(folder, 1) == [decision_of(1, n) for n in range(1 + made)]
    assert decisions.write(folder, decision_of(1, 1 + made))  # as ever
    assert populations.listed(folder) == decisions.of_member(folder, 1)


def test_the_list_is_in_the_order_of_time(folder: PopulationFolder) -> None:
    made = [*decide(folder, 1, 4), *decide(folder, 0, 3), *decide(folder, 2, 1)]
    made.sort(key=lambda decision: decision.time)
    assert populations.listed(folder) == made


def test_members_and_decisions_of_many_digits_keep_their_order(folder: PopulationFolder) -> None:
    for member in (1, 10, 100):
        decide(folder, member, 2)
    for member in (1, 10, 100):
        assert {d.member for d in decisions.of_member(folder, member)} == {member}
    (folder.decisions / "01-9999.json").touch()
    (folder.decisions / "01-10000.json").touch()
    with pytest.raises(SettingsError, match=r"01-9999\.json cannot be read"):  # it comes first
        decisions.of_member(folder, 1)


def _edit(**changes: Any) -> Callable[[pathlib.Path], None]:
    def edit(path: pathlib.Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return edit


def _cut(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def _folder_in_its_place(path: pathlib.Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (pathlib.Path.unlink, "01-0001.json is missing or holds another decision: that of member"),
        (_edit(member=0), "holds another decision: that of member 0, number 1."),
        (_cut, "01-0001.json cannot be read: Expecting"),
        (_folder_in_its_place, "01-0001.json cannot be read: Is a directory."),
        (_edit(time=-1), "time must be a number from 0 to 1e+15, got -1.0."),
        (_edit(nwe={}), "nwe is no field here, the nearest is new."),
    ],
)
def test_what_is_damaged_is_named_in_a_sentence(
    damage: Callable[[pathlib.Path], None], said: str, folder: PopulationFolder
) -> None:
    decide(folder, 0, 2)
    decide(folder, 1, 3)
    damage(folder.decisions / "01-0001.json")
    with pytest.raises(SettingsError, match=r"\.$") as error:
        decisions.of_member(folder, 1)
    assert said in str(error.value)
    assert str(folder.decisions) in str(error.value)
    assert len(decisions.of_member(folder, 0)) == 2


def test_a_decision_is_on_the_disk_before_it_has_its_name(
    folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(file: int, sync: Any = os.fsync) -> None:
        synced.append(os.fstat(file).st_size)
        sync(file)

    def link(half: pathlib.Path, path: pathlib.Path, link: Any = os.link) -> None:
        assert synced == [half.stat().st_size]
        link(half, path)

    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)
    assert decisions.write(folder, decision_of(0, 0))
    assert synced[0] == (folder.decisions / "00-0000.json").stat().st_size > 0


@pytest.mark.parametrize("broken", ["fsync", "link"])
def test_a_full_disk_leaves_nothing(
    broken: str, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = decide(folder, 0, 2)
    with monkeypatch.context() as context:
        context.setattr(os, broken, refuse(errno.ENOSPC))
        with pytest.raises(OSError, match="No space left"):
            decisions.write(folder, decision_of(0, 2))
        assert not decisions.write(folder, decision_of(0, 1, time=7.0))  # which is there
    assert populations.names(folder) == {"00-0000.json", "00-0001.json"}
    assert decisions.of_member(folder, 0) == made
    assert populations.listed(folder) == made


@pytest.mark.parametrize("code", ["EPERM", "EOPNOTSUPP", "EMLINK", "EXDEV"])
def test_a_file_system_without_hard_links_is_named(
    code: str, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = decide(folder, 0, 1)
    number = getattr(errno, code)
    monkeypatch.setattr(os, "link", refuse(number))
    with pytest.raises(SettingsError, match=r"\.$") as error:
        decisions.write(folder, decision_of(0, 1))
    assert f"{folder.decisions} must be on a file system that has hard links" in str(error.value)
    assert os.strerror(number) in str(error.value)
    assert populations.names(folder) == {"00-0000.json"}
    assert decisions.of_member(folder, 0) == made


def _until_adopted(state: State, member: int, folder: PopulationFolder) -> Decision:
    """Lets a member decide until it adopts; decisions between change nothing else."""
    for _ in range(20):
        decision = state.decide(member)
        if decision.adopted is not None:
            return decision
    raise AssertionError("It adopted nothing.")


def test_a_member_begins_with_what_is_drawn(folder: PopulationFolder) -> None:
    population = settings_of(seed=4)
    state = State(population, folder)
    for member in range(3):
        found = state.begin(member)
        assert found.decision.new == ranges.draw(population.ranges, member, 4)
        assert (found.decision.number, found.decision.old) == (0, {})
        assert (found.manifest, found.actor_steps) == (None, 0)
        assert math.isnan(found.score)
        assert state.begin(member).decision == found.decision
        assert found.decision == State(settings_of(seed=5), folder).look(member).decision


def test_a_decision_is_the_rules(state: State, folder: PopulationFolder) -> None:
    population = settings_of()
    for member in (2, 1):
        before = [state.look(other) for other in range(3)]
        made = state.decide(member)
        said = rule.decide(
            population,
            member,
            1,
            list(RETURNS),
            [other.decision.new for other in before],
            lambda values: True,
        )
        assert (made.rival, made.adopted is not None, made.new) == said
        assert (made.number, made.old) == (1, before[member].decision.new)
        manifest = before[member].manifest
        assert manifest is not None
        assert before[member].score == RETURNS[member]  # the last hundred episodes
        assert (made.learner_step, made.episodes) == (manifest.learner_step, manifest.episodes)
        assert (made.score, made.rival_score) == (RETURNS[member], RETURNS[said.rival])
        assert populations.newest(folder, member) == made


def test_who_adopts_has_the_others_learner_and_values_and_no_score_yet(
    state: State, folder: PopulationFolder
) -> None:
    made = _until_adopted(state, 0, folder)
    assert made.rival is not None
    adopted, rival = (again(folder.member(member), 1.0) for member in (0, made.rival))
    assert adopted.values() == rival.values()
    assert (made.rival_learner_step, made.learner_step_after) == (rival.learner_steps, 6)
    assert adopted.learner_steps == 6
    old = decisions.of_member(folder, made.rival)[0].new
    for name, value in made.new.items():
        assert value / old[name] == pytest.approx(1.0, rel=0.21)
    assert made.actor_steps == 53  # until which its log is of the weights that it had
    found = state.look(0)
    assert math.isnan(found.score)
    assert found.actor_steps == 53  # so that the next episodes are counted after that
    log_episodes(folder.member(0), [(54, "catch", 0.25)])
    assert state.look(0).score == 0.25
    kept = state.decide(2)
    assert kept.adopted is None
    assert kept.actor_steps == 110
    assert state.look(2).score == 1.0  # it has the weights that it had


@pytest.mark.parametrize("missing", ["logs/episodes.csv", "checkpoints/manifest.json"])
def test_without_a_score_and_a_learner_nobody_is_adopted(
    missing: str, state: State, folder: PopulationFolder
) -> None:
    for member in (1, 2):
        (folder.member(member).path / missing).unlink()
    for _ in range(3):
        made = state.decide(0)
        assert (made.adopted, made.rival_score, made.rival_learner_step) == (None, None, None)


def test_who_comes_second_does_what_the_first_decided(
    state: State, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = decisions.write

    def write_after_another(folder: PopulationFolder, decision: Decision) -> bool:
        values = dict(learning_rate=2e-3, entropy_cost=0.001)
        other = Decision(
            **(vars(decision) | dict(adopted=None, rival_learner_step=None, new=values))
        )
        assert write(folder, other)
        return write(folder, decision)

    monkeypatch.setattr(decisions, "write", write_after_another)
    made = state.decide(0, has_failed=True)
    assert made.new == dict(learning_rate=2e-3, entropy_cost=0.001)
    assert made.adopted is None
    assert again(folder.member(0), 1.0).learner_steps == 5  # its own
    assert len(decisions.of_member(folder, 0)) == 2


def test_a_log_says_which_values_hold_from_which_update_on(
    state: State, folder: PopulationFolder
) -> None:
    made = [*decisions.of_member(folder, 0), state.decide(0, has_failed=True)]
    run = folder.member(0)
    log = log_reader.read(run.log(LABEL), texts=("adopted_from",))
    assert log["learner_steps"].tolist() == [0, 6]
    assert log["actor_steps"].tolist() == [0, 53]
    assert log["decision"].tolist() == [0, 1]
    assert log.texts["adopted_from"].tolist() == ["", str(made[1].rival)]
    for name in ("learning_rate", "entropy_cost"):
        assert log[name].tolist() == [decision.new[name] for decision in made]
    whole = run.log(LABEL).read_bytes()
    manifest = saved_in(run.checkpoints)
    rewinding.rewind(run, {AGENT: manifest}, AGENT)  # as the next launch does after a kill
    assert run.log(LABEL).read_bytes() == whole


def test_values_of_every_kind_stand_in_a_row_each(folder: PopulationFolder) -> None:
    sweep = dict(
        correction="choice:vtrace",
        hidden_sizes="choice:64",
        period="choice:none",
        life_loss="choice:true",
    )
    State(settings_of(sweep=sweep), folder).begin(0)
    header, row = folder.member(0).log(LABEL).read_text().splitlines()
    assert header.split(",")[4:] == list(sweep)
    assert row.split(",") == ["0", "0", "0", "", "vtrace", "[64]", "None", "True"]


def _equals(folder: PopulationFolder, **given: Any) -> State:
    """Three members that play equally well."""
    state = State(settings_of(mutation_probability=1.0, **given), folder)
    for member in range(3):
        state.begin(member)
        saved(folder.member(member), member + 1.0, [1])
        log_episodes(folder.member(member), [(5, "catch", 0.5)])
    return state


def test_values_stay_together_what_a_config_takes(folder: PopulationFolder) -> None:
    """A c̄ of more than ρ̄, which is 1, would end the population."""
    state = _equals(folder, sweep=dict(c_bar="uniform:0.9:1"))
    seen = [state.decide(0).new["c_bar"] for _ in range(5)]
    assert max(seen) <= 1
    assert len(set(seen)) > 1


def test_a_value_that_limits_a_saved_replay_stays(folder: PopulationFolder) -> None:
    sweep = dict(samples_per_insert="uniform:1:2", learning_rate="log:1e-4:1e-3")
    state = _equals(folder, agent="r2d2", sweep=sweep)
    first = state.look(0).decision.new
    made = [state.decide(0).new for _ in range(2)]
    assert {new["samples_per_insert"] for new in made} == {first["samples_per_insert"]}
    assert first["learning_rate"] not in {new["learning_rate"] for new in made[:1]}


class _Killed(BaseException):
    """Stands for SIGKILL."""


def _die(*_: object, **__: object) -> Any:
    raise _Killed


@pytest.mark.parametrize(
    ("where", "name", "is_made"),
    [
        (adoption, "stage", False),
        (adoption, "_check_fits", False),
        (decisions, "write", False),
        (adoption, "publish", True),
        (checkpoints, "write", True),
        (checkpoints, "keep", True),
        (disk, "write", True),
    ],
)
def test_a_kill_amid_a_decision_leaves_all_or_nothing(
    where: Any,
    name: str,
    is_made: bool,
    state: State,
    folder: PopulationFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = again(folder.member(0), 1.0).values()
    with monkeypatch.context() as context:
        context.setattr(where, name, _die)
        with pytest.raises(_Killed):
            state.decide(0, has_failed=True)
    assert len(decisions.of_member(folder, 0)) == 1 + is_made
    found = State(settings_of(), folder).begin(0)
    assert found.decision.number == int(is_made)
    learning = again(folder.member(0), 1.0)
    if is_made:
        assert found.decision.rival is not None
        assert learning.values() == again(folder.member(found.decision.rival), 1.0).values()
        assert learning.learner_steps == 6
        assert checkpoints.kept_steps(folder.member(0).checkpoints, AGENT) == [2, 5, 6]
    else:
        assert learning.values() == before
        made = state.decide(0, has_failed=True)
        assert made.adopted == 0
        assert made.number == 1
    whole = contents(folder.path)
    State(settings_of(), folder).begin(0)  # which has nothing left to do
    assert contents(folder.path) == whole


def test_what_a_member_was_kept_from_doing_and_cannot_do_is_a_sentence(
    state: State, folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(adoption, "publish", _die)
        with pytest.raises(_Killed):
            state.decide(0, has_failed=True)
    for file in (folder.member(0).checkpoints / "learner-impala").glob("6.*"):
        file.unlink()
    with pytest.raises(SettingsError, match=r"learner-impala/6\.index is missing, which was to be"):
        state.begin(0)


def test_a_damaged_manifest_of_any_member_is_named(state: State, folder: PopulationFolder) -> None:
    _cut(folder.member(1).checkpoints / "manifest.json")
    for ask in (lambda: state.begin(1), lambda: state.decide(0)):
        with pytest.raises(SettingsError, match=r"manifest\.json is corrupt: .*\."):
            ask()
