"""Log files: one header, whatever a resumed run logs, and the same names in TensorBoard."""

import itertools
import pathlib
import time

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from run_folder import log_writer
from run_folder.layout import RunFolder

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
    """What TensorBoard shows: name -> its steps and values."""
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
