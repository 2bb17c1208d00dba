"""From `package.module:name` to what stands there: how a user's own code is named."""

import difflib
import importlib
from typing import Any


def is_import_path(text: str) -> bool:
    """Whether a text has the form `package.module:name`; imports nothing."""
    module, _, name = text.partition(":")
    return is_module(module) and name.isidentifier()


def is_module(text: str) -> bool:
    """Whether a text has the form `package.module`; imports nothing."""
    return all(part.isidentifier() for part in text.split("."))


def load(path: str, *, what: str, example: str) -> Any:
    """Imports a module and gives what it has under a name.

    Args:
      path: for example `my_package.tasks:make`.
      what: is wanted, for the errors: for example "an environment".
      example: a path that would be right, for the errors.

    Raises:
      ValueError: the path has another form, there is no such module or no such name in it, or the
        module raises when it is imported, which is then the error's cause.
    """
    wanted = f"Expected {what} such as {example}, got {path!r}"
    if not is_import_path(path):
        raise ValueError(f"{wanted}.")
    module_name, _, name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever somebody's module raises; a script may exit
        if isinstance(error, ModuleNotFoundError) and _leads_to(error.name, module_name):
            raise ValueError(
                f"{wanted}, but there is no module {error.name!r} on PYTHONPATH."
            ) from error
        raise ValueError(
            f"{wanted}, but importing {module_name!r} raises {first_line(error)}"
        ) from error
    if not hasattr(module, name):
        near = difflib.get_close_matches(name, vars(module), n=1)
        advice = f", did you mean {near[0]!r}?" if near else "."
        raise ValueError(f"{wanted}, but {module!r} has no {name!r}{advice}")
    return getattr(module, name)


def first_line(error: BaseException) -> str:
    """An exception's type and the first line of what it says, if it says anything."""
    kind, words = type(error).__name__, str(error).strip()
    return f"{kind}: {words.splitlines()[0]}" if words else f"{kind}."


def _leads_to(missing: str | None, module: str) -> bool:
    """Whether a missing module is one wanted, or a package that it would be in."""
    return missing is not None and f"{module}.".startswith(f"{missing}.")
