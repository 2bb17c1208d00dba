"""How every command reads its flags: errors are one sentence on stderr and exit code 2."""

import contextlib
import dataclasses
import errno
import functools
import importlib
import itertools
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, get_args

from absl import app, flags, logging

import recurrent_replay
from agents import fields
from agents.fields import Field
from agents.finite import NotFiniteError
from agents.requirements import LARGEST
from environments.copies.dead_simulators import CannotPlayError
from launch.local import caller
from run_folder import catalogue, texts
from run_folder.texts import SettingsError

# Of Linux, in bytes. A run's files have names of their own below its folder.
_LONGEST_FILE_NAME, _LONGEST_PATH = 255, 4096 - 256


AUTO = "auto"  # in place of a number that is found


class _WholeNumberParser(flags.IntegerParser):
    def convert(self, argument: int | str) -> int:
        try:
            return int(super().convert(argument))
        except ValueError:
            return texts.whole_number(str(argument))


class _WholeNumberOrAutoParser(_WholeNumberParser):
    def convert(self, argument: int | str) -> Any:
        try:
            return AUTO if argument == AUTO else super().convert(argument)
        except ValueError:
            raise ValueError(f"a whole number or {AUTO} was expected, got {argument!r}") from None


class _NumberParser(flags.FloatParser):
    def convert(self, argument: float | str) -> float:
        """Takes a quotient of whole numbers too, as 1/256."""
        above, slash, below = str(argument).partition("/")
        if slash and int(below):
            return int(above) / int(below)
        return float(super().convert(argument))


def define_whole(
    name: str, default: int | None, meaning: str, least: int | None = None, most: int | None = None
) -> flags.FlagHolder[int | None]:
    """A flag that takes a whole number within bounds, as `texts.whole_number` reads it."""
    return flags.DEFINE(_WholeNumberParser(least, most), name, default, meaning)


class FolderParser(flags.ArgumentParser[str]):
    """For a flag that names a folder, or several with commas; some may be empty."""

    def parse(self, argument: str) -> str:
        return ",".join(part and _folder(part) for part in argument.split(","))

    def flag_type(self) -> str:
        return "folder"


def _folder(text: str) -> str:
    """The path that is meant, with `~` as the home folder; ValueError where there can be none."""
    path = os.path.expanduser(text)
    if path.startswith("~"):
        raise ValueError(f"There is no home folder {path.split('/')[0]}; ./{path} is a name.")
    try:
        names = [name.encode() for name in path.split("/")]
    except UnicodeEncodeError:
        raise ValueError("The name of a folder was expected, got bytes that are no text.") from None
    if "\0" in path:
        raise ValueError("The name of a folder was expected, got one with a null byte.")
    longest = max(map(len, names))
    if longest > _LONGEST_FILE_NAME:
        raise ValueError(f"A name has at most {_LONGEST_FILE_NAME} bytes, got one of {longest}.")
    length = len(os.path.abspath(path).encode())
    if length > _LONGEST_PATH:
        raise ValueError(f"A path has at most {_LONGEST_PATH:,} bytes, got one of {length:,}.")
    return path


AGENT = flags.DEFINE_string("agent", None, f"What learns: {', '.join(catalogue.AGENTS)}.")
RUN_DIR = flags.DEFINE(FolderParser(), "run_dir", None, "Folder for everything about the run.")
JOB = flags.DEFINE(FolderParser(), "job", None, "Folder of a run's program as files.")
SEED = define_whole("seed", None, "Of environments, networks and policies.", 0, LARGEST)

_DEFINES: dict[type, Callable[..., flags.FlagHolder]] = {
    int: define_whole,
    float: functools.partial(flags.DEFINE, _NumberParser()),
    bool: flags.DEFINE_boolean,
    str: flags.DEFINE_string,
}


def define(name: str, field: Field, *, or_auto: bool = False) -> flags.FlagHolder:
    """A flag for a declared field; its value is None where it was not given.

    With `or_auto` it takes a whole number or `AUTO`.
    """
    (kind,) = {field.annotation, *get_args(field.annotation)} & set(_DEFINES)
    values = [field.presets.get(preset) for preset in catalogue.PRESETS]
    meaning = field.meaning
    if None not in values and kind is not bool:
        local, paper = values
        meaning = f"{meaning[:-1]}: {local:g} [{paper:g}]."
    elif field.default not in (dataclasses.MISSING, "", None):
        meaning = f"{meaning[:-1]}: {field.default}."
    if or_auto:
        return flags.DEFINE(_WholeNumberOrAutoParser(), name, None, meaning)
    return _DEFINES[kind](name, None, meaning)


Sections = Mapping[str, Sequence[str]]  # title -> names of flags

HYPERPARAMETER = "<agent>.<field>"  # as a flag's name in a section

_CANNOT_WRITE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}

_FIELD = re.compile(r"--?([A-Za-z0-9_]+)\.([A-Za-z0-9_]+)(?:=(.*))?", re.DOTALL)
_LAUNCHPADS, _OF_LAUNCHPAD = "lp_launch_type", re.compile("--?(no)?(lp|xm)_")
_HELP = {"--help", "-help", "-h", "--helpshort", "-helpshort"}
_HELP_OF = re.compile("--?help=(.+)")
_LONGEST_NAME = 64  # absl looks for one like it recursively, a call for each letter
_HELPS = "launch.help"  # which is wanted where it is asked for


