"""The code of a user's own that a run names, for hosts that have no more than the job's files."""

import dataclasses
import importlib.util
import pathlib
import shutil

from environments import suites
from environments.import_path import is_import_path
from run_folder.settings import Settings, SettingsError


def modules(settings: Settings) -> list[str]:
    """The top-level modules and packages of a user's own agents, torsos, cores and tasks."""
    values = (v for config in settings.configs.values() for v in dataclasses.astuple(config))
    named = [*settings.agent.split(","), *(v for v in values if isinstance(v, str))]
    found = [path.partition(":")[0] for path in named if is_import_path(path)]
    found += [module for task in settings.tasks if (module := suites.module_of(task))]
    return sorted({module.partition(".")[0] for module in found})


def place(module: str) -> str:
    """Where a top-level module would be imported from, if anywhere; nothing is imported."""
    spec = importlib.util.find_spec(module)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    return folders[0] if folders else (spec and spec.origin) or ""


def sources(settings: Settings) -> list[pathlib.Path]:
    """The file of each module that a run names, the folder of each package.

    Raises:
      SettingsError: a module is neither, so that hosts cannot get a copy of it.
    """
    found = {name: place(name) for name in modules(settings)}
    for name, path in found.items():
        if not (path and pathlib.Path(path).exists()):
            raise SettingsError(
                f"The module {name!r} must be a file or a folder on PYTHONPATH, for hosts to get a "
                f"copy of it; got {path or None}."
            )
    return [pathlib.Path(path) for path in found.values()]


def copy(settings: Settings, folder: pathlib.Path) -> None:
    """Copies modules and packages, as they are on PYTHONPATH here, into a folder of sources."""
    for source in sources(settings):
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(source, folder / source.name, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, folder / source.name)
