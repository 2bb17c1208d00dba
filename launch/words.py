"""A call's keyword arguments as the flags that a command takes."""

import os
import pathlib
import reprlib
import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from typing import Any

from agents.entry import Entry
from run_folder import texts
from run_folder.settings import SettingsError

_PLAIN = (str, bytes, int, float)


def flags(given: Mapping[str, Any]) -> list[str]:
    """The flags that say the same: `r2d2={"batch_size": 32}` is `--r2d2.batch_size=32`.

    None stands for a flag that is not given; of a field in a dictionary, for its value `none`.

    Raises:
      SettingsError: a value is a function or an agent that a new process could not import.
    """
    found = []
    for name, value in given.items():
        if isinstance(value, Mapping):
            found += [f"--{name}.{field}={_text(of)}" for field, of in value.items()]
        elif value is not None:
            found.append(f"--{name}={_text(value)}")
    return found


def folder(path: Any, name: str = "run_dir") -> pathlib.Path:
    """The path of a run, or what else is named so. Raises SettingsError for what is none."""
    if not isinstance(path, str | os.PathLike):
        raise SettingsError(f"{name} must be a path, such as 'runs/pong', got {path!r}.")
    return pathlib.Path(os.path.expanduser(path))


def _text(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Iterable) and not isinstance(value, _PLAIN):
        return ",".join(map(_text, value))
    if callable(value) or isinstance(value, Entry):
        return _import_path(value)
    return texts.typed(value)


def _import_path(value: Any) -> str:
    """`module:name` of a function, a class, or whatever else is at the top of a module."""
    named = getattr(value, "__qualname__", "")
    own = [getattr(value, "__module__", "")]
    modules = own if named else sorted(sys.modules, key="__main__".__eq__)
    for module in modules:
        for name, found in list(getattr(sys.modules.get(module), "__dict__", {}).items()):
            if found is value and name.isidentifier():
                return f"{_importable(module, name)}:{name}"
    raise SettingsError(
        f"{named or reprlib.repr(value)} must be a name at the top of a module, for the run's own "
        "process to import it: write it into a file."
    )


def _importable(module: str, name: str) -> str:
    """The name by which a new process finds a module; of a script, its file's."""
    if module != "__main__":
        return module
    main = sys.modules[module]
    file = pathlib.Path(getattr(main, "__file__", None) or "")
    spec = getattr(main, "__spec__", None) or PathFinder.find_spec(file.stem)
    if not (spec and spec.origin and file.is_file() and file.samefile(spec.origin)):
        raise SettingsError(
            f"{name} is in no module that the run's own process could import: write it into a file "
            "of its own, named like a module, and import it from there."
        )
    sys.modules.setdefault(spec.name, main)  # or a script would run again where this opens the run
    return str(spec.name)
