"""Without LLVM nothing is compiled, and one line says so."""

import pathlib
import subprocess
import sys

import pytest

from tensor_ops import llvm, vector_code
from tests.rooms import modules

ROOT = pathlib.Path(__file__).resolve().parents[2]

SAID = "No loops are compiled for this processor ({}): TensorFlow's operations stand in for them"


def test_a_processor_that_llvm_does_not_know_has_no_vectors_and_no_tiles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown() -> None:
        raise RuntimeError("LLVM could not determine CPU features.")

    monkeypatch.setattr(llvm.binding, "get_host_cpu_features", unknown)
    caches = (llvm.features, vector_code.lanes, vector_code.multiplies_tiles)
    for cache in caches:
        cache.cache_clear()
    try:
        assert (vector_code.lanes(), vector_code.has_tiles()) == (0, False)
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(SAID.format("LLVM could not determine CPU features"))
    finally:
        for cache in caches:
            cache.cache_clear()


def test_networks_are_imported_where_there_is_no_llvmlite() -> None:
    """The modules of loops here, which need no TensorFlow; nothing else knows of llvmlite."""
    files = [path for path in modules(ROOT) if path.parts[0] != "tests"]
    assert [str(path) for path in files if "import llvmlite" in (ROOT / path).read_text()] == [
        "tensor_ops/llvm.py"
    ]
    names = [f"tensor_ops.{path.stem}" for path in _loops()]
    assert "tensor_ops.winograd_code" in names
    program = (
        "import sys; sys.modules['llvmlite'] = None\n"
        f"import {', '.join(names)}\n"
        "from tensor_ops import vector_code\n"
        "assert (vector_code.lanes(), vector_code.has_tiles()) == (0, False)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith(
        SAID.format("No module named 'llvmlite.binding'; 'llvmlite' is not a package")
    )


def _loops() -> list[pathlib.Path]:
    return sorted((ROOT / "tensor_ops").glob("*_code.py"))
