"""A learner is taken over whole, with all that it learns with, or not at all."""

import errno
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from agents.batches import Fetched
from agents.learner import Learner
from population import adoption
from population.adoption import AdoptionError
from run_folder import building, checkpoints, disk, resuming
from run_folder.layout import RunFolder
from tests.population.learners import STEPS, Learning, adopt, again, saved
from tests.population.populations import AGENT, contents, refuse
from tests.run_folder import saved_runs
from tests.run_folder.saving import saved_in


def test_who_adopts_goes_on_as_the_other_would(rival: Learning, own: Learning) -> None:
    before = saved_in(own.run.checkpoints)
    assert adopt(rival, own) == 9
    adopted = again(own.run, 3.0)
    assert adopted.values() == rival.values()
    assert "statistics:0" in adopted.values()
    assert "moment:0" in adopted.values()
    assert adopted.learner_steps == 6  # one more than its own
    for learning in (adopted, rival):
        learning.learn(2)
    assert adopted.values() == rival.values()
    assert adopted.learner_steps == 8
    after = adopted.save()
    assert (after.learner_step, after.learner) == (8, "learner-impala/8")
    assert (after.replay, after.replay_items) == (before.replay, before.replay_items)


def test_what_a_member_has_counted_and_its_replay_stay(rival: Learning, own: Learning) -> None:
    before = saved_in(own.run.checkpoints)
    assert before.replay
    files = contents(own.run.checkpoints)
    adopt(rival, own)
    after = saved_in(own.run.checkpoints)
    kept = ("replay", "replay_items", "replay_saved_at", "episodes", "trained_steps", "walltime")
    for name in (*kept, "agent", "replay_seconds"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.actor_steps == STEPS
    assert (after.learner_step, after.learner) == (6, "learner-impala/6")
    named = {name.partition(".")[0] for name in after.sizes if name.startswith("learner")}
    assert named == {"learner-impala/6"}  # the one before may be removed
    assert set(after.sizes) > {name for name in before.sizes if name.startswith("replay")}
    assert checkpoints.kept_steps(own.run.checkpoints, AGENT) == [3, 5, 6]
    for step in (3, 5, 6):
        assert checkpoints.read_kept(own.run.checkpoints, AGENT, step).replay is None
    brought = set(contents(own.run.checkpoints)) - set(files)
    assert all(
        name.startswith(("learner-impala/6.", "learner-impala/manifest-6")) for name in brought
    )
    unchanged = {name: data for name, data in files.items() if name != "manifest.json"}
    assert unchanged.items() <= contents(own.run.checkpoints).items()


def test_a_run_goes_on_from_what_an_agent_of_the_project_adopted(tmp_path: pathlib.Path) -> None:
    runs = [
        saved_runs.save(tmp_path / name, "popart", steps=(3, steps), seed=steps)
        for name, steps in (("rival", 70), ("own", 7))
    ]
    rival, own = runs
    assert adoption.stage(rival.folder, own.folder, "popart", 8) == 70
    adoption.publish(own.folder, "popart", 8, STEPS)
    spec = building.environment_spec(own)
    values = []
    for run in runs:
        update = building.make_agent(run, "popart").make_update(spec)
        found = resuming.manifests(run, {"popart": update}, step=None, with_replay=True)["popart"]
        learner = Learner(update, Fetched(iter(())))
        learner.read_checkpoint(str(run.folder.checkpoints / found.learner), found.learner_step)
        assert learner.learner_steps == found.learner_step
        values.append({name: value.tolist() for name, value in learner.save().items()})
    assert found.learner_step == 8
    different = [name for name in values[0] if values[0][name] != values[1][name]]
    assert len(different) == 2  # the number of updates, as the learner and its update count it
    assert len(values[0]) > 10


def test_files_are_linked_and_on_the_disk(
    rival: Learning, own: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(file: int, sync: Any = os.fsync) -> None:
        synced.append(os.fstat(file).st_ino)
        sync(file)

    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", sync)
    adoption.stage(rival.run, own.run, AGENT, 6)
    before_it_is_decided = set(synced)
    adoption.publish(own.run, AGENT, 6, STEPS)
    for suffix in ("index", "data-00000-of-00001"):
        old = rival.run.checkpoints / f"learner-impala/9.{suffix}"
        new = own.run.checkpoints / f"learner-impala/6.{suffix}"
        assert new.samefile(old)
        assert new.stat().st_ino in before_it_is_decided
    assert again(own.run, 3.0).values() == rival.values()


@pytest.mark.parametrize("linked", [0, 1])
def test_what_the_other_removes_meanwhile_is_read_again(
    linked: int, rival: Learning, own: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saves once more after so many files were taken, and keeps no earlier learner."""
    link = os.link
    calls: list[Any] = []

    def link_meanwhile(old: Any, new: Any) -> None:
        if len(calls) == linked:
            rival.learn(2)
            rival.save()
            folder = rival.run.checkpoints / "learner-impala"
            checkpoints.remove_others(folder, [rival.learner_steps])
        calls.append(old)
        link(old, new)

    monkeypatch.setattr(os, "link", link_meanwhile)
    assert adopt(rival, own) == 11
    assert len(calls) > 2
    assert again(own.run, 3.0).values() == rival.values()


def test_what_is_done_is_not_done_again_and_no_step_is_taken_back(
    rival: Learning, own: Learning
) -> None:
    adoption.stage(rival.run, own.run, AGENT, 6)
    adoption.publish(own.run, AGENT, 6, actor_steps=7)
    manifest = saved_in(own.run.checkpoints)
    assert manifest.actor_steps == 50
    before = contents(own.run.path)
    adoption.publish(own.run, AGENT, 6, STEPS)
    assert contents(own.run.path) == before
    learning = again(own.run, 3.0)
    learning.learn(4)
    learning.save()
    before = contents(own.run.path)
    adoption.publish(own.run, AGENT, 6, STEPS)
    assert contents(own.run.path) == before


def test_what_nobody_decided_on_belongs_to_nobody(
    rival: Learning, own: Learning, tmp_path: pathlib.Path
) -> None:
    adoption.stage(rival.run, own.run, AGENT, 6)
    (own.run.checkpoints / "learner-impala" / "6.data-00001-of-00002").write_text("of another")
    assert again(own.run, -1.0).values() == own.values()
    third = saved(RunFolder(tmp_path / "third"), 7.0, [1])
    assert adoption.stage(third.run, own.run, AGENT, 6) == 1
    assert len(list((own.run.checkpoints / "learner-impala").glob("6.*"))) == 2
    learning = again(own.run, -1.0)
    learning.learn(4)
    learning.save()  # the run goes on without it
    left = {
        path.name.partition(".")[0] for path in (own.run.checkpoints / "learner-impala").iterdir()
    }
    assert left == {"3", "5", "9", "manifest-3", "manifest-5", "manifest-9"}


def test_a_learner_that_is_written_anew_leaves_the_adopted_one_as_it_was(
    rival: Learning, own: Learning
) -> None:
    """The other goes back to update 5 and comes to 9 again, otherwise than before."""
    adopt(rival, own)
    adopted = rival.values()
    back = checkpoints.read_kept(rival.run.checkpoints, AGENT, 5)
    checkpoints.write(rival.run.checkpoints, checkpoints.MANIFEST, back)
    anew = again(rival.run, 4.0)
    anew.learn(4)
    anew.save()
    assert anew.learner_steps == 9
    assert anew.values() != adopted
    assert again(own.run, 3.0).values() == adopted


def _write_anew(old: pathlib.Path, new: pathlib.Path, link: Any = os.link) -> None:
    data = old.read_bytes()
    old.unlink()
    old.write_bytes(data + b"of another learner")
    link(old, new)


@pytest.mark.parametrize(
    ("link", "said"),
    [(refuse(errno.ENOENT), "is gone"), (_write_anew, "The checkpoint is corrupt")],
)
def test_a_learner_that_changes_again_and_again_is_not_adopted(
    link: Any, said: str, rival: Learning, own: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(own.run.path)
    monkeypatch.setattr(os, "link", link)
    with pytest.raises(AdoptionError, match=rf"of {rival.run.path} cannot be taken: .*{said}"):
        adoption.stage(rival.run, own.run, AGENT, 6)
    assert contents(own.run.path) == before


@pytest.mark.parametrize("written", [0, 1])
def test_a_full_disk_leaves_nothing_of_it(
    written: int, rival: Learning, own: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, link, calls = contents(own.run.path), os.link, []

    def link_until_full(old: Any, new: Any) -> None:
        calls.append(new)
        if len(calls) > written:
            raise OSError(errno.ENOSPC, "No space left on device")
        link(old, new)

    monkeypatch.setattr(os, "link", link_until_full)
    with pytest.raises(OSError, match="No space left"):
        adoption.stage(rival.run, own.run, AGENT, 6)
    assert contents(own.run.path) == before


def test_a_manifest_that_cannot_be_written_leaves_the_run_as_it_was(
    rival: Learning, own: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    adoption.stage(rival.run, own.run, AGENT, 6)
    before = contents(own.run.path)
    with monkeypatch.context() as context:
        context.setattr(disk.os, "replace", refuse(errno.ENOSPC))
        with pytest.raises(OSError, match="No space left"):
            adoption.publish(own.run, AGENT, 6, STEPS)
    assert contents(own.run.path) == before
    assert again(own.run, -1.0).values() == own.values()
    adoption.publish(own.run, AGENT, 6, STEPS)
    assert again(own.run, 3.0).values() == rival.values()


_DATA = "learner-impala/9.data-00000-of-00001"


def _flip(path: pathlib.Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 0xFF
    path.write_bytes(bytes(data))


def _cut_manifest(run: RunFolder) -> None:
    path = run.checkpoints / checkpoints.MANIFEST
    path.write_bytes(path.read_bytes()[:50])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda run: (run.checkpoints / "learner-impala/9.index").unlink(),
            "cannot be taken: The checkpoint is incomplete: ",
        ),
        (lambda run: _flip(run.checkpoints / _DATA), "is damaged."),
        (_cut_manifest, "manifest.json is corrupt"),
        (lambda run: shutil.rmtree(run.path), "has saved nothing yet."),
    ],
)
def test_a_learner_that_is_not_whole_is_not_adopted(
    damage: Callable[[RunFolder], None], said: str, rival: Learning, own: Learning
) -> None:
    before = contents(own.run.path)
    damage(rival.run)
    with pytest.raises(AdoptionError, match=r"\.$") as error:
        adoption.stage(rival.run, own.run, AGENT, 6)
    assert str(rival.run.path) in str(error.value)
    assert said in str(error.value)
    assert contents(own.run.path) == before


def test_neither_the_others_replay_nor_its_own_learner_need_be_whole(
    rival: Learning, own: Learning
) -> None:
    shutil.rmtree(rival.run.checkpoints / "replay")
    _flip(own.run.checkpoints / "learner-impala" / "5.data-00000-of-00001")
    assert adopt(rival, own) == 9
    assert again(own.run, 3.0).values() == rival.values()


def test_a_learner_of_other_sizes_is_not_adopted(tmp_path: pathlib.Path) -> None:
    rival = saved_runs.save(tmp_path / "rival", "impala", steps=(7,))
    own = saved(RunFolder(tmp_path / "own"), 1.0, [1])
    before = contents(own.run.path)
    with pytest.raises(AdoptionError, match=r"is not of the sizes that .*/own's is\."):
        adoption.stage(rival.folder, own.run, AGENT, 2)
    assert contents(own.run.path) == before


@pytest.mark.parametrize("missing", ["6.index", "6.data-00000-of-00001"])
def test_what_was_decided_and_is_gone_is_named(
    missing: str, rival: Learning, own: Learning
) -> None:
    adoption.stage(rival.run, own.run, AGENT, 6)
    (own.run.checkpoints / "learner-impala" / missing).unlink()
    before = contents(own.run.path)
    with pytest.raises(AdoptionError, match=r"is missing, which was to be adopted\.") as error:
        adoption.publish(own.run, AGENT, 6, STEPS)
    assert str(own.run.checkpoints / "learner-impala/6") in str(error.value)
    assert contents(own.run.path) == before


def test_a_run_that_has_saved_nothing_adopts_nothing(own: Learning, tmp_path: pathlib.Path) -> None:
    with pytest.raises(AdoptionError, match="has saved nothing yet"):
        adoption.publish(RunFolder(tmp_path / "new"), AGENT, 1, STEPS)
    _cut_manifest(own.run)
    with pytest.raises(checkpoints.CheckpointError, match=r"manifest\.json is corrupt"):
        adoption.publish(own.run, AGENT, 6, STEPS)
