"""Trainings of the page of results: what is kept of them, and what is said."""

import contextlib
import csv
import json
import os
import pathlib
import subprocess
import sys
import types
from collections.abc import Mapping, Sequence

import matplotlib.image
import numpy as np
import pytest

from agents.environment_loop import Episode
from analysis.playing.files import File, Played
from benchmarks import memory_tasks, results, results_runs, study
from benchmarks.results_runs import BSUITE, CONTROL, MEMORY, RIVAL, STUDIES, Minute
from benchmarks.study import Episodes, Evaluation, Run
from r2d2.config import VARIANTS
from r2d2.policy import epsilon_ladder
from run_folder import disk, launches
from run_folder.launches import Launch
from run_folder.layout import RunFolder

COMMIT = "c0ffee"
COLUMNS = ("task", "walltime", "actor_steps", "episode_return", "actor")


@pytest.mark.parametrize("name", STUDIES)
def test_each_training_of_a_study_has_a_folder_of_its_own(name: str) -> None:
    runs = STUDIES[name].runs
    assert len({results_runs.folder_of(pathlib.Path("runs"), run) for run in runs}) == len(runs)
    assert {run.arm for run in runs} <= set(results_runs.ARMS)


def test_returns_are_of_actors_that_hardly_explore() -> None:
    own = VARIANTS["r2d2"]
    actors = np.arange(results_runs.NUM_ACTORS)
    epsilons = epsilon_ladder(actors, len(actors), own.epsilon_base, own.epsilon_alpha)
    assert [i for i, epsilon in enumerate(epsilons) if epsilon < 0.01] == list(results_runs.GREEDY)


def test_episodes_are_kept_by_minute(tmp_path: pathlib.Path) -> None:
    log, rivals = RunFolder(tmp_path).log("episodes"), tmp_path / "rivals"
    rows = [(10, 100, 3, 15), (20, 200, -9, 0), (50, 300, 5, 9), (119, 900, 8, 12)]
    log.parent.mkdir()
    for path, lines in (
        (log, [COLUMNS, *(("t", *row) for row in rows)]),
        (rivals, [COLUMNS[1:], *rows]),
    ):
        with path.open("w") as file:
            csv.writer(file).writerows(lines)
    by_arm = {run.arm: run for run in STUDIES[MEMORY].runs}
    run, rival = by_arm["r2d2"], by_arm["recurrent_ppo"]
    assert list(results_runs.minutes_of(tmp_path, MEMORY, run)) == [
        (Minute(*run, 0), Episodes(200.0, 4.0)),  # of actors 9 to 15
        (Minute(*run, 1), Episodes(900.0, 8.0)),
    ]
    for found in (
        results_runs.minutes_of(rivals, MEMORY, rival),
        results_runs.minutes_of(tmp_path, CONTROL, STUDIES[CONTROL].runs[0]),
    ):
        (first, of_all), (second, of_last) = found
        assert (first.minute, second.minute) == (0, 1)
        assert of_all == pytest.approx((200.0, -1 / 3))
        assert of_last == (900.0, 8.0)


_disk_write = disk.write