def run(main: Callable[[Sequence[str]], None], sections: Sections) -> None:
    """Runs a command, with its help.

    `absl.app.run` would do so too. But TensorFlow is imported after the checks of what was typed,
    and `recurrent_replay.check` says why that may not be once `absl.app.run` has begun.

    Args:
      main: of the module whose docstring begins the help.
      sections: the flags that the command reads. One that has `HYPERPARAMETER` among them takes
        `--<agent>.<field>=<text>` too; others refuse it.
    """
    caller.heed()
    app.define_help_flags()  # --helpfull
    logging.use_absl_handler()
    logging.set_verbosity(logging.INFO)
    argv = sys.argv
    if asked := [match.group(1) for arg in argv[1:] if (match := _HELP_OF.fullmatch(arg))]:
        _show(importlib.import_module(_HELPS).of_agent(asked[-1], values_of(argv)))
    if _HELP.intersection(argv[1:]):
        description = sys.modules[main.__module__].__doc__ or ""
        _show(importlib.import_module(_HELPS).of_command(description, sections))
    if not any(HYPERPARAMETER in names for names in sections.values()):
        for agent, typed in config_overrides(argv).items():
            fail(f"This command takes no hyperparameters, got --{agent}.{next(iter(typed))}.")
    try:
        main(parse_flags(argv))
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        fail(f"{error.filename or 'A file'} cannot be written: {error.strerror}.")
    except NotFiniteError as error:  # a reward of what is played
        fail(str(error))


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """Around a command: ends the process, well, or by `fail` where it refuses or cannot play.

    Ctrl-C ends it with a shell's exit code, and without a traceback.
    """
    try:
        yield
    except (SettingsError, CannotPlayError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    sys.exit(0)


def later(module: str, line: str = "") -> Any:
    """Prints a line, and imports a module that needs TensorFlow, which takes seconds.

    So it is called once what was typed is right.
    """
    try:
        recurrent_replay.check()
    except recurrent_replay.InstallationError as error:
        fail(str(error))
    say(line)
    return importlib.import_module(module)


def say(line: str) -> None:
    """Prints a line, if it says something. A closed terminal ends no run."""
    if line:
        with contextlib.suppress(OSError):
            _print(line)


def _show(text: str) -> NoReturn:
    """Prints, and ends well."""
    _print(text)
    sys.exit(0)


def _print(text: str) -> None:
    """Prints, also for `head`, which may not read it all: what follows then goes nowhere.

    Else the text would wait in a buffer, and whoever prints or forks next would fail by it.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def values_of(argv: Sequence[str]) -> dict[str, str]:
    """Flags' values as they were typed, before any is known to be right."""
    found = {}
    for arg, after in itertools.zip_longest(argv, argv[1:], fillvalue=""):
        name, equals, value = arg.lstrip("-").partition("=")
        found[name] = value if equals or after.startswith("-") else after  # --env catch
    return found


def parse_flags(argv: Sequence[str]) -> list[str]:
    """absl's parser, with `--<agent>.<field>=<text>` left to `config_overrides`."""
    plain = [arg for arg in argv if not _FIELD.fullmatch(arg)]
    for name in (arg.partition("=")[0] for arg in plain[1:] if arg.startswith("-")):
        if len(name) > _LONGEST_NAME:
            fail(f"A flag's name has at most {_LONGEST_NAME} characters, got {name!r}.")
    # Launchpad's own flags are known once it is imported, and then they are parsed too.
    later = _LAUNCHPADS not in flags.FLAGS and of_launchpad(plain)
    try:
        rest: list[str] = flags.FLAGS(plain, known_only=later)
    except flags.UnrecognizedFlagError as error:
        fail(_printable(_unknown(error, argv)))
    except (flags.Error, ValueError) as error:  # absl has both, and quotes lines as they are
        fail(_printable(str(error)))
    except OSError as error:  # of a --flagfile
        fail(f"{error.filename} cannot be read: {error.strerror}.")
    if len(rest) > 1 and not later:
        fail(f"Only flags are understood, got {rest[1]!r}.")
    return rest


def _unknown(error: flags.UnrecognizedFlagError, argv: Sequence[str]) -> str:
    """A sentence about a flag that there is not, which may be meant for an agent's Config."""
    if error.flagname in catalogue.AGENTS:
        return f"--{error.flagname} is an agent, and takes its fields: --help={error.flagname}."
    known = [a for a in values_of(argv).get("agent", "").split(",") if a in catalogue.AGENTS]
    for agent in known or catalogue.AGENTS:
        declared = fields.declared(type(catalogue.entry(agent).config))
        near = texts.nearest(error.flagname, declared)
        if near and (near == error.flagname or "Did you mean" not in str(error)):
            return f"There is no flag --{error.flagname}. Did you mean --{agent}.{near}?"
    return str(error)


def of_launchpad(argv: Sequence[str]) -> bool:
    """Whether a flag of Launchpad's own is among them."""
    return any(map(_OF_LAUNCHPAD.match, argv))


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
    """Ends with exit code 2 and a sentence, for a caller in Python or else on stderr."""
    sentence = "\n".join(map(_printable, message.rstrip().split("\n")))
    if not caller.tell(sentence):
        print(sentence, file=sys.stderr)
    sys.exit(caller.REFUSED)


def _printable(line: str) -> str:
    """A line without what would end it, steer a terminal, or is half a character, as was typed."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in line
    )
