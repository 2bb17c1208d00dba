"""How every benchmark is told which agent to measure: as `launch.train` is."""

import sys

from absl import flags

from benchmarks import subject
from launch import command_line, presets

_DEFAULT_AGENT = "r2d2"
PRESET = flags.DEFINE_enum("preset", "paper", presets.PRESETS, "Where the Config is from.")
flags.declare_key_flag("agent")

fail = command_line.fail
parse_flags = command_line.parse_flags


def overrides() -> dict[str, dict[str, str]]:
    """`--<agent>.<field>=<text>` as agent -> {field -> text}."""
    return command_line.config_overrides(sys.argv)


def agent() -> subject.Subject:
    """What `--agent`, `--preset` and `--<agent>.<field>=<text>` ask for.

    Ends the process with a sentence where they cannot be used.
    """
    try:
        return subject.make(command_line.AGENT.value or _DEFAULT_AGENT, PRESET.value, overrides())
    except ValueError as error:
        fail(str(error))
