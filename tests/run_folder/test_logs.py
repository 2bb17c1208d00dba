"""Logs are written under one header, read as they are left, and cut back when a run goes on."""

import dataclasses
import itertools
import pathlib
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from run_folder import log_reader, log_writer, rewinding
from run_folder.episodes import Episodes
from run_folder.layout import RunFolder
from tests.rows import steps_on_tensorboard
from tests.run_folder.manifests import MANIFEST

HEADER = "actor_steps,walltime,task,episode_return\n"


def _read(tmp_path: pathlib.Path, text: str) -> log_reader.Log:
    path = tmp_path / "log.csv"
    path.write_text(text)
    return log_reader.read(path, texts=("task",))


def test_columns_of_numbers_and_of_text(tmp_path: pathlib.Path) -> None:
    log = _read(tmp_path, HEADER + "10,1.5,catch,-1\n20,2.5,atari:pong,nan\n30,3.5,catch,2e3\n")
    assert len(log) == 3
    np.testing.assert_array_equal(log["actor_steps"], [10, 20, 30])
    np.testing.assert_array_equal(log["episode_return"], [-1, np.nan, 2_000])
    assert log.texts["task"].tolist() == ["catch", "atari:pong", "catch"]
    steps, returns = log.defined("actor_steps", "episode_return")
    assert (steps.tolist(), returns.tolist()) == ([10, 30], [-1, 2_000])
    assert log.last("episode_return") == 2_000
    assert np.isnan(log["absent"]).all()
    assert np.isnan(log.last("absent"))
    assert log.where(log.texts["task"] == "catch")["walltime"].tolist() == [1.5, 3.5]


@pytest.mark.parametrize(
    "broken", ["20,2.5,ca", "20,2.5,catch,1,1\n", "20,,catch,1\n", "x,2,catch,1\n", "\n"]
)
def test_a_broken_row_is_left_out(broken: str, tmp_path: pathlib.Path) -> None:
    log = _read(tmp_path, f"{HEADER}10,1.5,catch,-1\n{broken}")
    assert log["actor_steps"].tolist() == [10]


@pytest.mark.parametrize("text", ["", HEADER, "actor_st"])
def test_a_young_log_has_no_rows(text: str, tmp_path: pathlib.Path) -> None:
    log = _read(tmp_path, text)
    assert len(log) == 0
    assert [len(column) for column in log.defined("actor_steps", "episode_return")] == [0, 0]
    assert np.isnan(log.last("actor_steps"))


def test_what_a_resume_undid_is_left_out(tmp_path: pathlib.Path) -> None:
    """Killed at 40 steps, gone on from a checkpoint at 20; killed at 35, gone on from 30."""
    steps = [10, 20, 30, 40, 25, 30, 35, 32, 50]
    log = _read(
        tmp_path, HEADER + "".join(f"{s},{s / 10},catch,{i}\n" for i, s in enumerate(steps))
    )
    assert log["actor_steps"].tolist() == [10, 20, 25, 30, 32, 50]
    assert log["episode_return"].tolist() == [0, 1, 4, 5, 7, 8]


def test_rows_stand_unless_a_later_one_counts_less() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.integers(0, 30, size=(2, 12)).astype(float)
        naive = [all(a[i] <= a[j] and b[i] <= b[j] for j in range(i, 12)) for i in range(12)]
        assert log_reader.standing([a, b]).tolist() == naive
    assert not all(naive)
    undefined = np.array([1, np.nan, 3, 2, 4])
    assert log_reader.standing([undefined]).tolist() == [True, False, False, True, True]


def test_the_end_of_a_log_is_the_end_of_all_its_rows(tmp_path: pathlib.Path) -> None:
    steps = [10, 20, 30, 40, 25, 30, 35, 32, 50]
    text = HEADER + "".join(f"{s},{s / 10},catch,{i}\n" for i, s in enumerate(steps))
    whole = _read(tmp_path, text)
    numbers = set()
    for last_bytes in range(1, len(text) + 9):
        log = log_reader.read(tmp_path / "log.csv", texts=("task",), last_bytes=last_bytes)
        numbers.add(len(log))
        if len(log):
            for name in ("actor_steps", "walltime", "episode_return"):
                assert log[name].tolist() == whole[name][-len(log) :].tolist()
            assert set(log.texts["task"]) == {"catch"}
    assert numbers == set(range(len(whole) + 1))


