"""Import paths to a user's own code, and the errors about paths that lead nowhere."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from environments import import_path

Write = Callable[[str], str]


def _load(path: str) -> Any:
    return import_path.load(path, what="a torso", example="my_package.torsos:Torso")


@pytest.mark.parametrize("text", ["a:b", "a.b_c.d1:Name", "os.path:join"])
def test_import_paths(text: str) -> None:
    assert import_path.is_import_path(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a.b", ":", "a:", ":b", "a.:b", "a..b:c", "a-b:c", "a:b.c", "a:b:c", "a :b"]
)
def test_other_texts(text: str) -> None:
    assert not import_path.is_import_path(text)
    with pytest.raises(ValueError, match=r"Expected a torso such as my_package\.torsos:Torso, got"):
        _load(text)


def test_whatever_has_the_name_is_given(write_module: Write) -> None:
    name = write_module("def make(): return 1\nnumber = 2")
    assert _load(f"{name}:make")() == 1
    assert _load(f"{name}:number") == 2


def test_a_module_in_a_package(tmp_path: Any, write_module: Write) -> None:
    (tmp_path / "users_package").mkdir()
    (tmp_path / "users_package" / "tasks.py").write_text("number = 3")
    assert _load("users_package.tasks:number") == 3
    with pytest.raises(ValueError, match=re.escape("no module 'users_package.task' on")):
        _load("users_package.task:number")


ERRORS = {
    "raise RuntimeError('first\\nsecond')": "raises RuntimeError: first",
    "raise KeyError": "raises KeyError.",
    "import absent_module": "raises ModuleNotFoundError: No module named 'absent_module'",
    "raise ModuleNotFoundError('a driver')": "raises ModuleNotFoundError: a driver",
    "raise SystemExit(2)": "raises SystemExit: 2",
    "def broken(": "raises SyntaxError: ",
}


@pytest.mark.parametrize("text", ERRORS)
def test_what_a_module_raises_is_told_and_kept(text: str, write_module: Write) -> None:
    name = write_module(text)
    with pytest.raises(ValueError, match=f"importing '{name}' {re.escape(ERRORS[text])}") as told:
        _load(f"{name}:Torso")
    said = str(told.value)
    assert said.startswith("Expected a torso such as my_package.torsos:Torso, got ")
    assert repr(f"{name}:Torso") in said
    assert "\n" not in said
    assert told.value.__cause__ is not None
    assert told.value.__cause__.__traceback__ is not None


def test_a_missing_module() -> None:
    with pytest.raises(ValueError, match="but there is no module 'absent' on PYTHONPATH") as told:
        _load("absent.torsos:Torso")
    assert isinstance(told.value.__cause__, ModuleNotFoundError)


def test_a_missing_name(write_module: Write) -> None:
    name = write_module("class Torso: pass")
    with pytest.raises(ValueError, match=rf"{name}\.py'> has no 'Troso', did you mean 'Torso'\?"):
        _load(f"{name}:Troso")
    with pytest.raises(ValueError, match=r"has no 'xyz'\.$"):
        _load(f"{name}:xyz")
