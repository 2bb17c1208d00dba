"""Import paths, `package.module:name`, by which a user's own code is named."""

import contextlib
import contextvars
import difflib
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from environments.copies.dead_simulators import first_line

_not_here = contextvars.ContextVar("_not_here", default=False)


@contextlib.contextmanager
def nothing_imported() -> Iterator[None]:
    """Within it no code of a user's own is imported and no environment made, whatever is named.

    It is for settings that somebody else has written, since a name suffices to run code.
    """
    before = _not_here.set(True)
    try:
        yield
    finally:
        _not_here.reset(before)


def imports_nothing() -> bool:
    """Returns whether this is within `nothing_imported`."""
    return _not_here.get()


def is_import_path(text: str) -> bool:
    """Returns whether a text has the form `package.module:name`; imports nothing."""
    module, _, name = text.partition(":")
    return is_module(module) and name.isidentifier()


def is_module(text: str) -> bool:
    """Returns whether a text has the form `package.module`; imports nothing."""
    return all(part.isidentifier() for part in text.split("."))


def load(path: str, *, what: str, example: str) -> Any:
    """Imports the object at an import path.

    Args:
      path: for example `my_package.tasks:make`.
      what: is wanted, as the errors name it: for example "an environment".
      example: a correct path, for the errors.

    Raises:
      ValueError: the path has another form, there is no such module or no such name in it, or the
        module raises when it is imported, which is then the error's cause; or this is within
        `nothing_imported`.
    """
    wanted = f"Expected {what} such as {example}, got {path!r}"
    if not is_import_path(path):
        raise ValueError(f"{wanted}.")
    if imports_nothing():
        raise ValueError(f"{path!r} is {what} of somebody's own, which is not imported here.")
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever somebody's module raises; a script may exit
        if isinstance(error, ModuleNotFoundError) and _leads_to(error.name, module_name):
            raise ValueError(
                f"{wanted}, but there is no module {error.name!r} on PYTHONPATH"
                f"{advice(error, module_name) or '.'}"
            ) from error
        raise ValueError(
            f"{wanted}, but importing {module_name!r} raises {first_line(error)}"
        ) from error
    if not hasattr(module, name):
        names = difflib.get_close_matches(name, vars(module), n=1)
        hint = f", did you mean {names[0]!r}?" if names else "."
        raise ValueError(f"{wanted}, but {module!r} has no {name!r}{hint}")
    return getattr(module, name)


def advice(error: BaseException, module: str) -> str:
    """Ends a sentence about a module that could not be imported, where one is named like it."""
    package = module.partition(".")[0]
    is_missing = isinstance(error, ModuleNotFoundError) and error.name == package
    return f"; did you mean {near(package)}?" if is_missing and near(package) else ""


def near(package: str) -> str:
    """The importable module with the name nearest to a missing one's, or nothing."""
    there = sorted(found.name for found in pkgutil.iter_modules())
    return next(iter(difflib.get_close_matches(package, there, n=1, cutoff=0.75)), "")


def _leads_to(missing: str | None, module: str) -> bool:
    """Returns whether a missing module is the wanted one or a package around it."""
    return missing is not None and f"{module}.".startswith(f"{missing}.")
