"""Scores: the papers' own aggregates out of their own tables."""

import math

import numpy as np
import pytest

from environments import atari, scores


def _normalised(agent: str, names: tuple[str, ...]) -> list[float]:
    found = [scores.human_normalised(name, scores.SCORES[name][agent]) for name in names]
    assert None not in found
    return [score for score in found if score is not None]


@pytest.mark.parametrize(
    ("agent", "median", "mean"),
    [
        ("r2d2", 19.206, 40.249),
        ("apex", 4.341, None),
        ("impala_deep", 1.918, 9.576),
        ("reactor", 1.870, None),
    ],
)
def test_atari57_as_published(agent: str, median: float, mean: float | None) -> None:
    """Kapturowski et al. 2019, Table 1."""
    result = scores.aggregate(_normalised(agent, scores.ATARI57))
    assert result.median == pytest.approx(median, rel=0.002)
    if mean is not None:
        assert result.mean == pytest.approx(mean, rel=0.002)


@pytest.mark.parametrize(
    ("agent", "mean_capped"),
    [
        ("impala_experts_2018", 0.445),
        ("impala_2018", 0.494),
        ("impala_shallow", 0.736),
        ("impala_deep", 0.851),
        ("r2d2", 0.783),
        ("r2d2_plus", 0.857),
    ],
)
def test_dmlab30_as_published(agent: str, mean_capped: float) -> None:
    """Espeholt et al. 2018, Appendix B, and Kapturowski et al. 2019, Table 1."""
    normalised = _normalised(agent, scores.DMLAB30)
    assert scores.aggregate(normalised).mean_capped == pytest.approx(mean_capped, abs=0.001)
    assert max(normalised) > 1 > min(normalised)  # the cap matters


def test_the_suites() -> None:
    assert len(scores.ATARI57) == len(set(scores.ATARI57)) == 57
    assert set(scores.ATARI57) <= {f"atari:{game}" for game in atari.games()}
    assert len(scores.DMLAB30) == len(set(scores.DMLAB30)) == 30
    assert len(scores.SCORES) == 87
    for row in scores.SCORES.values():
        assert row["human"] > row["random"]
        assert np.isfinite(list(row.values())).all()


def test_random_play_is_0_and_human_play_is_1() -> None:
    for name, row in scores.SCORES.items():
        assert scores.human_normalised(name, row["random"]) == 0
        assert scores.human_normalised(name, row["human"]) == 1
    assert scores.human_normalised("atari:pong", 21.0) == pytest.approx(41.7 / 35.3)


def test_a_training_level_has_the_scores_of_its_held_out_twin() -> None:
    assert set(scores.DMLAB30) - set(scores.DMLAB30_TRAINING) == set(scores.HELD_OUT.values())
    assert scores.human_normalised("dmlab:rooms_collect_good_objects_train", 10.0) == 1
    assert scores.human_normalised("dmlab:rooms_exploit_deferred_effects_train", 8.5) == 0


@pytest.mark.parametrize("name", ["catch", "pong", "atari:adventure", "atari57"])
def test_nothing_is_said_where_no_human_score_is_known(name: str) -> None:
    assert scores.human_normalised(name, 1.0) is None


def test_aggregate() -> None:
    assert scores.aggregate([0.5, 3.0, -1.0, 0.7]) == pytest.approx((0.6, 0.8, 0.3))
    assert scores.aggregate([2.0]) == (2, 2, 1)
    assert all(math.isnan(value) for value in scores.aggregate([1.0, math.nan]))
    with pytest.raises(ValueError, match="at least one task is needed, got none"):
        scores.aggregate([])
