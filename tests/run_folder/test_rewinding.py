"""The logs of a run that goes on agree with the checkpoint that it goes on from."""

import dataclasses
import pathlib

import pytest
import tensorflow as tf

from run_folder import log_writer, rewinding
from run_folder.episodes import Episodes
from run_folder.layout import RunFolder
from tests.run_folder.manifests import MANIFEST

_HOLE = 1 << 28

MANIFESTS = {
    "r2d2": MANIFEST,
    "impala": dataclasses.replace(MANIFEST, agent="impala", learner_step=7, actor_steps=190),
}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> RunFolder:
    """What r2d2 and impala had logged every second when they were killed in the fourth."""
    for label, per_second in (
        ("learner-r2d2", dict(learner_steps=10, actor_steps=100)),
        ("learner-impala", dict(learner_steps=3, actor_steps=100)),
        ("actor", dict(learner_steps=10, actor_steps=100)),
        ("evaluator-impala", dict(learner_steps=3, actor_steps=100)),
    ):
        logger = log_writer.make_logger(tmp_path, label)
        for second in range(1, 5):
            counts = {name: second * rate for name, rate in per_second.items()}
            logger.write(dict(counts, walltime=float(second), loss=0.5))
        logger.close()
    episodes = "actor_steps,walltime,actor,task,episode_return,episode_length\n"
    rows = "100,1.0,0,catch,1.0,9\n200,2.0,1,catch,-1.0,9\n300,3.0,0,catch,1.0,9\n30"
    RunFolder(tmp_path).log("episodes").write_text(episodes + rows)
    return RunFolder(tmp_path)


def _seconds(folder: RunFolder, label: str) -> list[float]:
    """Of the rows that a log has."""
    lines = folder.log(label).read_text().splitlines()
    column = lines[0].split(",").index("walltime")
    return [float(line.split(",")[column]) for line in lines[1:]]


def _steps_of(folder: RunFolder, tag: str) -> list[int]:
    """The steps of one tag, whose file is whole."""
    (path,) = [p for p in folder.events() if tag.encode() in p.read_bytes()]
    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    events = map(tf.compat.v1.Event.FromString, records)
    return sorted({event.step for event in events if event.summary.value})


def _steps(folder: RunFolder) -> dict[str, list[int]]:
    """The steps of each tag of TensorBoard, as it would read them."""
    found: dict[str, list[int]] = {}
    for path in folder.events():
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                found.setdefault(value.tag, []).append(event.step)
    return found


def test_what_was_logged_after_the_checkpoint_is_removed(folder: RunFolder) -> None:
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    for label in ("learner-r2d2", "learner-impala", "actor", "evaluator-impala", "episodes"):
        assert _seconds(folder, label) == [1.0, 2.0], label
    steps = _steps(folder)
    assert steps["learner-r2d2/loss"] == [10, 20]
    assert steps["learner-impala/loss"] == [3, 6]
    assert steps["actor/loss"] == [100, 200]
    assert steps["evaluator-impala/loss"] == [100, 200]


def test_what_goes_on_is_logged_once(folder: RunFolder) -> None:
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    logger = log_writer.make_logger(folder.path, "actor")
    for second in (3, 4):
        counts = dict(learner_steps=10 * second, actor_steps=100 * second)
        logger.write(dict(counts, walltime=float(second), loss=0.5))
    logger.close()
    assert _seconds(folder, "actor") == [1.0, 2.0, 3.0, 4.0]
    assert sorted(_steps(folder)["actor/loss"]) == [100, 200, 300, 400]


def test_logs_that_agree_are_not_touched(folder: RunFolder) -> None:
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    before = {p: (p.stat().st_ino, p.read_bytes()) for p in folder.path.rglob("*.*") if p.is_file()}
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    after = {p: (p.stat().st_ino, p.read_bytes()) for p in folder.path.rglob("*.*") if p.is_file()}
    assert after == before


def test_a_run_that_saved_nothing_begins_its_logs_anew(folder: RunFolder) -> None:
    rewinding.rewind(folder, {}, "r2d2")
    assert _seconds(folder, "actor") == []
    assert _steps(folder) == {}


def test_an_agent_that_saved_nothing_begins_its_own_anew(folder: RunFolder) -> None:
    rewinding.rewind(folder, {"r2d2": MANIFEST}, "r2d2")
    assert _seconds(folder, "learner-r2d2") == [1.0, 2.0]
    assert _seconds(folder, "learner-impala") == []


