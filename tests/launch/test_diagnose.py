"""The command measures, prints and leaves tables and pictures behind, or refuses."""

import pathlib

import numpy as np
import pytest
from matplotlib import image

from analysis.playing import evaluation
from launch import diagnose
from run_folder import settings
from tests.launch import typed
from tests.rows import rows
from tests.run_folder import saved_runs

TASK = "memory:cartpole"  # whose episodes are longer than the steps from one item to the next


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """R2D2, its feed-forward variant and IMPALA, saved twice."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    # Untrained, an episode ends early: few would be longer than the preset's sequences.
    short = {"length": "16", "period": "8"}
    saved_runs.save(folder, "r2d2,r2d2_feedforward,impala", TASK, steps=(3, 7), overrides=short)
    return folder


def test_every_snapshot_and_strategy_has_its_discrepancy(
    run_dir: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("--analyses=discrepancy", "--burn_ins=2,0", "--sequences=3")
    assert typed.run(diagnose.main, f"--run_dir={run_dir}", *argv) == 0
    path = run_dir / "diagnostics" / "discrepancy-r2d2"
    assert f"{path}.csv" in capsys.readouterr().out
    table = rows(path.with_suffix(".csv"))
    strategies = [(start, burn_in) for start in ("zero", "stored") for burn_in in ("0", "2")]
    assert [(r["parameter_lag"], r["start"], r["burn_in"]) for r in table] == [
        (lag, *strategy) for lag in ("0", "4") for strategy in strategies
    ]
    assert {row["task"] for row in table} == {TASK}
    # An untrained policy's episodes are short: few of them have a sequence in their midst.
    assert all(1 <= int(row["sequences"]) <= 3 for row in table)
    for row in table:
        # With the very parameters that acted it is exact, and where nothing was unrolled yet.
        exact = row["start"] == "stored" and row["parameter_lag"] == "0"
        at_first = exact or (row["start"], row["burn_in"]) == ("stored", "0")
        for statistic in ("mean", "median"):
            assert (float(row[f"first_{statistic}"]) < 1e-5) == at_first, row
            assert (float(row[f"last_{statistic}"]) < 1e-5) == exact, row
    assert image.imread(path.with_suffix(".png")).std() > 0.05


def test_more_memory_is_never_further_from_all_of_it(run_dir: pathlib.Path) -> None:
    argv = ("--analyses=memory", "--memories=600,1", "--memory_episodes=3", "--seed=1")
    assert typed.run(diagnose.main, f"--run_dir={run_dir}", *argv) == 0
    path = run_dir / "diagnostics" / "memory-r2d2"
    one, longer, every = rows(path.with_suffix(".csv"))
    assert [row["memory_steps"] for row in (one, longer, every)] == ["1", "600", ""]
    assert float(one["q_difference"]) > 1e-3
    for row in (longer, every):  # of at most 500 steps
        assert float(row["greedy_match"]) == 1
        assert float(row["q_difference"]) < 1e-4
        assert row["episode_return"] == every["episode_return"]
    player = evaluation.load(settings.load(run_dir), "r2d2", seed=1)
    returns = [episode.episode_return for episode in evaluation.play(player, TASK, 3)]
    assert float(every["episode_return"]) == pytest.approx(np.mean(returns))
    assert image.imread(path.with_suffix(".png")).std() > 0.05


def test_what_a_run_has_nothing_for_is_told_and_the_rest_is_done(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Catch has short episodes, and this run no log."""
    run = saved_runs.save(tmp_path / "run", env="catch")
    argv = (f"--run_dir={run.path}", "--memories=1", "--memory_episodes=1")
    assert typed.run(diagnose.main, *argv) == 0
    printed = capsys.readouterr().out
    assert "discrepancy: catch: All " in printed
    assert "lag: " in printed
    assert "neither logged a parameter lag" in printed
    written = sorted(file.name for file in (run.path / "diagnostics").iterdir())
    assert written == ["memory-r2d2.csv", "memory-r2d2.png"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (
            ["--analyses=lag,lags"],
            "--analyses names 'lags', but there are discrepancy, lag, memory",
        ),
        (["--run_dir="], "--run_dir must be given."),
        (["--agent=impala", "--analyses=discrepancy"], "compares action values, and impala learns"),
        (["--agent=impala", "--analyses=memory"], "--analyses=memory compares action values"),
        (["--agent=r2d2_feedforward", "--analyses=memory"], "and r2d2_feedforward is feed-forward"),
        (["--analyses=lag"], "neither logged a parameter lag nor saved a replay"),
        (
            ["--burn_ins=4,-1"],
            "--burn_ins must be whole numbers from 0 to 10,000 with commas between",
        ),
        (
            ["--memories=0,4"],
            "--memories must be whole numbers from 1 to 10,000 with commas between",
        ),
        (["--memories=1,two"], "got '1,two'"),
        ([f"--memories=1,1{'0' * 400}"], "from 1 to 10,000 with commas between them"),
        (["--memory_episodes=100000000"], "--memory_episodes=100000000"),
        (["--sequences=9223372036854775808"], "--sequences=9223372036854775808"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    run_dir: pathlib.Path, argv: list[str], sentence: str
) -> None:
    assert sentence in typed.refused(diagnose.main, f"--run_dir={run_dir}", *argv)


def test_a_run_must_be_saved(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "run", steps=())
    said = typed.refused(diagnose.main, f"--run_dir={run.path}")
    assert "holds no checkpoint of r2d2 yet" in said
