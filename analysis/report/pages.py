"""The pages that `launch.report` writes: of a run, of runs side by side, of a population."""

import pathlib
from collections.abc import Sequence

from analysis.report import learning, population, population_page, results, run
from analysis.report.page import Page
from analysis.report.run import Run
from population.folder import is_population
from run_folder import places
from run_folder.settings import SettingsError


def write(folders: Sequence[str], output: pathlib.Path | None = None) -> pathlib.Path:
    """Writes the page of some folders, as `of_folders` makes it; returns its path.

    Raises:
      SettingsError: there is no such page, or it cannot be written.
    """
    made = of_folders(folders, output)
    if output is None:
        places.refuse_links(made.folder)
    try:
        return made.write()
    except OSError as error:
        raise SettingsError(
            f"--output={made.folder} cannot be written: {error.strerror}."
        ) from None


def of_folders(folders: Sequence[str], output: pathlib.Path | None = None) -> Page:
    """The page of some folders.

    Args:
      folders: of runs, or of a population.
      output: the folder of the page; by default in the run's or population's own folder.

    Raises:
      SettingsError: the folders hold neither runs nor a single population.
    """
    populations = [folder for folder in folders if is_population(pathlib.Path(folder))]
    if not populations:
        return of_runs(run.load(folders), output)
    if len(folders) > 1:
        raise SettingsError(
            f"--run_dir names {populations[0]}, which holds a population, and others beside it: a "
            "page is of one population, or of runs."
        )
    return population_page.page_of(population.load(pathlib.Path(folders[0])), output)


def of_runs(runs: Sequence[Run], output: pathlib.Path | None = None) -> Page:
    """The page of a run, which goes into its own folder; or of several, into the first one's."""
    own = runs[0].settings.folder.report
    folder = output or (own if len(runs) == 1 else own / "comparison")
    lines = run.lines(runs)
    legend = [(line.label, line.colour) for line in lines]
    page = Page(", ".join(each.name for each in runs), folder, legend)
    results.summary(page, lines)
    results.curves(page, lines)
    results.tasks(page, lines)
    results.evaluations(page, runs)
    learning.throughput(page, lines)
    learning.replay(page, lines)
    learning.bands(page, lines)
    learning.groups(page, lines)
    learning.metrics(page, lines)
    learning.settings(page, runs)
    results.commands(page, runs)
    return page
