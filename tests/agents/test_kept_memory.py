"""A process that learns keeps the memory that TensorFlow frees: pages are cleared once."""

import os
import subprocess
import sys

from launch.graph import program

_VARIABLE = "TF_CPU_ALLOCATOR_USE_BFC"
_PAGES = 64 * 2**20 // 4096  # of one result
_PR_SET_THP_DISABLE = 41  # of the kernel

_SCRIPT = f"""
import ctypes
import resource
import r2d2
import tensorflow as tf

# A huge page, which some kernels give unasked, would be one fault for 512 pages.
ctypes.CDLL(None).prctl({_PR_SET_THP_DISABLE}, 1, 0, 0, 0)
x = tf.zeros([{_PAGES}, 1024])
add = tf.function(lambda x: (x + 1.0) * tf.reduce_sum(x))

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(2):
    add(x)
before = faults()
for _ in range(4):
    add(x)
print(faults() - before)
"""


def _faults(**variables: str) -> int:
    """Pages that four equal computations asked the kernel for, after two others."""
    environment = {key: value for key, value in os.environ.items() if key != _VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_freed_memory_is_used_again_where_nobody_said_otherwise() -> None:
    for onednn in "01":
        assert _faults(TF_ENABLE_ONEDNN_OPTS=onednn) < _PAGES / 4
    # oneDNN would keep it anyway. This shows that the count can tell.
    assert _faults(**{_VARIABLE: "false", "TF_ENABLE_ONEDNN_OPTS": "0"}) > 4 * _PAGES


def test_of_a_run_only_learners_keep_it() -> None:
    for group in ("actor", "evaluator", "replay", "coordinator"):
        assert program.environment_of(group)[_VARIABLE] == "false"
    assert _VARIABLE not in program.environment_of("learner")