class _Cut:
    """A study of two arms on catch whose files are written so many times, and then no more."""

    def __init__(self, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.trained, self._writes = folder, list[list[str]](), 0
        runs = [Run("catch", arm, seed) for seed in results_runs.SEEDS for arm in ("r2d2", RIVAL)]
        monkeypatch.setattr(results_runs, "STUDIES", {"cut": results_runs.Study(2.0, runs)})
        monkeypatch.setattr(results_runs, "DOCS", folder)
        monkeypatch.setattr(study, "train", self._train)
        monkeypatch.setattr(study, "evaluate", lambda *_: Evaluation(800, 0.5, 0.1))
        monkeypatch.setattr(study, "run", self._export)
        monkeypatch.setattr(results_runs, "POLICIES", folder / "policies")
        monkeypatch.setattr(subprocess, "run", self._rival)
        monkeypatch.setattr(results_runs, "random_returns", lambda *_: np.array([0.0, 1.0]))
        monkeypatch.setattr(launches, "commit", lambda: COMMIT)
        monkeypatch.setattr(
            launches, "read", lambda path: [Launch("", path.name, 0, 0.0, "", COMMIT)]
        )
        monkeypatch.setattr(disk, "write", self._write)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})

    def complete(self, writes: int) -> dict[str, str]:
        """Begins, or goes on; the files of data that there are then."""
        self._writes = writes
        with contextlib.suppress(KeyboardInterrupt):
            results_runs.complete(self.folder / "runs", "cut", None, "python-of-rival")
        return {path.name: path.read_text() for path in (self.folder / "data").glob("*")}

    def _write(self, path: pathlib.Path, text: str) -> None:
        if not self._writes:
            raise KeyboardInterrupt
        self._writes -= 1
        _disk_write(path, text)

    def _rival(self, command: Sequence[str], *, check: bool) -> None:
        assert check
        alone = (*study.TIED, "taskset", "--cpu-list", "0")
        assert command[:8] == (*alone, "python-of-rival", "-m")
        told = json.loads(command[-1])
        self.trained.append(["rival", str(told["seed"])])
        _episodes(pathlib.Path(told["log"]), skipped=1)

    def _train(
        self, path: pathlib.Path, flags: Sequence[str], minutes: float, _: Sequence[str]
    ) -> None:
        assert minutes == 2.0
        if not path.exists():  # else it has had its minutes
            self.trained.append([flag for flag in flags if "seed" in flag])
            _episodes(RunFolder(path).log("episodes"))

    def _export(self, command: Sequence[str], minutes: float | None) -> None:
        asked = [f"--run_dir={self.folder}/runs/catch_r2d2_1", "--checkpoint=latest", "--as_run"]
        kept = self.folder / "policies" / "catch_r2d2"
        assert command == ["launch.export", *asked, f"--export_dir={kept}"]
        kept.mkdir(parents=True)


def _episodes(log: pathlib.Path, skipped: int = 0) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    rows = [COLUMNS, *(("t", second, 10 * second, second / 7, 9) for second in (1, 61, 121))]
    with log.open("w") as file:
        csv.writer(file).writerows(row[skipped:] for row in rows)