@pytest.mark.parametrize(("there", "wanted"), [(0, 5), (3, 5), (50, 50), (1_000, 20), (1_000, 1)])
def test_rows_are_spread_over_a_log(there: int, wanted: int, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("actor_steps,loss\n" + "".join(f"{10**6 + i},1\n" for i in range(there)))
    steps = log_reader.read(path, most_rows=wanted)["actor_steps"] - 10**6
    assert len(steps) == min(there, wanted)
    assert np.abs(steps - np.arange(len(steps)) * there / max(len(steps), 1)).max(initial=0) <= 1


NAN = float("nan")


@pytest.mark.parametrize(
    ("first", "then", "lines"),
    [
        (dict(loss=1, actor_steps=1), dict(actor_steps=2, loss=2), ["1,1", "2,2"]),
        (dict(actor_steps=1, loss=NAN), dict(actor_steps=2, loss=NAN), ["1,nan", "2,nan"]),
        (dict(actor_steps=1, loss=1), dict(actor_steps=2, loss=2, a=0, z=0), ["1,1", "2,2"]),
        (dict(actor_steps=1, loss=1), dict(actor_steps=2, entropy=0), ["1,1", "2,nan"]),
    ],
    ids=["the same", "undefined", "more", "others"],
)
def test_a_log_goes_on_under_one_header(
    first: dict[str, float], then: dict[str, float], lines: list[str], tmp_path: pathlib.Path
) -> None:
    for row in (first, then):
        logger = log_writer.make_logger(tmp_path, "actor")
        logger.write(row)
        logger.close()
    text = (tmp_path / "logs" / "actor.csv").read_text()
    assert text.splitlines() == ["actor_steps,loss", *lines]
    assert RunFolder(tmp_path).events()


def test_no_row_is_dropped_where_the_clock_is_set_back(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = (1.8e9 - 3_600 * hours for hours in itertools.count())
    monkeypatch.setattr(time, "time", lambda: next(wall))
    logger = log_writer.make_logger(tmp_path, "actor")
    for step in (1, 2):
        logger.write(dict(actor_steps=step))
    logger.close()
    assert (tmp_path / "logs" / "actor.csv").read_text().splitlines() == ["actor_steps", "1", "2"]


def test_a_file_that_holds_nothing_yet_has_no_columns_yet(tmp_path: pathlib.Path) -> None:
    log_writer.make_logger(tmp_path, "evaluator").close()  # it ended before it evaluated
    logger = log_writer.make_logger(tmp_path, "evaluator")
    logger.write(dict(actor_steps=1, episode_return=2.0))
    logger.close()
    text = (tmp_path / "logs" / "evaluator.csv").read_text()
    assert text.splitlines() == ["actor_steps,episode_return", "1,2.0"]


def _board(run_dir: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """The steps and values of each scalar that TensorBoard shows."""
    board = EventAccumulator(str(run_dir)).Reload()
    return {
        name: [
            (event.step, float(tf.make_ndarray(event.tensor_proto)))
            for event in board.Tensors(name)
        ]
        for name in board.Tags()["tensors"]
    }


def test_tensorboard_shows_the_names_of_the_csv(tmp_path: pathlib.Path) -> None:
    learner = log_writer.make_logger(tmp_path, "learner-popart")
    actor = log_writer.make_logger(tmp_path, "actor")
    for step in (10, 20):
        learner.write({"learner_steps": step, "gradient_norm": 0.5, "mu/atari:ms_pacman": step / 4})
    actor.write({"actor_steps": 7, "episode_return": tf.constant(2.0), "episode_length": NAN})
    for logger in (learner, actor):
        logger.close()
    assert _board(tmp_path) == {
        "learner-popart/gradient_norm": [(10, 0.5), (20, 0.5)],
        "learner-popart/mu/atari:ms_pacman": [(10, 2.5), (20, 5.0)],
        "actor/episode_return": [(7, 2.0)],
    }
    header = (tmp_path / "logs" / "learner-popart.csv").read_text().splitlines()[0]
    shown = [n.partition("/")[2] for n in _board(tmp_path) if n.startswith("learner-popart/")]
    assert {*shown, "learner_steps"} == set(header.split(","))


_HOLE = 1 << 28
MANIFESTS = {
    "r2d2": MANIFEST,
    "impala": dataclasses.replace(MANIFEST, agent="impala", learner_step=7, actor_steps=190),
}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> RunFolder:
    """The logs of r2d2 and impala, with a row for each second, killed in the fourth."""
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
    """The walltime of each row of a log."""
    lines = folder.log(label).read_text().splitlines()
    column = lines[0].split(",").index("walltime")
    return [float(line.split(",")[column]) for line in lines[1:]]


def _steps_of(folder: RunFolder, tag: str) -> list[int]:
    """The steps of one tag, whose file is whole."""
    (path,) = [p for p in folder.events() if tag.encode() in p.read_bytes()]
    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    events = map(tf.compat.v1.Event.FromString, records)
    return sorted({event.step for event in events if event.summary.value})


def test_what_was_logged_after_the_checkpoint_is_removed(folder: RunFolder) -> None:
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    for label in ("learner-r2d2", "learner-impala", "actor", "evaluator-impala", "episodes"):
        assert _seconds(folder, label) == [1.0, 2.0], label
    steps = steps_on_tensorboard(folder.path)
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
    assert sorted(steps_on_tensorboard(folder.path)["actor/loss"]) == [100, 200, 300, 400]


def test_logs_that_agree_are_not_touched(folder: RunFolder) -> None:
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    before = {p: (p.stat().st_ino, p.read_bytes()) for p in folder.path.rglob("*.*") if p.is_file()}
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    after = {p: (p.stat().st_ino, p.read_bytes()) for p in folder.path.rglob("*.*") if p.is_file()}
    assert after == before


def test_an_agent_or_a_run_that_saved_nothing_begins_its_logs_anew(folder: RunFolder) -> None:
    rewinding.rewind(folder, {"r2d2": MANIFEST}, "r2d2")
    assert _seconds(folder, "learner-r2d2") == [1.0, 2.0]
    assert _seconds(folder, "learner-impala") == []
    rewinding.rewind(folder, {}, "r2d2")
    assert _seconds(folder, "actor") == []
    assert steps_on_tensorboard(folder.path) == {}


def test_half_a_record_of_an_event_file_is_cut_off(folder: RunFolder) -> None:
    path = max(folder.events(), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes()[:-3])
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    assert steps_on_tensorboard(folder.path)["actor/loss"] == [100, 200]


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


def test_scalars_of_somebodys_own_beside_those_of_the_run_stay(folder: RunFolder) -> None:
    """But those of an evaluation go back with the run."""
    for label in ("own", "evaluate-epsilon0.5"):
        board = log_writer.Board(folder.path, label)
        for steps in (100, 900):
            board.write(dict(actor_steps=steps, loss=0.5))
        board.close()
    rewinding.rewind(folder, MANIFESTS, "r2d2")
    found = steps_on_tensorboard(folder.path)
    assert found["own/loss"] == [100, 900]
    assert found["evaluate-epsilon0.5/loss"] == [100]
