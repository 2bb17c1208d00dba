"""Trainings in one process: the runs of their studies, the tables."""

import itertools
import math

import pytest

from benchmarks import corrections, self_tuning, training
from benchmarks.training import Grid


def test_a_table_and_a_plot_are_of_means_over_seeds() -> None:
    results = {
        corrections.Run("b", correction, replay, 0, seed): corrections.Result(
            1, 10.0 * i + replay + seed, 0.0
        )
        for (i, correction), replay, seed in itertools.product(
            enumerate(corrections.CORRECTIONS), (0.0, 0.5), range(3)
        )
    }
    lines = {name: dict(correction=name) for name in ("vtrace", "none")}
    columns = {f"{replay:.0%}": dict(task="b", replay=replay) for replay in (0.0, 0.5)}
    # Seeds 0, 1 and 2: their mean is 1, s is 1, and t is 4.303 at two degrees.
    margin = f"{4.303 / math.sqrt(3):.2f}"
    assert Grid("b, replay", lines, columns).table(results, "final_return").splitlines() == [
        "| b, replay | 0% | 50% |",
        "|---|---|---|",
        f"| vtrace | 1.00 ± {margin} | 1.50 ± {margin} |",
        f"| none | 31.00 ± {margin} | 31.50 ± {margin} |",
    ]


def test_each_run_of_self_tuning_differs_from_a_plain_one_in_one_thing() -> None:
    for run in self_tuning.RUNS:
        plain = self_tuning.plain(run.agent)
        changed = [name for name, value in plain.items() if getattr(run, name) != value]
        assert len(changed) <= 1, run


@pytest.mark.slow
def test_impala_is_stac_with_nothing_self_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_tuning, "UPDATES", 2)
    monkeypatch.setattr(training, "EVALUATION_EPISODES", 4)
    plain, tuned = (
        self_tuning.train(self_tuning.Run(**self_tuning.plain(agent), seed=0))
        for agent in ("impala", "stacx")
    )
    assert math.isnan(plain.gamma)
    assert math.isnan(plain.auxiliary_alpha)
    assert tuned.gamma == pytest.approx(0.99, abs=1e-3)
    assert tuned.auxiliary_alpha == pytest.approx(0.99, abs=1e-3)
    assert plain.steps == tuned.steps > 0
