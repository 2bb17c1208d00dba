"""The command: what it prints and leaves behind, and what it refuses."""

import pathlib

import av
import pytest
import tensorflow as tf

from analysis.playing import files, session
from analysis.playing.evaluation import Player
from environments import screens
from environments.copies.dead_simulators import CannotPlayError
from launch import evaluate
from run_folder import log_writer
from tests.launch import typed
from tests.run_folder import saved_runs


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """R2D2 and IMPALA on two tasks of catch, saved twice."""
    folder = tmp_path_factory.mktemp("runs") / "catch"
    saved_runs.save(folder, "r2d2,impala", "catch,catch:large_rewards", steps=(3, 7))
    return folder


def test_every_task_has_a_line_and_every_episode_a_row(
    run_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = (f"--run_dir={run_dir}", "--checkpoint=3", "--agent=impala", "--episodes=5", "--seed=9")
    assert typed.run(evaluate.main, *argv) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    path = run_dir / "evaluations" / "impala-3.csv"
    rows = files.read(path)
    assert [row.task for row in rows] == ["catch"] * 5 + ["catch:large_rewards"] * 5
    assert [row.episode for row in rows] == [*range(5), *range(5)]
    assert {(row.learner_steps, row.epsilon, row.seed) for row in rows} == {(3, None, 9)}
    mean = sum(row.episode_return for row in rows[:5]) / 5
    assert first.startswith(f"impala on catch: mean return {mean:.2f} over 5 episodes")
    assert second.startswith("impala on catch:large_rewards: mean return ")
    assert last == f"Every episode, of update 3: {path}"


def test_a_film_of_each_task(run_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    how = ("--epsilon=0.5", "--memory_steps=4", "--video", "--episodes=1")
    assert typed.run(evaluate.main, f"--run_dir={run_dir}", *how) == 0
    printed = capsys.readouterr().out.splitlines()
    name = "r2d2-7-epsilon0.5-memory4"
    assert (run_dir / "evaluations" / f"{name}.csv").exists()
    for task in ("catch", "catch_large_rewards"):
        path = run_dir / "videos" / f"{name}-{task}.mp4"
        assert f"Film: {path}" in printed
        with av.open(str(path)) as container:
            assert len(list(container.decode(video=0))) == 10


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--checkpoint=5"], "holds no step 5 of r2d2; there are 3, 7."),
        (["--checkpoint=best"], "checkpoints holds no best parameters of r2d2: no evaluation by"),
        (["--checkpoint=newest"], "--checkpoint must be latest, best or the number of an update"),
        (["--checkpoint=-1"], "must be latest, best or the number of an update, got '-1'"),
        (["--agent=popart"], "; there are r2d2, impala."),
        (["--agent=impala", "--epsilon=0.1"], "but impala samples its actions"),
        (["--epsilon=2"], "--epsilon must be between 0 and 1, got 2."),
        (["--epsilon=nan"], "--epsilon must be between 0 and 1, got nan."),
        (["--memory_steps=0"], "--memory_steps must be at least 1"),
        ([f"--checkpoint={'9' * 400}"], "must be latest, best or the number of an update, got"),
        (["--memory_steps=100000000"], "--memory_steps=100000000"),
        (["--episodes=0"], "--episodes"),
        (["--episodes=9223372036854775808"], "--episodes=9223372036854775808"),
        (["--seed=9223372036854775808"], "--seed=9223372036854775808"),
        (["--run_dir="], "--run_dir must be given."),
        (["--run_dir=gs://bucket/run"], "--run_dir=gs://bucket/run is in a bucket, and this"),
        (["--video"], "--video: 'catch' needs a renderer."),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_played(
    run_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], sentence: str
) -> None:
    def refuse(name: str) -> None:
        raise ValueError(f"{name!r} needs a renderer.")

    monkeypatch.setattr(screens, "check", refuse)
    before = sorted(run_dir.rglob("*"))
    assert sentence in typed.refused(evaluate.main, f"--run_dir={run_dir}", *argv)
    assert sorted(run_dir.rglob("*")) == before


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [(KeyboardInterrupt(), 130, ""), (CannotPlayError("All were lost."), 2, "All were lost.\n")],
)
def test_ctrl_c_and_a_task_that_cannot_be_played_end_it_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
    run_dir: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    def stopped(player: Player, episodes: int | None, say: session.Say) -> None:
        raise error

    monkeypatch.setattr(session, "play_all", stopped)
    assert typed.run(evaluate.main, f"--run_dir={run_dir}", "--video") == code
    assert capsys.readouterr().err == said


def test_a_run_folder_that_cannot_be_written_is_one_sentence_and_nothing_is_played(
    monkeypatch: pytest.MonkeyPatch, run_dir: pathlib.Path
) -> None:
    def refuse(folder: pathlib.Path, label: str) -> None:
        raise tf.errors.PermissionDeniedError(None, None, f"{folder}/events; Permission denied")

    monkeypatch.setattr(log_writer, "Board", refuse)
    said = typed.refused(evaluate.main, f"--run_dir={run_dir}", "--episodes=1")
    assert said == f"{run_dir} cannot be written: {run_dir}/events; Permission denied."
