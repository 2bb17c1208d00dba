"""In which settings runs differ: from each other, or a single one from its paper's preset."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.report import page
from analysis.report.page import Section
from analysis.report.run import Run
from environments import suites
from run_folder import catalogue, settings
from run_folder.settings import Settings

_NAMES_OF_RUN = ("run_dir", "preset")


def section(runs: Sequence[Run]) -> Section:
    """A table of the fields that differ, and no others."""
    columns = {run.name: flat(run.settings) for run in runs}
    if len(runs) == 1:
        columns = {"paper": flat(as_in_paper(runs[0].settings)), **columns}
        note = "What this run sets otherwise than its paper."
    else:
        note = "What differs between the runs. All else is the same."
    rows = differing(list(columns.values()))
    body = page.table(["setting", *columns], rows) if rows else page.paragraph("Nothing.")
    return Section("Settings", page.paragraph(note) + body)


def differing(columns: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """A row for each field whose value is not the same everywhere: its name, then its values."""
    fields = dict.fromkeys(field for column in columns for field in column)
    rows = [[field, *(column.get(field, "–") for column in columns)] for field in fields]
    return [row for row in rows if len(set(row[1:])) > 1]


def flat(run: Settings) -> dict[str, str]:
    """Every setting of a run as text.

    The fields of a single agent are named without it: so `r2d2` can be compared with
    `r2d2_feedforward`.
    """
    values = dataclasses.asdict(run)
    configs = values.pop("configs")
    fields = {
        (field if len(configs) == 1 else f"{agent}.{field}"): value
        for agent, config in configs.items()
        for field, value in config.items()
    }
    kept = {name: value for name, value in values.items() if name not in _NAMES_OF_RUN}
    return {name: _text(value) for name, value in (kept | fields).items()}


def as_in_paper(run: Settings) -> Settings:
    """The same agents on the same tasks, with what `--preset=paper` stands for.

    Who acts, and where, is no matter of papers and stays. So does what cannot be played here: its
    engine may be on another machine.
    """
    agents = catalogue.named(run.agent)
    values, made = settings.of_preset("paper", run.env, agents, run.acting, {})
    if suites.made_singly(run.tasks[0]):
        made = {name: _nearest(run, name, config) for name, config in made.items()}
    return dataclasses.replace(run, **values, configs=made)


def _nearest(run: Settings, agent: str, paper: Any) -> Any:
    """Of an agent's papers the one that a run is most like, where nobody looks at what it played.

    Args:
      run: its settings.
      agent: its name in the run.
      paper: what is known by the name of the environment alone.
    """
    entry, own = run.entry(agent), run.configs[agent]
    if entry is catalogue.NOT_IMPORTED:
        return own
    papers = [each for each in (paper, entry.control, entry.control_image) if each is not None]
    said = dataclasses.asdict(own).items()
    return max(papers, key=lambda each: sum(getattr(each, name) == value for name, value in said))


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
