"""The code of a user's own that a run names, for hosts that have no more than the job's files."""

import dataclasses
import importlib.util
import pathlib
import shutil
from collections.abc import Iterable

from environments import suites
from environments.import_path import is_import_path
from run_folder.settings import Settings, SettingsError


def modules(settings: Settings) -> list[str]:
    """The top-level modules and packages of the agents, torsos and tasks that are a user's own."""
    values = (v for config in settings.configs.values() for v in dataclasses.astuple(config))
    named = [*settings.agent.split(","), *(v for v in values if isinstance(v, str))]
    found = [path.partition(":")[0] for path in named if is_import_path(path)]
    found += [module for task in settings.tasks if (module := suites.module_of(task))]
    return sorted({module.partition(".")[0] for module in found})


def check(settings: Settings) -> None:
    """Checks that what a run names can be given to its hosts.

    Raises:
      SettingsError: a module is no file or folder here.
    """
    _sources(modules(settings))


def copy(names: Iterable[str], folder: pathlib.Path) -> None:
    """Copies modules and packages, as they are on PYTHONPATH here, into a folder of sources."""
    for source in _sources(names):
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(source, folder / source.name, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, folder / source.name)


def _sources(names: Iterable[str]) -> list[pathlib.Path]:
    """The file of each module, the folder of each package."""
    found = []
    for name in names:
        spec = importlib.util.find_spec(name)
        folders = list(spec.submodule_search_locations or ()) if spec else []
        origin = spec.origin if spec else None
        if folders:
            found.append(pathlib.Path(folders[0]))
        elif origin and pathlib.Path(origin).is_file():
            found.append(pathlib.Path(origin))
        else:
            raise SettingsError(
                f"The module {name!r} must be a file or a folder on PYTHONPATH, for hosts to get a "
                f"copy of it; got {origin}."
            )
    return found
