"""How every command reads its flags: errors are one sentence on stderr and exit code 2."""

import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from absl import flags

from launch import catalogue

AGENT = flags.DEFINE_string("agent", None, f"What learns: {', '.join(catalogue.AGENTS)}.")
RUN_DIR = flags.DEFINE_string("run_dir", None, "Folder for everything about the run.")
SEED = flags.DEFINE_integer("seed", None, "Of environments, networks and policies.", lower_bound=0)

_FIELD = re.compile(r"--?([A-Za-z0-9_]+)\.([A-Za-z0-9_]+)(?:=(.*))?", re.DOTALL)


def parse_flags(argv: Sequence[str]) -> list[str]:
    """absl's parser, with `--<agent>.<field>=<text>` left to `config_overrides`."""
    plain = [arg for arg in argv if not _FIELD.fullmatch(arg)]
    try:
        rest: list[str] = flags.FLAGS(plain)
    except flags.Error as error:
        fail(str(error))
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
    print(message.rstrip(), file=sys.stderr)
    sys.exit(2)
