"""The study of returns: its task, its arms, its table."""

import numpy as np
import pytest

from benchmarks import returns, training
from benchmarks.returns import ARMS, RUNS, SEEDS, SMALL, STEPS, Result


def test_the_walk_is_paid_to_its_end_and_other_steps_end_it() -> None:
    walk = returns.cliff()
    walk.reset()
    way = [int(action) for action in walk._way]
    total = 0.0
    for action in way:
        step = walk.step(action)
        total += step.reward
    assert step.last()
    assert total == pytest.approx(0.1 * STEPS)
    assert (walk.step(0).reward, walk.step(1 + way[0] % 3).reward) == (0.0, -1.0)
    np.testing.assert_array_equal(walk.reset().observation, np.eye(STEPS)[0])


def test_a_table_is_of_the_arms_whose_seeds_are_all_there() -> None:
    results = {
        run: Result(1, float(run.seed), 0.0)
        for run in RUNS[SMALL]
        if run.arm == "watkins" or run.seed != SEEDS[-1]
    }
    assert returns.table(results, "final_return").splitlines()[2:] == [
        "| `watkins` | 2.00 ± 2.48 |"
    ]


@pytest.mark.slow
def test_every_arm_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returns, "UPDATES", 2)
    monkeypatch.setattr(training, "EVALUATION_EPISODES", 4)
    for run in RUNS[SMALL][: len(ARMS)]:
        assert returns.train_small(run).steps > 0