def test_half_a_record_of_an_event_file_is_cut_off(folder: RunFolder) -> None:
    path = max(folder.events(), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes()[:-3])
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    assert _steps(folder)["actor/loss"] == [100, 200]


_LEFT = {
    "half a row": b"300,3.0,0,cat",
    "zeros": bytes(100_000),
    "zeros in a row": b"300,3.0,0,c" + bytes(9),
}


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("left", _LEFT)
def test_logs_are_cut_back_to_whole_rows_after_a_power_cut(
    left: str, in_order: bool, folder: RunFolder
) -> None:
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    files = [*folder.logs.iterdir(), *folder.events()]
    whole = [path.read_bytes() for path in files]
    for path in files:
        path.write_bytes(path.read_bytes() + _LEFT[left])
    if in_order:
        rewinding.cut(folder)
    else:
        rewinding.rewind(folder, MANIFESTS, "r2d2")
    assert [path.read_bytes() for path in files] == whole


def test_a_row_that_was_lost_between_others_goes(folder: RunFolder) -> None:
    path = folder.log("episodes")
    header, *rows = path.read_bytes().splitlines(keepends=True)[:3]
    path.write_bytes(header + rows[0] + b"15" + bytes(5_000) + b",catch,1.0,9\n" + rows[1])
    rewinding.cut(folder)
    assert path.read_bytes() == header + rows[0] + rows[1]


@pytest.mark.parametrize("left", [b"", bytes(9), b"actor_steps,wall", bytes(99) + b"\n7,1.0\n"])
def test_a_log_whose_columns_are_lost_begins_anew(left: bytes, folder: RunFolder) -> None:
    for label in ("actor", "episodes"):
        folder.log(label).write_bytes(left)
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    log_writer.make_logger(folder.path, "actor").write(dict(actor_steps=7, walltime=3.0))
    episodes = Episodes(folder.path, ["catch"])
    episodes.add([(0, 0, 1.0, 9, 2)], 2, since=(5.0, 1.0), until=3.0)
    episodes.write()
    assert folder.log("actor").read_text().split() == ["actor_steps,walltime", "7,3.0"]
    assert _seconds(folder, "episodes") == [3.0]


def test_no_more_of_a_log_is_read_than_has_to_be(folder: RunFolder) -> None:
    """The files have holes of 256 MB: who read those would take them away, and what is after."""
    (events,) = [path for path in folder.events() if b"learner-r2d2" in path.read_bytes()]
    logged = {path: path.read_bytes() for path in (events, folder.log("episodes"))}
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    sizes = {}
    for path, whole in logged.items():
        kept = path.read_bytes()
        rows = kept[kept.index(b"\n") + 1 :] if path.suffix == ".csv" else kept
        with path.open("r+b") as file:
            file.seek(_HOLE)
            file.write(rows[-1:] + rows * 10_000)
            sizes[path] = file.tell()
            file.write(whole[len(kept) :])
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    assert {path: path.stat().st_size for path in logged} == sizes


def test_a_folder_without_logs_has_none_afterwards(tmp_path: pathlib.Path) -> None:
    rewinding.rewind(RunFolder(tmp_path), MANIFESTS, "r2d2")
    assert list(tmp_path.iterdir()) == []


def test_one_process_goes_back_and_the_others_write_on(folder: RunFolder) -> None:
    others = [path for path in folder.events() if b"learner-r2d2" not in path.read_bytes()]
    assert len(others) == 3
    others[0].write_bytes(others[0].read_bytes()[:-3])  # a record that is being written
    others += [path for path in folder.logs.iterdir() if path.stem != "learner-r2d2"]
    before = [(path.stat().st_ino, path.read_bytes()) for path in others]
    rewinding.rewind_own(folder, ["learner-r2d2"], {"learner_steps": 20})
    assert _seconds(folder, "learner-r2d2") == [1.0, 2.0]
    assert _steps_of(folder, "learner-r2d2/loss") == [10, 20]
    assert [(path.stat().st_ino, path.read_bytes()) for path in others] == before


def test_a_process_without_a_log_has_none_afterwards(tmp_path: pathlib.Path) -> None:
    (tmp_path / "events.out").touch()
    rewinding.rewind_own(RunFolder(tmp_path), ["actor"], {"actor_steps": 0})
    assert [path.name for path in tmp_path.rglob("*.*")] == ["events.out"]
