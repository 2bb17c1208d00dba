"""What is typed to start and resume a run stays in its folder."""

import datetime
import pathlib
import shlex

from launch import launches


def test_every_launch_is_kept_in_order(tmp_path: pathlib.Path) -> None:
    arguments = ["--agent=r2d2", "--env=catch", "--run_dir=runs/a name"]
    launches.record(tmp_path, arguments, actor_steps=0, walltime=0.0)
    launches.record(tmp_path, ["--resume"], actor_steps=500, walltime=12.5)
    first, second = launches.read(tmp_path)
    assert shlex.split(first.command) == ["python", "-m", "launch.train", *arguments]
    assert (second.command, second.actor_steps, second.walltime) == (
        "python -m launch.train --resume",
        500,
        12.5,
    )
    began = datetime.datetime.fromisoformat(first.time)
    now = datetime.datetime.now(datetime.timezone.utc)
    assert began.utcoffset() == datetime.timedelta(0)
    assert now - datetime.timedelta(hours=1) < began <= now


def test_a_run_older_than_the_file_has_no_launches(tmp_path: pathlib.Path) -> None:
    assert launches.read(tmp_path) == []
