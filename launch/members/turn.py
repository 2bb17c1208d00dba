"""A member's turn: a run of `launch.train` of its own, which ends in order when it is asked to."""

import contextlib
import ctypes
import pathlib
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import recurrent_replay
from agents import fields
from population.folder import PopulationFolder
from population.settings import Population
from run_folder import configs, presets, progress, settings, texts
from run_folder.settings import Settings

_PR_SET_PDEATHSIG = 1  # of Linux
_LIBC = ctypes.CDLL(None, use_errno=True)
_LAST_LINES = 15


class Turn:
    """A run of a member, begun or resumed. It ends in order when this process is gone.

    Args:
      folder: the population's.
      member: whose turn it is.
      arguments: of `launch.train`.

    Raises:
      OSError: it cannot be started.
    """

    def __init__(self, folder: PopulationFolder, member: int, arguments: list[str]) -> None:
        self.member = member
        self._run = folder.member(member)
        self._output = folder.output(member)
        self._output.parent.mkdir(exist_ok=True)
        with self._output.open("a") as output:
            self._begins = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, recurrent_replay.__file__, "train", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the population
                preexec_fn=_end_with_parent,
            )

    def ended(self) -> int | None:
        """The exit code; None while it lasts."""
        return self._process.poll()

    def stop(self) -> None:
        """Asks for its end in order, again and again if need be: a run that begins forgets it."""
        with contextlib.suppress(OSError):  # its folder may not be there yet
            self._run.stop.touch()

    def signal(self) -> None:
        """Asks for its end even before it has begun."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def progress(self) -> dict[str, Any] | None:
        """What its coordinator wrote last."""
        return progress.read(self._run.path)

    def said(self) -> str:
        """The last lines that it printed."""
        with contextlib.suppress(OSError), self._output.open("rb") as output:
            output.seek(self._begins)
            lines = output.read().decode(errors="replace").splitlines()
            return "\n".join(lines[-_LAST_LINES:])
        return ""


def _end_with_parent() -> None:
    """Asks the kernel for a SIGTERM when the process that starts this one is gone."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def settings_of(
    population: Population, folder: PopulationFolder, member: int, values: Mapping[str, Any]
) -> Settings:
    """What a member's run would be that began with these values of what is swept.

    Raises:
      SettingsError: `launch.train` takes no such run.
    """
    given = dict.fromkeys(name for name in fields.declared(Settings) if name != "configs")
    given |= dict(preset=presets.PRESETS[0]) | population.flags
    given |= dict(run_dir=str(folder.member(member).path), seed=population.seed_of(member))
    return settings.resolve(given, overrides_of(population, values))


def overrides_of(population: Population, values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Hyperparameters of a member with these values of what is swept, for `configs.make`."""
    found = {of: dict(shared) for of, shared in population.overrides.items()}
    own = found.setdefault(population.agent_name, {})
    own.update((field, texts.typed(value)) for field, value in values.items())
    return found


def arguments(
    run_dir: pathlib.Path,
    values: Mapping[str, Any],
    overrides: Mapping[str, Mapping[str, str]],
    *,
    resume: bool,
) -> list[str]:
    """What `launch.train` is told.

    Args:
      run_dir: the member's.
      values: launch settings by name; None where nothing is said.
      overrides: as `run_folder.configs.make` takes them.
      resume: whether the member has a run already.
    """
    typed = [f"--run_dir={run_dir}", *(["--resume"] if resume else [])]
    for name, value in values.items():
        if value is not None and name != "run_dir":
            typed.append(f"--{name}={texts.typed(value)}")
    for agent, own in overrides.items():
        dotted = f"{agent}." if agent != configs.EVERY_AGENT else ""
        typed += [f"--{dotted}{field}={text}" for field, text in own.items()]
    return typed
