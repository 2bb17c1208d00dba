"""The pages that `launch.report` writes: of a run, of runs side by side, of a population."""

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from analysis.report import (
    differences,
    evaluations,
    groups,
    learning,
    page,
    population,
    population_decisions,
    population_scores,
    population_summary,
    population_tree,
    population_values,
    replaying,
    returns,
    speed,
    summary,
    tasks,
)
from analysis.report.page import Section
from analysis.report.population import Members
from analysis.report.run import Run, lines, load
from population.folder import is_population
from run_folder import places
from run_folder.settings import SettingsError


class Page(NamedTuple):
    """What is to be written.

    Attributes:
      title: of the page.
      sections: in order.
      folder: where it goes.
    """

    title: str
    sections: list[Section]
    folder: pathlib.Path


def of_runs(runs: Sequence[Run], output: pathlib.Path | None = None) -> Page:
    """The page of a run, which goes into its own folder; or of several, into the first one's.

    Args:
      runs: what is shown.
      output: another folder to go into.
    """
    own = runs[0].settings.folder.report
    folder = output or (own if len(runs) == 1 else own / "comparison")
    drawn = lines(runs)
    legend = [(line.label, line.colour) for line in drawn]
    sections = [
        summary.section(drawn),
        returns.section(drawn, legend),
        tasks.section(drawn, legend),
        evaluations.section(runs, folder),
        speed.section(drawn, legend),
        replaying.section(drawn, legend),
        *learning.bands(drawn, legend),
        *groups.sections(drawn, legend),
        learning.metrics(drawn, legend),
        differences.section(runs),
        summary.commands(runs),
    ]
    return Page(", ".join(run.name for run in runs), sections, folder)


def of_population(members: Members, output: pathlib.Path | None = None) -> Page:
    """The page of a population; members that stay apart have no family tree.

    Args:
      members: what is shown.
      output: another folder to go into than the population's own.
    """
    sections = [
        population_summary.section(members),
        population_scores.section(members),
        population_values.section(members),
        *([population_tree.section(members)] if members.settings.evolves else []),
        population_scores.in_the_end(members),
        population_decisions.section(members),
        population_summary.commands(members),
    ]
    name = members.folder.path.resolve().name
    return Page(name, sections, output or members.folder.report)


def of_folders(folders: Sequence[str], output: pathlib.Path | None = None) -> Page:
    """The page of what is in folders.

    Args:
      folders: of runs, or of a population.
      output: where it goes; by default into the run's or population's own folder.

    Raises:
      SettingsError: they hold nothing of which there is a page.
    """
    populations = [folder for folder in folders if is_population(pathlib.Path(folder))]
    if not populations:
        return of_runs(load(folders), output)
    if len(folders) > 1:
        raise SettingsError(
            f"--run_dir names {populations[0]}, which holds a population, and others beside it: a "
            "page is of one population, or of runs."
        )
    return of_population(population.load(pathlib.Path(folders[0])), output)


def write(made: Page) -> pathlib.Path:
    """Writes a page, and each of its figures as a PNG file beside it; returns the page's path.

    Raises:
      SettingsError: one of these files is a link.
      OSError: the folder cannot be written.
    """
    charts = [chart for section in made.sections for chart in section.charts]
    figures = {made.folder / f"{chart.name}.png": chart.png for chart in charts}
    path = made.folder / "index.html"
    places.refuse_links(*figures, path)
    made.folder.mkdir(parents=True, exist_ok=True)
    for figure, png in figures.items():
        figure.write_bytes(png)
    path.write_text(page.document(made.title, made.sections))
    return path
