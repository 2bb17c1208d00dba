"""A decision is made whole, once, and by one; what cannot be written or read is named."""

import errno
import itertools
import json
import multiprocessing
import os
import pathlib
import signal
from collections.abc import Callable
from concurrent import futures
from typing import Any

import pytest

from population import decisions
from population.folder import PopulationFolder
from run_folder.settings import SettingsError
from tests.forks import fork, garbage_is_kept
from tests.population import populations
from tests.population.populations import decide, decision_of, refuse


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
    assert decisions.every(folder, 3) == made
    assert decisions.every(folder, 1) == [d for d in made if d.member == 0]


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
        (lambda path: path.write_bytes(b"\xff"), "01-0001.json cannot be read: 'utf-8' codec"),
        (_folder_in_its_place, "01-0001.json cannot be read: Is a directory."),
        (_edit(time=-1), "time must be a number from 0 to 1e+15, got -1.0."),
        (_edit(actor_steps=1.5), "actor_steps must be a whole number, got 1.5."),
        (_edit(nwe={}), "nwe is no field here, the nearest is new."),
    ],
)
def test_what_is_damaged_is_named_in_a_sentence(
    damage: Callable[[pathlib.Path], None], said: str, folder: PopulationFolder
) -> None:
    decide(folder, 0, 2)
    decide(folder, 1, 3)
    damage(folder.decisions / "01-0001.json")
    for read in (lambda: populations.newest(folder, 1), lambda: decisions.every(folder, 3)):
        with pytest.raises(SettingsError, match=r"\.$") as error:
            read()
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


def test_a_list_that_cannot_be_written_undoes_no_decision(
    folder: PopulationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = decide(folder, 0, 1)
    with monkeypatch.context() as context:
        context.setattr(os, "replace", refuse(errno.ENOSPC))
        assert decisions.write(folder, decision_of(0, 1))
    assert len(decisions.of_member(folder, 0)) == 2
    assert populations.listed(folder) == made
    decisions.list_all(folder)
    assert populations.listed(folder) == decisions.of_member(folder, 0)
    assert {path.name for path in folder.path.iterdir()} == {"decisions", "population.jsonl"}
