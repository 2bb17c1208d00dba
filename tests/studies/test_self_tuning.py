"""The study of STACX in small: which runs there are, what they settle, and its tables."""

import math
import pathlib

import pytest

from studies import records, self_tuning
from studies.self_tuning import Result, Run


def test_each_run_is_made_once_and_differs_from_a_plain_one_in_one_thing() -> None:
    runs = self_tuning.runs()
    assert len(set(runs)) == len(runs)
    for run in runs:
        plain = self_tuning._plain(run.agent, run.seed)
        changed = [name for name in Run._fields if getattr(run, name) != getattr(plain, name)]
        assert len(changed) <= 1, run


def test_the_file_holds_every_run_of_the_study_and_no_other() -> None:
    assert set(records.read(self_tuning.DATA, Run, Result)) == set(self_tuning.runs())


def test_tables_hold_means_over_seeds(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "runs.csv"
    for run in self_tuning.runs():
        value = run.discount + run.seed + 10 * (run.agent == "stacx")
        records.append(path, run, Result(1, value, -value, *[math.nan] * 4))
    results = records.read(path, Run, Result)
    discount, baseline, replay, subsets, _ = self_tuning.tables(results, "final_return")
    # Seeds 0, 1 and 2: their mean is 1, s is 1, and t is 4.303 at two degrees.
    margin = f"{4.303 / math.sqrt(3):.2f}"
    assert discount.splitlines() == [
        "| discount | 0.9 | 0.99 | 0.999 |",
        "| --- | --- | --- | --- |",
        f"| impala | 1.90 ± {margin} | 1.99 ± {margin} | 2.00 ± {margin} |",
        f"| stacx | 11.90 ± {margin} | 11.99 ± {margin} | 12.00 ± {margin} |",
    ]
    assert len(baseline.splitlines()) == len(replay.splitlines()) == 4
    assert [line.split(" | ")[0] for line in subsets.splitlines()[2:]] == [
        "| none",
        "| gamma",
        "| gamma, lambda",
        "| g_v, g_p, g_e",
        "| gamma, lambda, g_v, g_p, g_e",
        "| gamma, lambda, g_v, g_p, g_e, alpha",
    ]
    self_tuning.draw(results, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_impala_is_stac_with_nothing_self_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_tuning, "UPDATES", 2)
    monkeypatch.setattr(self_tuning.training, "EVALUATION_EPISODES", 4)
    plain = self_tuning.train(self_tuning._plain("impala", 0))
    tuned = self_tuning.train(self_tuning._plain("stacx", 0))
    assert math.isnan(plain.gamma)
    assert math.isnan(plain.auxiliary_alpha)
    assert tuned.gamma == pytest.approx(0.99, abs=1e-3)
    assert tuned.auxiliary_alpha == pytest.approx(0.99, abs=1e-3)
    assert plain.steps == tuned.steps > 0
