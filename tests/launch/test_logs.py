"""Log files: one header, whatever a resumed run logs."""

import pathlib

import pytest

from launch import logs

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
        logger = logs.make_logger(tmp_path, "actor")
        logger.write(row)
        logger.close()
    text = (tmp_path / "logs" / "actor.csv").read_text()
    assert text.splitlines() == ["actor_steps,loss", *lines]
    assert list((tmp_path / "tensorboard").glob("events*"))


def test_a_file_that_holds_nothing_yet_has_no_columns_yet(tmp_path: pathlib.Path) -> None:
    logs.make_logger(tmp_path, "evaluator").close()  # a run that ended before its first evaluation
    logger = logs.make_logger(tmp_path, "evaluator")
    logger.write(dict(actor_steps=1, episode_return=2.0))
    logger.close()
    text = (tmp_path / "logs" / "evaluator.csv").read_text()
    assert text.splitlines() == ["actor_steps,episode_return", "1,2.0"]
