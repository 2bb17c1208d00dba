"""What cannot be taken over leaves a run as it was, and is named."""

import errno
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from population import adoption
from population.adoption import AdoptionError
from run_folder import checkpoints, disk
from run_folder.layout import RunFolder
from tests.population.learners import STEPS, Learning, adopt, again, saved
from tests.population.populations import AGENT, contents, refuse
from tests.run_folder import saved_runs


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
    monkeypatch.setattr(shutil, "copyfile", refuse(errno.ENOENT))
    with pytest.raises(AdoptionError, match=rf"of {rival.run.path} cannot be taken: .*{said}"):
        adoption.stage(rival.run, own.run, AGENT, 6)
    assert contents(own.run.path) == before


@pytest.mark.parametrize("written", [0, 1])
def test_a_full_disk_leaves_nothing_of_it(
    written: int, rival: Learning, own: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, copy, calls = contents(own.run.path), shutil.copyfile, []

    def copy_until_full(old: Any, new: Any) -> None:
        calls.append(new)
        if len(calls) <= written:
            copy(old, new)
            return
        pathlib.Path(new).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", refuse(errno.EXDEV))
    monkeypatch.setattr(shutil, "copyfile", copy_until_full)
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


def _flip(path: pathlib.Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 0xFF
    path.write_bytes(bytes(data))


def _remove_learner(run: RunFolder) -> None:
    (run.checkpoints / "learner-impala" / "9.index").unlink()


def _flip_learner(run: RunFolder) -> None:
    _flip(run.checkpoints / "learner-impala" / "9.data-00000-of-00001")


def _cut_manifest(run: RunFolder) -> None:
    path = run.checkpoints / checkpoints.MANIFEST
    path.write_bytes(path.read_bytes()[:50])


def _remove_all(run: RunFolder) -> None:
    shutil.rmtree(run.path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_remove_learner, "cannot be taken: The checkpoint is incomplete: "),
        (_flip_learner, "is damaged."),
        (_cut_manifest, "manifest.json is corrupt"),
        (_remove_all, "has saved nothing yet."),
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
    with pytest.raises(AdoptionError, match=r"manifest\.json is corrupt"):
        adoption.publish(own.run, AGENT, 6, STEPS)
