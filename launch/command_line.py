"""How every command reads its flags: errors are one sentence on stderr and exit code 2.

absl lists a module's flags in the order of the alphabet, two lines each. `run` shows those that its
command reads on one screen: in groups, a line each, their defaults after the `=`.
"""

import errno
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

from absl import app, flags

from agents.requirements import LARGEST
from launch import paths
from run_folder import catalogue


class FolderParser(flags.ArgumentParser[str]):
    """Of a flag that names a folder, or several with commas; a command knows if one may be none."""

    def parse(self, argument: str) -> str:
        return ",".join(part and paths.folder(part) for part in argument.split(","))

    def flag_type(self) -> str:
        return "folder"


AGENT = flags.DEFINE_string("agent", None, f"What learns: {', '.join(catalogue.AGENTS)}.")
RUN_DIR = flags.DEFINE(FolderParser(), "run_dir", None, "Folder for everything about the run.")
JOB = flags.DEFINE(FolderParser(), "job", None, "Folder of a run's program as files.")
SEED = flags.DEFINE_integer(
    "seed", None, "Of environments, networks and policies.", lower_bound=0, upper_bound=LARGEST
)

Sections = Mapping[str, Sequence[str]]  # title -> names of flags

HYPERPARAMETER = "<agent>.<field>"  # as a flag's name in a section

_CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}

_FIELD = re.compile(r"--?([A-Za-z0-9_]+)\.([A-Za-z0-9_]+)(?:=(.*))?", re.DOTALL)
_HELP = {"--help", "-help", "-h", "--helpshort", "-helpshort"}
_WIDTH, _COLUMN = 100, 33
_FIELDS_ARE_IN = "Any field of an agent's Config, in r2d2/ and agents/*/config.py: --r2d2.length=40"


def run(main: Callable[[Sequence[str]], None], sections: Sections) -> None:
    """Runs a command as `absl.app.run` does, with its help.

    Args:
      main: of the module whose docstring begins the help.
      sections: the flags that the command reads. One that has `HYPERPARAMETER` among them takes
        `--<agent>.<field>=<text>` too; others refuse it.
    """

    def parse(argv: Sequence[str]) -> list[str]:
        if _HELP.intersection(argv[1:]):
            print(help_text(sys.modules[main.__module__].__doc__ or "", sections))
            sys.exit(0)
        taken = any(HYPERPARAMETER in names for names in sections.values())
        for agent, fields in {} if taken else config_overrides(argv).items():
            fail(f"This command takes no hyperparameters, got --{agent}.{next(iter(fields))}.")
        return parse_flags(argv)

    def guarded(argv: Sequence[str]) -> None:
        try:
            main(argv)
        except OSError as error:
            if error.errno not in _CANNOT_WRITE:
                raise
            fail(f"{error.filename or 'A file'} cannot be written: {error.strerror}.")

    app.run(guarded, flags_parser=parse)


def help_text(description: str, sections: Sections) -> str:
    """A screen of help: a module's docstring, then its flags."""
    lines = [description.strip()]
    for title, names in sections.items():
        lines += ["", title, *(line for name in names for line in _entry(name))]
    return "\n".join([*lines, "", *_described("--helpfull", "Every flag, those of libraries too.")])


def _entry(name: str) -> Iterator[str]:
    """The lines of one flag."""
    if name == HYPERPARAMETER:
        yield from _described(f"--{name}=", _FIELDS_ARE_IN)
        return
    flag = flags.FLAGS[name]
    default = flag.default if flag.default is not None else ""
    if isinstance(default, list | tuple):
        default = ",".join(map(str, default))
    yield from _described(f"--[no]{name}" if flag.boolean else f"--{name}={default}", flag.help)


def _described(flag: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(text, _WIDTH - _COLUMN)
    left = f"  {flag}"
    if len(left) >= _COLUMN:
        yield left
    else:
        yield left.ljust(_COLUMN) + lines.pop(0)
    yield from (" " * _COLUMN + line for line in lines)


def parse_flags(argv: Sequence[str]) -> list[str]:
    """absl's parser, with `--<agent>.<field>=<text>` left to `config_overrides`."""
    plain = [arg for arg in argv if not _FIELD.fullmatch(arg)]
    try:
        rest: list[str] = flags.FLAGS(plain)
    except (flags.Error, ValueError) as error:  # absl has both
        fail(str(error))
    except OSError as error:  # of a --flagfile
        fail(f"{error.filename} cannot be read: {error.strerror}.")
    if len(rest) > 1:
        fail(f"Only flags are understood, got {rest[1]!r}.")
    return rest


def config_overrides(argv: Sequence[str]) -> dict[str, dict[str, str]]:
    """`--<agent>.<field>=<text>` as agent -> {field -> text}."""
    overrides: dict[str, dict[str, str]] = {}
    for arg in argv:
        match = _FIELD.fullmatch(arg)
        if match:
            agent, field, text = match.groups()
            if text is None:
                fail(f"{arg} needs a value: {arg}=<value>.")
            overrides.setdefault(agent, {})[field] = text
    return overrides


def fail(message: str) -> NoReturn:
    """Ends with a sentence on stderr and exit code 2."""
    text = message.rstrip().encode(errors="backslashreplace").decode()  # what was typed may be none
    print(text, file=sys.stderr)
    sys.exit(2)