def test_a_study_that_is_cut_anywhere_ends_with_the_same_files_and_trains_nothing_twice(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _Cut(tmp_path / "whole", monkeypatch)
    files = whole.complete(writes=99)
    assert sorted(files) == ["cut_curves.csv", "cut_returns.csv", "cut_runs.csv"]
    assert len(whole.trained) == 6
    assert files["cut_curves.csv"].count("\n") == 1 + 6 * 2  # the third minute is beyond the end
    assert files["cut_returns.csv"].count("\n") == 1 + 3 + 1
    assert files["cut_runs.csv"].count(COMMIT) == 6
    assert (whole.folder / "policies" / "catch_r2d2").exists()
    cut = _Cut(tmp_path / "cut", monkeypatch)
    for writes in (1, 2, 3) * 7:
        found = cut.complete(writes)
    assert sorted(cut.trained) == sorted(whole.trained)
    for name, text in files.items():
        same = found[name].replace("/cut/", "/whole/").splitlines()
        assert sorted(same) == sorted(text.splitlines())


def test_a_training_of_which_a_part_is_written_is_on_no_page(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_runs, "DOCS", tmp_path)
    first, *_, second = (run for run in STUDIES[MEMORY].runs if run.seed == 1)
    assert first.task != second.task
    for run in (first, second):
        study.extend(
            results_runs.data(MEMORY, "curves"), {Minute(*run, 0): Episodes(1.0, run.seed)}
        )
    made = results_runs.Made(COMMIT, "machine", "command")
    study.extend(results_runs.data(MEMORY, "runs"), {first: made})
    assert list(results.read(MEMORY)) == [first]
    assert results.table(MEMORY).count("\n") == 2


@pytest.mark.parametrize(
    ("arm", "task", "python", "said"),
    [
        ("r2d2", "catsh", "none", "'catsh'"),
        (RIVAL, "catch", "none", "--peer_python=none must have what .* No such file"),
        (RIVAL, "catch", "false", "--peer_python=false must have what .* non-zero exit"),
        (RIVAL, "catch", "true", None),
        ("r2d2", "catch", "none", None),
    ],
)
def test_what_a_study_needs_is_told_before_hours_of_training(
    arm: str,
    task: str,
    python: str,
    said: str | None,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(results_runs, "DOCS", tmp_path)
    monkeypatch.setattr(
        results_runs, "STUDIES", {"one": results_runs.Study(1.0, [Run(task, arm, 1)])}
    )
    with contextlib.ExitStack() as stack:
        if said is not None:
            stack.enter_context(pytest.raises(ValueError, match=said))
        results_runs.check("one", python)


def _answers(folder: pathlib.Path, wrong: Mapping[str, float]) -> None:
    """Evaluations of bsuite's tasks, by the experiment's name."""
    made = {
        run: Evaluation(1, 1 - 2 * share, 0.0)
        for run in STUDIES[BSUITE].runs
        for name, share in wrong.items()
        if name in run.task and run.arm == "r2d2"
    }
    study.extend(folder / "data" / "bsuite_returns.csv", made)


def test_a_task_of_bsuite_is_solved_below_three_quarters_of_a_random_policys_errors(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_runs, "DOCS", tmp_path)
    assert len(results_runs.LENGTHS) == 23
    assert len(results_runs.SIZES) == 17
    _answers(tmp_path, {"memory_len": 0.37, "memory_size": 0.38})
    assert "| `memory_len` | R2D2 | 1.00 | 100 of 100 |" in results.bsuite_table()
    assert "| `memory_size` | R2D2 | 0.00 | 0 of 40 |" in results.bsuite_table()
    _answers(tmp_path, {"memory_len_100": 0.4, "memory_len_90": 0.5, "memory_size_1": 0.1})
    assert "| `memory_len` | R2D2 | 0.91 | 80 of 100 |" in results.bsuite_table()
    assert "RecurrentPPO" not in results.bsuite_table()
    results.draw_bsuite(tmp_path / "bsuite.png")
    assert matplotlib.image.imread(tmp_path / "bsuite.png").std() > 0.05


def test_bsuites_names_are_of_its_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = types.SimpleNamespace(load_from_id=lambda name: name)
    monkeypatch.setitem(sys.modules, "bsuite", fake)
    named = {"memory_len_1": 0, "memory_len_17": 12, "memory_len_100": 22, "memory_size_40": 16}
    for name, number in named.items():
        made = getattr(memory_tasks, name)()
        assert made == f"{name.rpartition('_')[0]}/{number}"
    for name in ("memory_len_11", "memory_len_", "memory_size_50", "memory_x_1"):
        with pytest.raises(AttributeError, match=f"has no {name}"):
            getattr(memory_tasks, name)


def test_what_bsuite_counts_is_an_agents_first_episodes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = next(run for run in STUDIES[BSUITE].runs if run.task.endswith("memory_len_9"))
    assert results_runs.steps_of(run.task) == 10_016 * 10
    assert results_runs.steps_of("benchmarks.memory_tasks:memory_size_9") == 10_016 * 3
    assert results_runs.steps_of("catch") is None
    _episodes(RunFolder(tmp_path).log("episodes"))  # of returns 1 / 7, 61 / 7 and 121 / 7
    assert results_runs.counted(tmp_path, run).evaluated == pytest.approx(61 / 7)
    monkeypatch.setattr(results_runs, "BSUITE_EPISODES", 2)
    counted = results_runs.counted(tmp_path, run)
    assert counted.actor_steps == 610
    assert counted.evaluated == pytest.approx(31 / 7)


def test_policies_are_listed_by_what_they_returned_when_they_were_kept(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "POLICIES", tmp_path)
    assert results.policies_table() == "None yet."
    folder = tmp_path / "catch_r2d2"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.json").touch()
    (folder / "checkpoints" / "best-r2d2.npz").write_bytes(bytes(30_000))
    played = Played("r2d2", 7, 4_000, 60.0, 0.0, None, 0)
    for value in (0.5, -1.0):  # the second is of somebody who has played it since
        File(folder, played).append("catch", [Episode(0, value, 9)] * 2)
    row = "| `catch_r2d2` | 0.50 [0.50, 0.50] | 2 | 0.03 MB |"
    assert results.policies_table().splitlines()[2:] == [row]


def test_random_actions_are_played_to_their_end_and_again_alike() -> None:
    returns = results_runs.random_returns("gym:CartPole-v1", 4)
    assert ((returns >= 8) & (returns < 200)).all()
    assert returns.max() >= 2 * returns.min()  # one that is over is not given what others are
    np.testing.assert_array_equal(returns, results_runs.random_returns("gym:CartPole-v1", 4))
