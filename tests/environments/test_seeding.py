"""Seeds of environments: apart from one another, and a matter of the common seed alone."""

import numpy as np

from environments.copies import vector


def test_seeds_differ_within_and_across_neighbouring_runs() -> None:
    seeds = np.concatenate([vector.spread(seed, 256) for seed in range(20)])
    assert len(set(seeds)) == len(seeds)
    assert seeds.min() >= 0
    assert seeds.max() < 2**31


def test_seeds_depend_on_the_common_seed_only() -> None:
    np.testing.assert_array_equal(vector.spread(3, 8), vector.spread(3, 256)[:8])
