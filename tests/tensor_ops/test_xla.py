"""XLA's flags, and the knowledge that a trace is compiled by it."""

import os
import pathlib
import subprocess
import sys
import threading
from concurrent import futures

import pytest
import tensorflow as tf

from tensor_ops.xla import silence, within_xla, xla_flags
from tests.patience import PATIENCE


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_traced_knows_whether_it_is_compiled(compiled: bool) -> None:
    seen = [within_xla()]

    @tf.function
    def part() -> tf.Tensor:
        seen.append(within_xla())
        return tf.zeros([])

    tf.function(part, jit_compile=compiled)()
    assert seen == [False, compiled]


_QUIET = """
import tensorflow as tf
from tensor_ops import xla
assert xla.compiled(tf.exp)(tf.zeros([3])).shape == 3
"""


def test_what_it_says_of_itself_is_said_to_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _QUIET],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_that_are_silent_at_a_time_are_heard_again() -> None:
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    before = os.fstat(2)

    def first() -> None:
        with silence():
            first_in.set()
            second_in.wait(0.2)  # it would come, and leave last
        first_out.set()

    def second() -> None:
        assert first_in.wait(PATIENCE)
        with silence():
            second_in.set()
            assert first_out.wait(PATIENCE)

    with futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result()
    assert os.path.samestat(os.fstat(2), before)


def test_flags_that_were_given_are_kept() -> None:
    assert "--xla_gpu_force_conv_nhwc=true" in xla_flags("").split()
    given = "--xla_gpu_force_conv_nhwc=false --xla_dump_to=/tmp/x"
    assert xla_flags(given) == given


def test_cuda_is_found_where_its_wheel_is(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia/cuda_nvcc/bin").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert f"--xla_gpu_cuda_data_dir={tmp_path}/nvidia/cuda_nvcc" in xla_flags("").split()
    own = "--xla_gpu_cuda_data_dir=/opt/cuda"
    assert xla_flags(own).split().count(own) == 1
    assert "nvidia" not in xla_flags(own)
