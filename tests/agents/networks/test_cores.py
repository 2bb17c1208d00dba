"""Cores: against Sonnet's and naive loops in numpy, with resets and invalid rows anywhere."""

import math
import pathlib
import re
import sys
from typing import Any

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf
import tree

from agents.networks import cores
from agents.networks.core import LSTM, Core, NoMemory, make_core
from agents.networks.named import CORES
from tests.docs.pages import ROOT

T, B, D, H = 11, 3, 4, 5  # scans have four rounds, the last of them incomplete
FORGET_BIAS = 2.5
OWN = "sonnet:VanillaRNN"
OTHERS = [kind for kind in CORES if kind != "lstm"]
ALL = pytest.mark.parametrize("kind", [*OTHERS, OWN])


def _make(kind: str, dtype: tf.DType = tf.float32) -> Any:
    """A core with its variables, of which none is at its initial value."""
    tf.random.set_seed(0)
    core: Any = make_core(H, dtype, kind, FORGET_BIAS)
    core.step(tf.zeros([1, D]), core.initial_state(1))
    for variable in core.trainable_variables:
        variable.assign_add(0.3 * tf.random.normal(variable.shape))
    return core


def _inputs(seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=(T, B, D)), tf.float32)


def _state(core: Core, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return tree.map_structure(
        lambda x: tf.constant(rng.normal(size=x.shape), tf.float32), core.initial_state(B)
    )


def _flags(seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Resets and valid rows, `[T, B]`: with all four pairs of the two, and a reset at first."""
    rng = np.random.default_rng(seed)
    reset, valid = rng.random((T, B)) < 0.3, rng.random((T, B)) < 0.7
    assert {*zip(reset.flat, valid.flat, strict=True)} == {*np.ndindex(2, 2)}
    assert set((reset & valid)[0]) == {False, True}
    return reset, valid


def _where(condition: np.ndarray, x: Any, y: Any) -> Any:
    return tree.map_structure(
        lambda a, b: tf.where(condition.reshape(-1, *[1] * (b.shape.rank - 1)), a, b), x, y
    )


def _stepped(
    core: Core, inputs: tf.Tensor, state: Any, reset: Any, valid: Any
) -> tuple[tf.Tensor, Any]:
    """The actors' way: step by step."""
    outputs = []
    for t, x in enumerate(inputs):
        zeros = tree.map_structure(tf.zeros_like, state)
        state = _where((reset & valid)[t], zeros, state)
        output, after = core.step(x, state)
        state = _where(valid[t], after, state)
        outputs.append(output)
    return tf.stack(outputs), state


def _learned(core: Any, unroll: Any, flags: Any) -> list[Any]:
    """Outputs, state, and the gradients of a function of both."""
    inputs, state, (reset, valid) = _inputs(), _state(core), flags
    leaves = tree.flatten(state)
    with tf.GradientTape() as tape:
        tape.watch([inputs, *leaves])
        outputs, after = unroll(inputs, state, reset, valid)
        outputs = tf.where(valid[..., None], outputs, tf.zeros_like(outputs))
        loss = tf.reduce_sum(tf.sin(outputs))
        loss += tf.add_n([tf.reduce_sum(tf.cos(x + 1)) for x in tree.flatten(after)])
    sources = [inputs, *leaves, *core.trainable_variables]
    return [outputs, *tree.flatten(after), *tape.gradient(loss, sources)]


def _assert_close(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    for a, b in zip(tree.flatten(x), tree.flatten(y), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("kind", [*CORES, OWN])
@pytest.mark.parametrize("how", ["eager", "graph", "xla"])
def test_an_unroll_equals_steps(kind: str, how: str) -> None:
    """Outputs, state and all gradients: with a reset on the first row, invalid and valid ones."""
    core, flags = _make(kind), _flags()
    expected = _learned(core, lambda *given: _stepped(core, *given), flags)
    wrap = dict(
        eager=lambda f: f,
        graph=lambda f: tf.function(f, autograph=False),
        xla=lambda f: tf.function(f, autograph=False, jit_compile=True),
    )[how]
    constants = tuple(map(tf.constant, flags))
    actual = wrap(lambda: _learned(core, core.unroll, constants))()
    _assert_close(actual, expected)
    assert all(np.abs(x).max() > 1e-3 for x in expected)


@ALL
def test_two_unrolls_in_a_row_are_one(kind: str) -> None:
    """Also of a single row, as the one to bootstrap from."""
    core, (reset, valid) = _make(kind), map(tf.constant, _flags())
    inputs, state = _inputs(), _state(core)
    expected, last = core.unroll(inputs, state, reset, valid)
    outputs = []
    for rows in (slice(0, 6), slice(6, T - 1), slice(T - 1, T)):
        found, state = core.unroll(inputs[rows], state, reset[rows], valid[rows])
        outputs.append(found)
    _assert_close([tf.concat(outputs, 0), state], [expected, last])


@ALL
@pytest.mark.parametrize("batch", [None, 1])
def test_its_shapes_are_known_when_it_is_traced(kind: str, batch: int | None) -> None:
    """Of any batch, and of items of one."""
    core = _make(kind)
    state = tree.map_structure(
        lambda x: tf.TensorSpec([batch, *x.shape[1:]], x.dtype), core.initial_state(1)
    )
    flags = tf.TensorSpec([T, batch], tf.bool)
    traced = tf.function(core.unroll, autograph=False).get_concrete_function(
        tf.TensorSpec([T, batch, D]), state, flags, flags
    )
    outputs, after = traced.structured_outputs
    assert outputs.shape.as_list()[::2] == [T, H]
    assert [x.shape[1:] for x in tree.flatten(after)] == [x.shape[1:] for x in tree.flatten(state)]


@ALL
@pytest.mark.parametrize("compiled", [False, True])
def test_it_can_be_differentiated_twice(kind: str, compiled: bool) -> None:
    """As STAC does: the way back from the outputs, differentiated by what weights them."""
    core, flags = _make(kind), _flags()
    valid = flags[1]

    def metagradient(unroll: Any) -> list[tf.Tensor]:
        weight = tf.constant(0.7)
        with tf.GradientTape() as outer:
            outer.watch(weight)
            with tf.GradientTape() as tape:
                outputs, _ = unroll(_inputs(), _state(core), *flags)
                outputs = tf.where(valid[..., None], outputs, tf.zeros_like(outputs))
                loss = tf.reduce_sum(tf.sin(weight * outputs))
            gradients = tape.gradient(loss, core.trainable_variables)
            total = tf.add_n([tf.reduce_sum(tf.square(g)) for g in gradients])
        return [outer.gradient(total, weight)]

    run = tf.function(metagradient, autograph=False, jit_compile=compiled)
    expected = metagradient(lambda *given: _stepped(core, *given))
    constants = map(tf.constant, flags)
    actual = run(lambda x, state, *_: core.unroll(x, state, *constants))
    _assert_close(actual, expected, 1e-4, 1e-4)
    assert abs(expected[0]) > 1e-3


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _weights(core: Any) -> dict[str, np.ndarray]:
    """A core's own, and those of its layers, by attribute."""
    layers = dict(own=core, **{n: m for n, m in vars(core).items() if isinstance(m, snt.Module)})
    return {
        f"{layer}.{name}".removeprefix("own."): value.numpy().astype(np.float64)
        for layer, module in layers.items()
        for name, value in vars(module).items()
        if isinstance(value, tf.Variable)
    }


def _naive_mingru(w: dict[str, np.ndarray], u: np.ndarray, state: Any) -> tuple[Any, Any]:
    gate, candidate = np.split(u @ w["_inputs._w"] + w["_inputs._b"], 2)
    z = _sigmoid(gate - FORGET_BIAS)
    h = (1 - z) * state[0] + z * candidate
    return h, [h]


def _naive_lru(w: dict[str, np.ndarray], u: np.ndarray, state: Any) -> tuple[Any, Any]:
    v = u @ w["_encoder._w"] + w["_encoder._b"]
    n = (v - v.mean()) / np.sqrt(v.var() + 1e-5) * w["_norm.scale"] + w["_norm.offset"]
    lambda_ = np.exp(-np.exp(w["_nu"]) + 1j * np.exp(w["_theta"]))
    b, c = w["_b"][:, :H] + 1j * w["_b"][:, H:], w["_c"][:H] - 1j * w["_c"][H:]
    x = lambda_ * (state[0] + 1j * state[1]) + np.exp(w["_gamma"]) * (n @ b)
    y = (x @ c).real + w["_d"] * n
    erf = np.vectorize(math.erf)
    g = y * 0.5 * (1 + erf(y / np.sqrt(2)))
    linear, gate = np.split(g @ w["_gated._w"] + w["_gated._b"], 2)
    return v + linear * _sigmoid(gate), [x.real, x.imag]


@pytest.mark.parametrize(("kind", "naive"), [("mingru", _naive_mingru), ("lru", _naive_lru)])
def test_its_equations_are_the_papers(kind: str, naive: Any) -> None:
    core, (reset, valid) = _make(kind), _flags()
    weights, inputs = _weights(core), _inputs().numpy().astype(np.float64)
    outputs, after = core.unroll(_inputs(), _state(core), *map(tf.constant, (reset, valid)))
    for b in range(B):
        state = [x[b].numpy().astype(np.float64) for x in tree.flatten(_state(core))]
        for t in range(T):
            if not valid[t, b]:
                continue
            if reset[t, b]:
                state = [0 * x for x in state]
            output, state = naive(weights, inputs[t, b], state)
            np.testing.assert_allclose(outputs[t, b], output, rtol=1e-4, atol=1e-5)
        _assert_close([x[b] for x in tree.flatten(after)], state, 1e-4, 1e-4)


def test_the_lstm_is_sonnets() -> None:
    core, sonnets = LSTM(H), snt.LSTM(H)
    core.step(tf.zeros([1, D]), core.initial_state(1))
    sonnets(tf.zeros([1, D]), sonnets.initial_state(1))
    ours = {v.name: v for v in core.trainable_variables}
    theirs = {v.name: v for v in sonnets.trainable_variables}
    np.testing.assert_array_equal(ours["lstm/bias:0"], theirs["lstm/b:0"])  # forget bias 1
    for mine, name in [("w_input", "w_i"), ("w_hidden", "w_h"), ("bias", "b")]:
        noise = tf.random.normal(ours[f"lstm/{mine}:0"].shape)
        ours[f"lstm/{mine}:0"].assign(noise)
        theirs[f"lstm/{name}:0"].assign(noise)
    state = expected_state = _state(core)
    for x in _inputs():
        output, state = core.step(x, state)
        expected, expected_state = sonnets(x, expected_state)
        _assert_close([output, state], [expected, expected_state], atol=1e-6)


def test_initial_weights_have_sonnets_scale() -> None:
    core = LSTM(100)
    core.step(tf.zeros([1, 400]), core.initial_state(1))
    deviation = {v.name: np.std(v.numpy()) for v in core.trainable_variables}
    # A normal distribution cut off at two standard deviations has 0.88 of its deviation left.
    assert deviation["lstm/w_input:0"] == pytest.approx(0.88 / 20, rel=0.02)
    assert deviation["lstm/w_hidden:0"] == pytest.approx(0.88 / 10, rel=0.02)


def test_no_memory_passes_its_inputs_on() -> None:
    core = make_core(0)
    assert isinstance(core, NoMemory)
    assert core.initial_state(B) == ()
    np.testing.assert_array_equal(core.step(_inputs()[0], ())[0], _inputs()[0])
    outputs, state = core.unroll(_inputs(), (), np.ones((T, B), bool), np.zeros((T, B), bool))
    np.testing.assert_array_equal(outputs, _inputs())
    assert state == ()


def test_the_gru_is_sonnets() -> None:
    core, sonnets = _make("gru"), snt.GRU(H)
    sonnets(tf.zeros([1, D]), sonnets.initial_state(1))
    ours = _weights(core)
    sonnets._w_i.assign(ours["_inputs._w"])
    sonnets._w_h.assign(np.concatenate([ours["_w_gates"], ours["_w_candidate"]], axis=1))
    sonnets.b.assign(ours["_inputs._b"])
    state = expected_state = _state(core)
    for x in _inputs():
        output, state = core.step(x, state)
        expected, expected_state = sonnets(x, expected_state)
        _assert_close([output, state], [expected, expected_state])


def test_an_lrus_units_begin_on_the_ring() -> None:
    tf.random.set_seed(0)
    core = cores.LRU(2_000)
    w = _weights(core)
    radius = np.exp(-np.exp(w["_nu"]))
    assert radius.min() >= cores.R_MIN - 1e-6
    assert radius.max() <= cores.R_MAX + 1e-6
    # Uniform on the ring: as many within any radius as the area there has of the whole.
    middle = np.sqrt((cores.R_MIN**2 + cores.R_MAX**2) / 2)
    assert np.mean(radius < middle) == pytest.approx(0.5, abs=0.05)
    np.testing.assert_allclose(np.exp(w["_gamma"]), np.sqrt(1 - radius**2), rtol=1e-3)
    phase = np.exp(w["_theta"])
    assert phase.max() <= cores.MAX_PHASE
    assert np.mean(phase) == pytest.approx(cores.MAX_PHASE / 2, rel=0.05)


@pytest.mark.parametrize("kind", OTHERS)
def test_bfloat16_rounds_the_inputs_products_alone(kind: str) -> None:
    exact, rounded = _make(kind), _make(kind, tf.bfloat16)
    flags = [tf.zeros([T, B], tf.bool), tf.ones([T, B], tf.bool)]
    expected, _ = exact.unroll(_inputs(), _state(exact), *flags)
    actual, after = rounded.unroll(tf.cast(_inputs(), tf.bfloat16), _state(exact), *flags)
    assert {x.dtype for x in [actual, *tree.flatten(after)]} == {tf.float32}
    difference = np.abs(actual - expected).max()
    assert 1e-5 < difference < 0.2


class _Core(snt.Module):
    """A core that does as it is told."""

    def __init__(self, initial: Any = None, made: Any = None, error: Exception | None = None):
        super().__init__()
        self._initial, self._made, self._error = initial, made, error

    def initial_state(self, batch_size: int) -> Any:
        return tf.zeros([batch_size, 2]) if self._initial is None else self._initial

    def __call__(self, inputs: tf.Tensor, state: Any) -> Any:
        if self._error is not None:
            raise self._error
        return (inputs, state) if self._made is None else self._made


@pytest.mark.parametrize(
    ("initial", "got"),
    [
        (tf.ones([2, 3]), r"float32 of shape \(2, 3\) that is not zero"),
        (tf.zeros([2, 3], tf.float64), r"float64 of shape \(2, 3\)"),
        (tf.zeros([3]), r"float32 of shape \(3,\)"),
        (tf.zeros([]), r"float32 of shape \(\)"),
        ([1, None], "a int, a NoneType"),
        ((), "nothing"),
    ],
)
def test_an_initial_state_that_cannot_be_reset_to_is_refused(initial: Any, got: str) -> None:
    with pytest.raises(ValueError, match=rf"my:Core: initial_state\(2\) must give zeros .*{got}"):
        cores.OwnCore(_Core(initial), "my:Core")


@pytest.mark.parametrize(
    ("core", "sentence"),
    [
        (_Core(error=KeyError("w")), r"my:Core raised KeyError for inputs of shape \(2, 4\): 'w'"),
        (_Core(made=tf.zeros([2, 4])), r"must give a pair .*got float32 of shape \(2, 4\)"),
        (_Core(made=(tf.zeros([2, 4, 1]), ())), r"outputs \[B, O\] .*float32 of shape \(2, 4, 1\)"),
        (_Core(made=(tf.zeros([2, 4], tf.float64), ())), r"got float64 of shape \(2, 4\)"),
        (_Core(made=(tf.zeros([2, 4]), tf.zeros([2, 3]))), r"state such as it .*shape \(2, 3\)"),
        (_Core(made=(tf.zeros([2, 4]), ())), "state such as it was given, float32 .*, got nothing"),
    ],
)
def test_what_an_own_core_must_not_give_is_told(core: Any, sentence: str) -> None:
    own = cores.OwnCore(core, "my:Core")
    with pytest.raises(ValueError, match=sentence):
        own.step(tf.zeros([2, D]), own.initial_state(2))


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("sonnet:Linear", r"sonnet:Linear must be .* initial_state\(batch_size\) .*made a Linear"),
        ("sonnet:VanilaRNN", "no 'VanilaRNN', did you mean 'VanillaRNN'?"),
        ("no_such_package:Core", "no module 'no_such_package'"),
        ("sonnet:Conv2D", r"sonnet:Conv2D\(5\) raised TypeError"),
    ],
)
def test_a_core_that_cannot_be_had_is_refused(kind: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_core(H, kind=kind)


def test_an_own_core_may_have_any_structure_of_states() -> None:
    """`snt.LSTM` is one with two parts, `snt.DeepRNN` one with a part for each layer."""
    core = cores.OwnCore(snt.DeepRNN([snt.LSTM(2), snt.GRU(H)]), "my:Core")
    core.step(tf.zeros([1, D]), core.initial_state(1))
    flags = _flags()
    actual = _learned(core, core.unroll, tuple(map(tf.constant, flags)))
    _assert_close(actual, _learned(core, lambda *given: _stepped(core, *given), flags))


def test_an_lstm_or_none_loads_no_other_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agents.networks.cores")
    make_core(H)
    make_core(0, kind="gru")
    assert "agents.networks.cores" not in sys.modules


def test_the_pages_core_can_be_had(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "cores.md").read_text(), re.DOTALL
    )
    (tmp_path / "cores_of_a_page.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    core = make_core(H, kind="cores_of_a_page:Average")
    flags = [tf.zeros([T, B], tf.bool), tf.ones([T, B], tf.bool)]
    outputs, state = core.unroll(_inputs(), _state(core), *flags)
    _assert_close(outputs[-1], state)
