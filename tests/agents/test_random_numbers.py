"""Random floats: their distribution, and the same ones by operation and compiled by XLA."""

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from agents.random_numbers import categorical, normal, uniform

Draw = Callable[[tf.random.Generator], tf.Tensor]
DRAWS: dict[str, Draw] = {
    "uniform": lambda generator: uniform(generator, [1000]),
    "normal": lambda generator: normal(generator, [1000]),
    "categorical": lambda generator: categorical(generator, tf.zeros([1000, 5])),
}


@pytest.mark.parametrize("name", DRAWS)
def test_xla_draws_the_same_and_no_draw_is_repeated(name: str) -> None:
    def draws(compiled: bool) -> np.ndarray:
        generator = tf.random.Generator.from_seed(7)
        draw = tf.function(lambda: DRAWS[name](generator), jit_compile=compiled)
        return np.stack([draw() for _ in range(3)])

    plain = draws(False)
    np.testing.assert_allclose(draws(True), plain, rtol=1e-5, atol=1e-6)
    assert (plain[0] != plain[1]).mean() > 0.5
    assert (plain[1] != plain[2]).mean() > 0.5


def test_uniform_numbers_reach_neither_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = tf.random.Generator.from_seed(0)
    drawn = uniform(generator, [100_000]).numpy()
    np.testing.assert_allclose(np.histogram(drawn, 10, (0, 1))[0] / 100_000, 0.1, atol=0.005)
    ends = tf.constant([0, 2**23 - 1])
    monkeypatch.setattr(generator, "uniform", lambda *_, **__: ends)
    least, most = uniform(generator, [2]).numpy()
    assert 0 < least < 1e-7
    assert 1 > most > 1 - 1e-7
    assert np.isfinite(normal(generator, [2])).all()


def test_normal_numbers_are() -> None:
    drawn = normal(tf.random.Generator.from_seed(0), [50, 2000]).numpy()
    assert drawn.mean() == pytest.approx(0, abs=0.02)
    assert drawn.std() == pytest.approx(1, abs=0.02)
    assert (np.abs(drawn) < 1).mean() == pytest.approx(0.6827, abs=0.01)
    assert (drawn > 2).mean() == pytest.approx(0.0228, abs=0.003)


def test_categorical_numbers_come_as_often_as_their_chance() -> None:
    chances = np.array([0.7, 0.1, 0.0, 0.2], np.float32)
    with np.errstate(divide="ignore"):
        logits = np.tile(np.log(chances) + 3.0, (40_000, 1))
    drawn = categorical(tf.random.Generator.from_seed(0), logits)
    assert drawn.dtype == tf.int32
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 40_000, chances, atol=0.01)
    assert not (drawn.numpy() == 2).any()
