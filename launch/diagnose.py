"""Measures a run as R2D2's paper does: python -m launch.diagnose --run_dir=runs/pong

  discrepancy  Q-values where training must find the recurrent state of a sequence: from zero or
               from the stored state, after burn-ins of several lengths (Figure 1). Actors play.
  lag          the age, in updates, of the parameters whose experience is replayed (Figure 6).
  memory       return, greedy actions and Q-values with a memory of k inputs only (Figure 5).

Each is printed, and written as a table and a picture into the run's folder diagnostics/.
"""

import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from absl import flags
from matplotlib.figure import Figure
from rich.console import Console

from agents.limited_memory import MOST_MEMORY_STEPS
from analysis.diagnosis import discrepancy, figures, lag, memory, output, players
from launch import command_line
from run_folder import building, checkpoints, settings
from run_folder.settings import Settings, SettingsError

ANALYSES = ("discrepancy", "lag", "memory")
_LONGEST_BURN_IN = 10_000  # that is unrolled at once

_ANALYSES = flags.DEFINE_list(
    "analyses", None, "Which, with commas; by default all that the agent has something for."
)
_BURN_INS = flags.DEFINE_list(
    "burn_ins", None, "discrepancy: steps; by default 0, 1/4 and 1/2 of an item's, and the run's."
)
_SEQUENCES = flags.DEFINE_integer(
    "sequences",
    256,
    "discrepancy: the most, of each task and lag.",
    lower_bound=1,
    upper_bound=1_000_000,
)
_SAMPLES = flags.DEFINE_integer(
    "replay_samples",
    2_000,
    "lag: the most items drawn from the saved replay.",
    lower_bound=1,
    upper_bound=100_000_000,
)
_MEMORIES = flags.DEFINE_list(
    "memories", ["1", "2", "4", "8", "16", "32", "64"], "memory: the ks, and then no limit."
)
_EPISODES = flags.DEFINE_integer(
    "memory_episodes",
    10,
    "memory: of each k, played at once.",
    lower_bound=1,
    upper_bound=10_000,
)
_SECTIONS = {
    "What is measured": ("run_dir", "agent", "analyses", "seed"),
    "How": ("burn_ins", "sequences", "replay_samples", "memories", "memory_episodes"),
}


class Wanted(NamedTuple):
    """What the command line asks for."""

    run: Settings
    agent: str
    analyses: Sequence[str]
    all_or_nothing: bool  # whether one that this run has nothing for is an error
    burn_ins: Sequence[int]
    sequences: int
    replay_samples: int
    memories: Sequence[int]
    memory_episodes: int
    seed: int


class Measured(NamedTuple):
    """What came of one analysis."""

    title: str
    rows: Sequence[Any]  # dataclasses of one type
    figure: Figure


def wanted_of_flags() -> Wanted:
    """What the command line asks for, checked.

    Raises:
      SettingsError: when it makes no sense, or not for this run.
    """
    if not command_line.RUN_DIR.value:
        raise SettingsError("--run_dir must be given.")
    run = settings.load(pathlib.Path(command_line.RUN_DIR.value))
    name = command_line.AGENT.value or run.agents[0]
    for analysis in _ANALYSES.value or ["lag"]:
        if analysis not in ANALYSES:
            raise SettingsError(
                f"--analyses names {analysis!r}, but there are {', '.join(ANALYSES)}."
            )
        players.check(run, name, analysis)
    meaningful = ["lag"] if players.obstacle(run, name) else ANALYSES
    burn_ins = _whole_numbers(_BURN_INS, 0, _LONGEST_BURN_IN)
    layout = building.make_agent(run, name).tables[0].layout
    return Wanted(
        run=run,
        agent=name,
        analyses=_ANALYSES.value or meaningful,
        all_or_nothing=bool(_ANALYSES.value),
        burn_ins=burn_ins or discrepancy.default_burn_ins(layout),
        sequences=_SEQUENCES.value,
        replay_samples=_SAMPLES.value,
        memories=_whole_numbers(_MEMORIES, 1, MOST_MEMORY_STEPS),
        memory_episodes=_EPISODES.value,
        seed=command_line.SEED.value or 0,
    )


def _whole_numbers(flag: flags.FlagHolder, least: int, most: int) -> list[int]:
    """A flag's numbers in order, each once; nothing where the flag was not given."""
    texts = [str(text) for text in flag.value or ()]
    digits = len(str(most))
    if not all(t.isdecimal() and len(t) <= digits and least <= int(t) <= most for t in texts):
        raise SettingsError(
            f"--{flag.name} must be whole numbers from {least} to {most:,} with commas between "
            f"them, got {','.join(texts)!r}."
        )
    return sorted({int(text) for text in texts})


def measure(wanted: Wanted, analysis: str, report: Callable[[str], None]) -> Measured:
    """Does one analysis; tells `report` what comes next.

    Raises:
      SettingsError, CheckpointError: when the run has not what it takes.
    """
    run, name, seed = wanted.run, wanted.agent, wanted.seed
    if analysis == "discrepancy":
        found = discrepancy.measure(run, name, wanted.burn_ins, wanted.sequences, seed, report)
        return Measured("Q-value discrepancy (Figure 1)", found, figures.of_discrepancy(found))
    if analysis == "lag":
        lags = lag.measure(run, name, wanted.replay_samples)
        title = "Parameter lag, updates (Figure 6)"
        return Measured(title, lag.rows(lags), figures.of_lag(lags))
    played = memory.measure(run, name, wanted.memories, wanted.memory_episodes, seed, report)
    return Measured("Limited memory (Figure 5)", played, figures.of_memory(played))


def diagnose(wanted: Wanted, console: Console) -> None:
    """Does one analysis after the other.

    Raises:
      SettingsError, CheckpointError: as `measure`; what this run has nothing for, and nobody named,
        is only told.
    """
    for analysis in wanted.analyses:
        try:
            with Console(stderr=True).status(analysis) as status:
                measured = measure(wanted, analysis, status.update)
        except SettingsError as error:
            if wanted.all_or_nothing:
                raise
            console.print(f"{analysis}: {error}\n", soft_wrap=True, highlight=False)
        else:
            _publish(wanted, analysis, measured, console)


def _publish(wanted: Wanted, analysis: str, measured: Measured, console: Console) -> None:
    folder = wanted.run.folder.diagnostics
    folder.mkdir(exist_ok=True)
    path = folder / f"{analysis}-{wanted.agent}"
    output.write(path.with_suffix(".csv"), measured.rows)
    measured.figure.savefig(path.with_suffix(".png"), dpi=130)
    output.show(console, measured.title, measured.rows)
    console.print(f"{path}.csv and .png\n", soft_wrap=True, highlight=False)


def main(_: Sequence[str]) -> None:
    try:
        diagnose(wanted_of_flags(), Console())
    except (SettingsError, checkpoints.CheckpointError) as error:
        command_line.fail(str(error))
    sys.exit(0)


if __name__ == "__main__":
    command_line.run(main, _SECTIONS)
