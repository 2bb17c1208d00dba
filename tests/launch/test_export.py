"""The command that writes a policy."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from analysis.playing import saved_model
from analysis.playing.evaluation import Player
from launch import export
from run_folder.settings import SettingsError
from tests.commands import Commands
from tests.launch import typed
from tests.run_folder import saved_runs


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """R2D2 and IMPALA on catch, saved twice."""
    folder = tmp_path_factory.mktemp("runs") / "catch"
    saved_runs.save(folder, "r2d2,impala", steps=(3, 7))
    return folder


def test_a_policy_is_written_below_the_run_and_none_is_overwritten(
    run_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r2d2-3", "r2d2-3-2"):
        assert typed.run(export.main, f"--run_dir={run_dir}", "--checkpoint=3") == 0
        assert capsys.readouterr().out == f"r2d2, update 3: {run_dir}/exports/{name}\n"
        assert (run_dir / "exports" / name / "saved_model.pb").exists()


def test_a_policy_is_written_where_it_is_wanted_without_a_word_of_tensorflows(
    run_dir: pathlib.Path, tmp_path: pathlib.Path, commands: Commands
) -> None:
    folder = tmp_path / "policies" / "catch"
    how = ("--agent=impala", f"--export_dir={folder}")
    ended = commands.run("launch.export", f"--run_dir={run_dir}", *how)
    assert (ended.code, ended.err) == (0, "")
    policy = tf.saved_model.load(str(folder))
    action, _ = policy.step(
        np.zeros((2, 10, 5), np.uint8),
        np.zeros(2, np.float32),
        np.ones(2, bool),
        policy.initial_state(2),
    )
    assert action.shape == (2,)


def test_a_small_run_folder_is_written_where_it_is_wanted(
    run_dir: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = ("--agent=impala", "--as_run", f"--export_dir={tmp_path}/small")
    assert typed.run(export.main, f"--run_dir={run_dir}", *how) == 0
    assert capsys.readouterr().out == f"impala, update 7: {tmp_path}/small\n"
    assert (tmp_path / "small" / "checkpoints" / "best-impala.npz").exists()


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--export_dir="], "--export_dir must name a new folder, got ''."),
        (
            ["--as_run", "--export_dir=x", "--epsilon=0.1"],
            "--epsilon is for who plays what --as_run writes: leave it out.",
        ),
        (["--as_run"], "--as_run writes a run folder: name it with --export_dir."),
        (["--export_dir=/"], "--export_dir must name a new folder, got '/'."),
        (["--export_dir=/proc/policy"], "/proc/policy cannot be written: "),
    ],
)
def test_bad_input_is_one_sentence(run_dir: pathlib.Path, argv: list[str], sentence: str) -> None:
    assert sentence in typed.refused(export.main, f"--run_dir={run_dir}", *argv)


def test_an_agent_that_no_graph_can_hold_is_one_sentence(
    run_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(player: Player, folder: pathlib.Path) -> None:
        raise SettingsError(f"{player.agent.name} cannot be exported: why.")

    monkeypatch.setattr(saved_model, "write", write)
    said = typed.refused(export.main, f"--run_dir={run_dir}")
    assert said == "r2d2 cannot be exported: why."


def test_a_damaged_checkpoint_is_one_sentence(tmp_path: pathlib.Path) -> None:
    saved_runs.save(tmp_path / "run")
    (data,) = (tmp_path / "run" / "checkpoints").rglob("7.data*")
    data.write_bytes(data.read_bytes()[:-1])
    said = typed.refused(export.main, f"--run_dir={tmp_path / 'run'}")
    assert "The checkpoint is corrupt: " in said
