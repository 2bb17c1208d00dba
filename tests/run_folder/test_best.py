"""The parameters of the best evaluation: written, read, damaged, and of other sizes."""

import pathlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from run_folder import best
from run_folder.checkpoints import DamagedError, OtherSizesError

# More than ten, whose order is not that of their names.
PARAMETERS = [np.full((i % 3, 2), i, np.float32) for i in range(12)]
BEST = best.Best(1.5, 7, 700, 3.25, PARAMETERS)


def _network(*shapes: tuple[int, ...]) -> Any:
    return SimpleNamespace(variables=[tf.Variable(tf.zeros(shape)) for shape in shapes])


def _check_same(found: best.Best | None) -> None:
    assert found is not None
    for name in ("score", "learner_step", "actor_steps", "walltime"):
        assert getattr(found, name) == getattr(BEST, name)
    for x, y in zip(found.parameters, PARAMETERS, strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_is_written_is_read_of_its_agent(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "checkpoints"
    assert best.read(folder, "r2d2") is None
    best.write(folder, "impala", best.Best(9.0, 1, 1, 1.0, []))
    assert best.read(folder, "r2d2") is None
    best.write(folder, "r2d2", best.Best(9.0, 1, 1, 1.0, []))
    best.write(folder, "r2d2", BEST)
    _check_same(best.read(folder, "r2d2"))
    assert {file.name for file in folder.iterdir()} == {"best-r2d2.npz", "best-impala.npz"}


def test_a_damaged_file_is_never_taken_for_another(tmp_path: pathlib.Path) -> None:
    best.write(tmp_path, "r2d2", BEST)
    path = tmp_path / best.file_name("r2d2")
    whole = path.read_bytes()

    def is_refused(content: bytes) -> bool:
        path.write_bytes(content)
        try:
            _check_same(best.read(tmp_path, "r2d2"))
        except DamagedError:
            return True
        return False  # the archive says some things to nobody

    flipped = (
        whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :] for i in range(0, len(whole), 23)
    )
    assert any(list(map(is_refused, flipped)))
    assert all(is_refused(whole[:i]) for i in range(0, len(whole), 97))
    assert is_refused(b"[]")
    path.unlink()
    path.mkdir()
    with pytest.raises(DamagedError, match=r"best-r2d2.npz: Is a directory\.$"):
        best.read(tmp_path, "r2d2")


def test_a_network_gets_them_all_or_none() -> None:
    network = _network((2,), (3, 4))
    values = [np.ones(2, np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)]
    best.assign(best.Best(0.0, 0, 0, 0.0, values), network)
    for variable, value in zip(network.variables, values, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    for other in (_network((2,), (4, 3)), _network((2,)), _network((2,), (3, 4), ())):
        with pytest.raises(OtherSizesError, match=r"must be \[\(2,\).*got \[\(2,\), \(3, 4\)\]"):
            best.assign(best.Best(0.0, 0, 0, 0.0, values), other)
        assert all((variable.numpy() == 0).all() for variable in other.variables)
