"""Torsos: shapes, sizes, scaling of pixels, refusals."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from agents.networks.torsos import ResidualBlock, ResidualSection, StridedSection, make_torso
from tests.tensor_ops.vectors import lanes


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [
        ("dqn", (72, 96, 3), 5 * 8 * 64),
        ("dqn", (36, 36, 1), 64),
        ("shallow", (20, 20, 1), 256),
        ("resnet", (5, 3, 2), 256),
        ("strided", (20, 9, 3), 3 * 2 * 32),
        ("mlp", (10, 5), 9),
    ],
)
def test_output_sizes(kind: str, shape: tuple[int, ...], size: int) -> None:
    torso = make_torso(kind, hidden_sizes=(6, 9))
    assert torso(np.ones((2, *shape), np.uint8)).shape == (2, size)


def test_the_torso_of_control_from_pixels_is_that_of_table_2() -> None:
    """Zahavy et al. 2020: thrice a strided convolution and two with a skip; nothing is pooled."""
    torso = make_torso("strided")
    torso(np.zeros((1, 8, 8, 3), np.float32))
    weights = [v.shape.as_list() for v in torso.trainable_variables if v.shape.rank == 4]
    assert sorted(weights) == [[3, 3, 3, 32]] + [[3, 3, 32, 32]] * 8
    assert len(torso.trainable_variables) == 2 * 9


def test_a_strided_section_by_hand() -> None:
    section = StridedSection(4)
    x = np.random.default_rng(0).normal(size=(2, 5, 6, 3)).astype(np.float32)
    y = section(x)
    assert y.shape == (2, 3, 3, 4)
    halved = tf.nn.conv2d(x, section._convolution._w, 2, "SAME")
    first, second = section._block._convolutions
    inside = tf.nn.conv2d(tf.nn.relu(halved), first._w, 1, "SAME")
    added = tf.nn.conv2d(tf.nn.relu(inside), second._w, 1, "SAME")
    np.testing.assert_allclose(y, halved + added, atol=1e-5)


@pytest.mark.parametrize("kind", ["dqn", "mlp"])
def test_bytes_are_scaled_to_one_and_floats_left_alone(kind: str) -> None:
    torso = make_torso(kind, hidden_sizes=(8,))
    image = np.random.default_rng(0).integers(256, size=(2, 40, 40, 2), dtype=np.uint8)
    np.testing.assert_allclose(torso(image), torso(image / np.float32(255)), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "shape", "sentence"),
    [
        ("dqn", (35, 84, 4), r"36 x 36 pixels, got observations of shape \(2, 35, 84, 4\)"),
        ("dqn", (84, 35, 4), r"at least 36 x 36"),
        ("shallow", (19, 84, 4), r"at least 20 x 20"),
        ("resnet", (7,), r"got observations of shape \(2, 7\)"),
    ],
)
def test_observations_that_do_not_fit_are_refused(
    kind: str, shape: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_torso(kind)(np.zeros((2, *shape), np.uint8))


def test_a_residual_section_without_blocks_is_a_max_over_3_x_3_with_stride_2() -> None:
    """Blocks with zero weights pass their input on; the first convolution here copies its image."""
    section = ResidualSection(1)
    image = np.random.default_rng(0).normal(size=(1, 5, 7, 1)).astype(np.float32)
    section(image)
    for variable in section.trainable_variables:
        variable.assign(tf.zeros_like(variable))
    copy = np.zeros((3, 3, 1, 1), np.float32)
    copy[1, 1] = 1
    (kernel,) = [v for v in section._convolution.trainable_variables if v.shape.rank == 4]
    kernel.assign(copy)
    padded = np.pad(image[0, :, :, 0], 1, constant_values=-np.inf)
    expected = [[padded[y : y + 3, x : x + 3].max() for x in (0, 2, 4, 6)] for y in (0, 2, 4)]
    np.testing.assert_allclose(section(image)[0, :, :, 0], expected)


def test_a_residual_block_rectifies_before_each_convolution() -> None:
    block = ResidualBlock(1)
    block(tf.zeros([1, 1, 1, 1]))
    for variable in block.trainable_variables:  # 1 x 1 images meet the kernels' centres alone
        variable.assign(tf.ones_like(variable) * (2.0 if variable.shape.rank == 4 else -1.0))
    for x, expected in [(-3.0, -3.0 - 1.0), (0.25, 0.25 - 1.0), (2.0, 2.0 + 2.0 * 3.0 - 1.0)]:
        assert float(block(tf.fill([1, 1, 1, 1], x))[0, 0, 0, 0]) == expected


@pytest.mark.parametrize(
    ("kind", "size"), [("dqn", 16), ("shallow", 0), ("resnet", 16), ("strided", 0), ("mlp", 16)]
)
def test_every_layer_takes_the_precision_that_it_is_given(kind: str, size: int) -> None:
    torso = make_torso(kind, hidden_sizes=(8, 8), dtype=tf.bfloat16)
    image = tf.zeros([1, 40, 40, 2], tf.uint8)
    with lanes(size):
        assert torso(image).dtype == tf.bfloat16
        operations = tf.function(torso).get_concrete_function(image).graph.get_operations()
    # In loops all is float32, weights that are transformed for them too; images are not.
    loops = [op for op in operations if op.type == "PyFunc"]
    products = [op for op in operations if op.type in ("Conv2D", "MatMul")]
    convolutions = {"resnet": 14, "strided": 6}.get(kind, 0) if size else 0
    pools = 3 if size and kind == "resnet" else 0
    assert len(loops) == convolutions + pools
    expected = {"dqn": 3, "shallow": 3, "resnet": 16, "strided": 9, "mlp": 2}[kind]
    assert len(products) == expected
    of_weights = [op for op in products if op.outputs[0].dtype == tf.float32]
    assert len(of_weights) == convolutions
    assert {op.outputs[0].dtype for op in [*loops, *products]} - {tf.float32} == {tf.bfloat16}
    assert all(op.outputs[0].dtype == tf.bfloat16 for op in loops)
    assert all(v.dtype == tf.float32 for v in torso.trainable_variables)


OWN = """
import sonnet as snt
import tensorflow as tf

