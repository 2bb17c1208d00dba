"""Every block of Python on a page runs as it stands, on a small run where it reads one."""

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from analysis.playing import evaluation, saved_model
from tests.docs import pages
from tests.run_folder import saved_runs

pytestmark = pytest.mark.repository


def _blocks(page: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


BLOCKS = {
    f"{page.stem}-{number}": code
    for page in pages.PAGES
    for number, code in enumerate(_blocks(page))
    if page.name not in ("README.md", "scripts.md")  # test_scripts runs those in their order
}


def _run() -> None:
    saved_runs.save(pathlib.Path("runs/catch"))


def _cartpole() -> None:
    run = saved_runs.save(pathlib.Path("runs/cartpole"), "r2d2", "gym:CartPole-v1")
    saved_model.write(evaluation.load(run), pathlib.Path("exported/cartpole"))


READ: dict[str, Callable[[], None]] = {
    "evaluation-0": _run,
    "export-0": _cartpole,
    "library-1": _run,
    "python-1": _cartpole,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_runs(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name in READ:
        READ[name]()
    exec(compile(BLOCKS[name], name, "exec"), {"__name__": name})


OF_THE_LIBRARY = """
import sys
assert not any(name.split(".")[0] == "launch" for name in sys.modules)
assert isinstance(agent, acme.core.Actor) and isinstance(agent, acme.core.VariableSource)
assert isinstance(agent.learner, acme.core.Learner)
print("updates:", agent.learner.learner_steps)
"""
# `tests/r2d2` too learns in a minute what the block learns.
FEWER = {"range(8)": "range(2)", "range(100)": "range(10)", "_size=100": "_size=10"}


def test_the_readmes_block_tells_what_it_learns_and_leaves_what_it_says(
    tmp_path: pathlib.Path,
) -> None:
    (code,) = _blocks(pages.README)
    assert len(code.splitlines()) < 25
    for written, fewer in FEWER.items():
        assert code.count(written) == 1, written
        code = code.replace(written, fewer)
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(pages.ROOT)}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)  # a reader has set none
    run = subprocess.run(
        [sys.executable, "-c", code + OF_THE_LIBRARY],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")  # and nobody's lines about themselves
    first, second, updates = run.stdout.splitlines()
    for line in (first, second):
        assert -1 <= float(line.removeprefix("mean return of 100 episodes:")) <= 1
    assert int(updates.removeprefix("updates:")) > 0
    assert {file.name for file in home.iterdir()} <= {".keras"}  # TensorFlow's
    assert {file.name for file in (tmp_path / "kept").iterdir()} == {
        "catch.index",
        "catch.data-00000-of-00001",
    }
