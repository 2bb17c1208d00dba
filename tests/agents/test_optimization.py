"""RMSProp against Sonnet's and a loop; annealing, clipping, optimizers whose variables exist."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from agents.optimization import (
    Adam,
    RMSProp,
    Slots,
    annealed,
    clip_by_global_norm,
    create_slots,
    rmsprop_step,
)


@pytest.mark.parametrize("final", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("num_steps", [4, 4.5])
def test_a_line_that_ends_and_stays_there(final: float, num_steps: float) -> None:
    for step in range(8):
        done = step / num_steps if step < num_steps else 1.0
        rate = annealed(0.5, final, tf.constant(step, tf.int64), num_steps)
        assert float(rate) == pytest.approx((1.0 - done) * 0.5 + done * final)


def test_every_one_of_many_steps_lowers_the_rate() -> None:
    """Beyond 2^24, above which float32 has not every integer."""
    steps = tf.constant([2**24, 2**24 + 1], tf.int64)
    rates = [annealed(1.0, 0.0, step, 2**24 + 2) for step in steps]
    assert rates[1] == rates[0] / 2


@pytest.mark.parametrize(("limit", "scale"), [(2.5, 0.5), (5.0, 1.0), (80.0, 1.0), (None, 1.0)])
def test_clipping_by_the_common_norm(limit: float | None, scale: float) -> None:
    gradients, norm = clip_by_global_norm([tf.constant([3.0]), tf.constant([[4.0]])], limit)
    assert float(norm) == 5.0
    np.testing.assert_allclose([float(g) for g in gradients], [3.0 * scale, 4.0 * scale])


TRACED = functools.partial(tf.function, autograph=False)
SHAPES = ((), (1,), (3, 2))
OPTIONS = dict(decay=0.9, momentum=0.6, epsilon=0.1)


def _arrays(seed: int, dtype: type = np.float32) -> list[np.ndarray]:
    """One of each shape, with small and large elements."""
    rng = np.random.default_rng(seed)
    return [
        (rng.normal(size=shape) * 10.0 ** rng.integers(-2, 2)).astype(dtype) for shape in SHAPES
    ]


def _sonnets(parameters: list[tf.Variable], learning_rate: float) -> snt.optimizers.RMSProp:
    """With the mean square from 1."""
    optimizer = snt.optimizers.RMSProp(learning_rate, **OPTIONS)
    create_slots(optimizer, parameters)
    for square in optimizer.ms:
        square.assign(tf.ones_like(square))
    return optimizer


@pytest.mark.parametrize("wrap", [lambda f: f, TRACED], ids=["eager", "traced"])
def test_a_hundred_steps_of_rmsprop_are_sonnets(wrap: Callable) -> None:
    ours, theirs = ([tf.Variable(x) for x in _arrays(0)] for _ in range(2))
    optimizer, sonnets = RMSProp(ours, **OPTIONS), _sonnets(theirs, 0.01)

    @wrap
    def step(gradients: list[tf.Tensor]) -> None:
        optimizer.apply(gradients, ours, 0.01)
        sonnets.apply(gradients, theirs)

    for seed in range(1, 101):
        step([tf.constant(x) for x in _arrays(seed)])
    pairs = zip(
        [*ours, *optimizer.mom, *optimizer.ms], [*theirs, *sonnets.mom, *sonnets.ms], strict=True
    )
    for x, y in pairs:
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)
    assert max(np.abs(x - y).max() for x, y in zip(_arrays(0), ours, strict=True)) > 0.1


@pytest.mark.parametrize("wrap", [lambda f: f, TRACED], ids=["eager", "traced"])
@pytest.mark.parametrize("epsilon", [1e-8, 0.1])
def test_a_hundred_steps_of_adam_are_sonnets(epsilon: float, wrap: Callable) -> None:
    """Of some parameters, of some rows of another, and not of one that has no gradient."""
    ours, theirs = ([tf.Variable(x) for x in [*_arrays(0), _arrays(0)[2]]] for _ in range(2))
    options = dict(learning_rate=0.01, beta1=0.8, beta2=0.95, epsilon=epsilon)
    optimizers = Adam(**options), snt.optimizers.Adam(**options)

    @wrap
    def step(gradients: list[tf.Tensor], of_rows: tf.Tensor) -> None:
        for optimizer, parameters in zip(optimizers, (ours, theirs), strict=True):
            # All rows are given: of others Sonnet leaves the momentum out.
            slices = tf.IndexedSlices(of_rows, tf.range(3), tf.constant([3, 2]))
            optimizer.apply([*gradients[:2], slices, None], parameters)

    for seed in range(1, 101):
        *gradients, of_rows = (tf.constant(x) for x in _arrays(seed))
        step(gradients, of_rows)
    assert optimizers[0].step == 100
    variables = [(*p, *o.m, *o.v) for p, o in zip((ours, theirs), optimizers, strict=True)]
    for x, y in zip(*variables, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(ours[3], _arrays(0)[2])
    assert max(np.abs(x - y).max() for x, y in zip(_arrays(0), ours[:3], strict=True)) > 0.1


def test_a_gradient_of_some_rows_is_one_of_zeros_elsewhere() -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([2, 2]), tf.constant([3, 1]))
    results = []
    for gradient in (slices, tf.constant([[0.0], [0.0], [3.0]])):
        parameters = [tf.Variable(tf.ones([3, 1]))]
        optimizer = RMSProp(parameters, **OPTIONS)
        optimizer.apply([gradient], parameters, 0.1)
        results.append([v.numpy() for v in (*parameters, *optimizer.variables)])
    for x, y in zip(*results, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["gradient", "learning_rate", "decay", "momentum", "epsilon"])
def test_a_step_of_rmsprop_can_be_differentiated(name: str) -> None:
    """As in a metagradient: by what the gradients depend on, against central differences."""
    point = {"gradient": 1.3, "learning_rate": 0.1, **OPTIONS}
    arrays = [[tf.constant(x) for x in _arrays(seed, np.float64)] for seed in range(4)]
    parameters, gradients, squares, moves = arrays

    def total(x: tf.Tensor) -> tf.Tensor:
        values = {**point, name: x}
        scale = values.pop("gradient")
        new, slots = rmsprop_step(
            parameters,
            [scale * g for g in gradients],
            Slots([tf.square(s) for s in squares], moves),
            **values,
        )
        return tf.add_n([tf.reduce_sum(tf.sin(y)) for y in (*new, *slots.momentum)])

    x = tf.constant(point[name], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = total(x)
    derivative = float(tape.gradient(y, x))
    difference = float(total(x + 1e-5) - total(x - 1e-5)) / 2e-5
    assert derivative == pytest.approx(difference, rel=1e-6)
    assert abs(derivative) > 1e-4


def test_a_checkpoint_of_sonnets_rmsprop_is_read(tmp_path: Path) -> None:
    """Runs begun with it go on."""
    parameters = [tf.Variable(x) for x in _arrays(0)]
    sonnets = _sonnets(parameters, 0.01)
    sonnets.apply([tf.constant(x) for x in _arrays(1)], parameters)
    path = tf.train.Checkpoint(optimizer=sonnets).write(str(tmp_path / "optimizer"))
    optimizer = RMSProp(parameters, **OPTIONS)
    tf.train.Checkpoint(optimizer=optimizer).read(path).assert_consumed()
    for x, y in zip([*sonnets.mom, *sonnets.ms], [*optimizer.mom, *optimizer.ms], strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_checkpoint_of_sonnets_adam_is_read(tmp_path: Path) -> None:
    parameters = [tf.Variable(x) for x in _arrays(0)]
    sonnets, ours = snt.optimizers.Adam(0.01), Adam(0.01)
    sonnets.apply([tf.constant(x) for x in _arrays(1)], parameters)
    create_slots(ours, [tf.Variable(x) for x in _arrays(0)])
    path = tf.train.Checkpoint(optimizer=sonnets).write(str(tmp_path / "optimizer"))
    tf.train.Checkpoint(optimizer=ours).read(path).assert_consumed()
    pairs = zip([sonnets.step, *sonnets.m, *sonnets.v], [ours.step, *ours.m, *ours.v], strict=True)
    for x, y in pairs:
        np.testing.assert_array_equal(x, y)
    assert ours.step == 1