class Flat(snt.Module):
    def __call__(self, observation):
        assert observation.dtype == tf.float32
        return snt.flatten(observation)

class Whole(snt.Module):
    def __call__(self, observation):
        return observation

class Raises(snt.Module):
    def __call__(self, observation):
        raise RuntimeError("too dark")

class Unmade(snt.Module):
    def __init__(self, size):
        super().__init__()

def flat():
    return Flat()

def keras():
    return tf.keras.Sequential([tf.keras.layers.Flatten()])

def keras_dense():
    return tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(5, "tanh")])

SIZE = 3
"""


@pytest.fixture
def own(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torsos_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("name", ["Flat", "flat", "keras"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_a_torso_of_ones_own_sees_fractions_and_gives_vectors(
    own: None, name: str, dtype: tf.DType
) -> None:
    torso = make_torso(f"torsos_of_a_test:{name}", dtype=dtype)
    images = np.full((2, 3, 4, 1), 51, np.uint8)
    vectors = torso(images)
    assert (vectors.shape, vectors.dtype) == ((2, 12), dtype)
    np.testing.assert_allclose(tf.cast(vectors, tf.float32), 0.2, rtol=1e-2)


def test_a_keras_model_learns_and_is_saved(own: None, tmp_path: pathlib.Path) -> None:
    observation = np.arange(6, dtype=np.float32).reshape(2, 3)
    torso, again = (make_torso("torsos_of_a_test:keras_dense") for _ in range(2))
    with tf.GradientTape() as tape:
        vectors = torso(observation)
    again(observation)
    assert [v.shape for v in torso.trainable_variables] == [(3, 5), (5,)]
    assert all(g is not None for g in tape.gradient(vectors, torso.trainable_variables))
    prefix = tf.train.Checkpoint(torso=torso).write(str(tmp_path / "torso"))
    tf.train.Checkpoint(torso=again).read(prefix).assert_consumed()
    np.testing.assert_array_equal(again(observation), vectors)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no_such_module:Torso", "a torso such as my_package.torsos:Torso.*no module"),
        ("torsos_of_a_test:SIZE", r"torsos_of_a_test:SIZE\(\) raised TypeError"),
        ("torsos_of_a_test:Unmade", r"Unmade\(\) raised TypeError.*'size'"),
        ("os:getcwd", "os:getcwd must be the class of a Sonnet module .*it made a str"),
    ],
)
def test_what_makes_no_torso_is_refused(own: None, path: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_torso(path)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Raises", r"raised RuntimeError for observations of shape \(2, 3, 4\): too dark"),
        ("Whole", r"shape \(2, 3, 4\) into a floating tensor \[B, D\], got float32 of shape"),
    ],
)
def test_a_torso_of_ones_own_that_gives_no_vectors_is_named(
    own: None, name: str, said: str
) -> None:
    torso = make_torso(f"torsos_of_a_test:{name}")
    with pytest.raises(ValueError, match=f"torsos_of_a_test:{name} .*{said}"):
        torso(np.zeros((2, 3, 4), np.float32))
