"""Each kind of environment is a record of its own module, imported when a name asks for it."""

import importlib
import subprocess
import sys
from collections import ChainMap

import pytest

from environments import kinds, suites


def test_every_kind_of_every_module_is_listed() -> None:
    tables = [importlib.import_module(name).KINDS for name in set(kinds._MODULES.values())]
    listed = {word: kinds.named(word) for word in (*kinds.WORDS, "own")}
    assert dict(ChainMap(*tables)) == listed
    assert all(isinstance(kind, kinds.Kind) for kind in listed.values())


@pytest.mark.parametrize("word", kinds.WORDS)
def test_a_kind_knows_its_tasks_and_no_others(word: str) -> None:
    known = kinds.named(word).tasks()
    assert known
    suites.check_names(f"{word}:{known[0]}")
    with pytest.raises(ValueError, match="Unknown environment"):
        suites.check_names(f"{word}:no such task")


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("catch", {"small_tasks"}),
        ("atari57", {"atari"}),
        ("dmlab30", {"dmlab.environment", "dmlab.engine", "dmlab.process"}),
        ("gym:CartPole-v1", {"gym"}),
        ("control:walker/run", {"control.environment", "control.tasks", "control.renderer"}),
        ("atari:pong,catch", {"atari", "small_tasks"}),
    ],
)
def test_a_name_imports_its_own_kind_alone(name: str, modules: set[str]) -> None:
    program = f"""
import sys
from environments import suites
suites.check_names({name!r})
suites.frames_per_step({name!r})
print(*(m for m in sys.modules if m.startswith('environments.')))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    imported = {m.removeprefix("environments.") for m in done.stdout.split()}
    of_kinds = ("small_tasks", "atari", "gym", "dmlab.", "control.")
    assert {m for m in imported if m.startswith(of_kinds)} == modules
