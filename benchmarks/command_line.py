"""How every benchmark is told which agent to measure: as `launch.train` is."""

import sys
from collections.abc import Callable, Sequence

from absl import flags

from benchmarks import subject
from launch import command_line
from run_folder import catalogue

_DEFAULT_AGENT = "r2d2"
PRESET = flags.DEFINE_enum("preset", "paper", catalogue.PRESETS, "Where the Config is from.")

fail = command_line.fail


def run(
    main: Callable[[Sequence[str]], None],
    measured: Sequence[str],
    peer: Sequence[str] = (),
    *,
    by_turns: bool = True,
) -> None:
    """Runs a benchmark.

    Args:
      main: of the benchmark's module.
      measured: names of the flags that say what is measured, beside the agent's.
      peer: those that say what it is compared with.
      by_turns: whether it repeats what it measures, by `benchmarks.timing`.
    """
    sections = {
        "What is measured": ("agent", "preset", command_line.HYPERPARAMETER, *measured),
    }
    if by_turns:
        sections["How long, by turns"] = ("rounds", "turn_seconds")
    if peer:
        sections["Beside a peer"] = (*peer, "peer_python")
    command_line.run(main, sections)


def overrides() -> dict[str, dict[str, str]]:
    """`--<agent>.<field>=<text>` as agent -> {field -> text}."""
    return command_line.config_overrides(sys.argv)


def agent(env: str = subject.GAME) -> subject.Subject:
    """What `--agent`, `--preset` and `--<agent>.<field>=<text>` ask for, to play this.

    Ends the process with a sentence where they cannot be used.
    """
    named = command_line.AGENT.value or _DEFAULT_AGENT
    try:
        return subject.make(named, PRESET.value, overrides(), env)
    except ValueError as error:
        fail(str(error))


def given(measured: subject.Subject) -> list[str]:
    """What this command was told of the agent, to be told to another."""
    named = [f"--{name}={measured.settings[name]}" for name in ("agent", "preset")]
    typed = overrides()
    return named + [
        f"--{name}.{field}={text}" for name in typed for field, text in typed[name].items()
    ]
