"""A call's keyword arguments become the flags that say the same."""

import importlib
import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from agents.entry import Entry
from launch import words
from run_folder.settings import SettingsError


def make_task() -> None:
    """Stands for a user's own."""


OWN = Entry(config=None, make=lambda config, name: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        (dict(agent="r2d2", env="atari:pong"), ["--agent=r2d2", "--env=atari:pong"]),
        (dict(agent=["r2d2", "popart"]), ["--agent=r2d2,popart"]),
        (dict(run_dir=pathlib.Path("a b")), ["--run_dir=a b"]),
        (dict(resume=True, private_network=False), ["--resume=true", "--private_network=false"]),
        (dict(seed=np.int64(3), evaluation_minutes=0.5), ["--seed=3", "--evaluation_minutes=0.5"]),
        (dict(max_actor_steps=None), []),
        (
            dict(r2d2={"batch_size": 32, "precision": None, "channels": (16, 32)}),
            ["--r2d2.batch_size=32", "--r2d2.precision=none", "--r2d2.channels=16,32"],
        ),
        (dict(env=["catch", make_task]), [f"--env=catch,{__name__}:make_task"]),
        (dict(agent=OWN), [f"--agent={__name__}:OWN"]),
    ],
)
def test_a_value_is_typed_as_a_command_reads_it(given: dict[str, Any], typed: list[str]) -> None:
    assert words.flags(given) == typed


def _local() -> Callable[[], None]:
    def make() -> None:
        pass

    return make


@pytest.mark.parametrize("value", [lambda: None, _local(), types.SimpleNamespace.__repr__])
def test_what_has_no_name_in_a_module_is_refused(value: Any) -> None:
    with pytest.raises(SettingsError, match="must be a name at the top of a module"):
        words.flags(dict(env=value))


def _main(monkeypatch: pytest.MonkeyPatch, file: str | None) -> types.ModuleType:
    """Has another module be `__main__`, with a function in it."""
    main = types.ModuleType("__main__")
    exec("def make(): pass", vars(main))
    if file is not None:
        main.__file__ = file
    monkeypatch.setitem(sys.modules, "__main__", main)
    return main


def test_a_function_of_a_script_has_the_scripts_name(
    write_module: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    name = write_module("raise SystemExit('the script ran again')")
    main = _main(monkeypatch, str(tmp_path / f"{name}.py"))
    monkeypatch.setitem(sys.modules, name, main)  # to be put back
    del sys.modules[name]
    for _ in range(2):  # a script may train twice
        assert words.flags(dict(env=main.make)) == [f"--env={name}:make"]
    assert importlib.import_module(name) is main


@pytest.mark.parametrize("file", [None, "/nowhere/script.py", __file__])
def test_a_function_of_a_notebook_or_of_a_script_elsewhere_is_refused(
    monkeypatch: pytest.MonkeyPatch, file: str | None
) -> None:
    main = _main(monkeypatch, file)
    with pytest.raises(SettingsError, match="make is in no module that the run's own process"):
        words.flags(dict(env=main.make))
