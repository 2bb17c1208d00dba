"""One measurement of a run after the other, as `launch.diagnose` is asked for them."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console

from analysis.diagnosis import ANALYSES, discrepancy, figures, lag, memory, output, players
from run_folder import building, places
from run_folder.checkpoints import CheckpointError
from run_folder.settings import Settings, SettingsError


class Wanted(NamedTuple):
    """What is asked for; an empty sequence is what the run's agent has something for."""

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


def completed(wanted: Wanted) -> Wanted:
    """The same, with what the run's agent has something for where nothing was asked.

    Raises:
      SettingsError: it has nothing for what was asked.
    """
    run, name = wanted.run, wanted.agent
    for analysis in wanted.analyses or ["lag"]:
        players.check(run, name, analysis)
    meaningful = ["lag"] if players.obstacle(run, name) else ANALYSES
    layout = building.make_agent(run, name).tables[0].layout
    return wanted._replace(
        analyses=wanted.analyses or meaningful,
        burn_ins=wanted.burn_ins or discrepancy.default_burn_ins(layout),
    )


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
      SettingsError: as `measure`; what this run has nothing for, and nobody named, is only told.
    """
    try:
        _diagnose(completed(wanted), console)
    except CheckpointError as error:
        raise SettingsError(str(error)) from None


def _diagnose(wanted: Wanted, console: Console) -> None:
    paths = [_path(wanted, analysis) for analysis in wanted.analyses]
    files = [path.with_suffix(suffix) for path in paths for suffix in (".csv", ".png")]
    places.refuse_links(wanted.run.folder.diagnostics, *files)
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


def _path(wanted: Wanted, analysis: str) -> pathlib.Path:
    """Of an analysis's files, without their suffixes."""
    return wanted.run.folder.diagnostics / f"{analysis}-{wanted.agent}"


def _publish(wanted: Wanted, analysis: str, measured: Measured, console: Console) -> None:
    path = _path(wanted, analysis)
    path.parent.mkdir(exist_ok=True)
    output.write(path.with_suffix(".csv"), measured.rows)
    measured.figure.savefig(path.with_suffix(".png"), dpi=130)
    output.show(console, measured.title, measured.rows)
    console.print(f"{path}.csv and .png\n", soft_wrap=True, highlight=False)
