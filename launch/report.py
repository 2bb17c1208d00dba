"""Makes a page of a run, or of several side by side: python -m launch.report --run_dir=runs/pong"""

import os

os.environ.setdefault(
    "TF_CPP_MIN_LOG_LEVEL", "2"
)  # before TensorFlow is imported, by whatever follows

import pathlib
import sys
from collections.abc import Sequence

import tensorflow as tf
from absl import flags

from analysis.report import (
    differences,
    evaluations,
    groups,
    learning,
    page,
    replaying,
    returns,
    speed,
    summary,
    tasks,
)
from analysis.report.page import Section
from analysis.report.run import Run, lines, load
from launch import command_line
from run_folder.settings import SettingsError

_OUTPUT = flags.DEFINE(
    command_line.FolderParser(),
    "output",
    None,
    "Folder for the page and its figures; by default report/ in the run's.",
)
_SECTIONS = {"What is shown": ("run_dir",), "Where": ("output",)}


def sections(runs: Sequence[Run]) -> list[Section]:
    """The page's sections, in order."""
    drawn = lines(runs)
    legend = [(line.label, line.colour) for line in drawn]
    return [
        summary.section(drawn),
        returns.section(drawn, legend),
        tasks.section(drawn, legend),
        evaluations.section(runs),
        speed.section(drawn, legend),
        replaying.section(drawn, legend),
        *learning.bands(drawn, legend),
        *groups.sections(drawn, legend),
        learning.metrics(drawn, legend),
        differences.section(runs),
        summary.commands(runs),
    ]


def default_output(runs: Sequence[Run]) -> pathlib.Path:
    """Where the page goes: into the run's own folder; a comparison into the first one's."""
    folder = runs[0].settings.folder.report
    return folder if len(runs) == 1 else folder / "comparison"


def write(runs: Sequence[Run], folder: pathlib.Path) -> pathlib.Path:
    """Writes the page, and each of its figures as a PNG file beside it; returns the page's path.

    Raises:
      OSError: the folder cannot be written.
    """
    parts = sections(runs)
    folder.mkdir(parents=True, exist_ok=True)
    for section in parts:
        for chart in section.charts:
            (folder / f"{chart.name}.png").write_bytes(chart.png)
    path = folder / "index.html"
    path.write_text(page.document(", ".join(run.name for run in runs), parts))
    return path


def main(_: Sequence[str]) -> None:
    try:
        if not command_line.RUN_DIR.value:
            raise SettingsError("--run_dir must be given: a run's folder, several with commas.")
        folders = command_line.RUN_DIR.value.split(",")
        if "" in folders:
            raise SettingsError(
                "--run_dir must be folders with commas between them, "
                f"got {command_line.RUN_DIR.value!r}."
            )
        if _OUTPUT.value == "":
            raise SettingsError("--output must name a folder, got ''.")
        runs = load(folders)
    except SettingsError as error:
        command_line.fail(str(error))
    folder = pathlib.Path(_OUTPUT.value) if _OUTPUT.value else default_output(runs)
    try:
        print(f"Report: {write(runs, folder)}")
    except OSError as error:
        command_line.fail(f"--output={folder} cannot be written: {error.strerror}.")
    sys.exit(0)


if __name__ == "__main__":
    tf.config.set_visible_devices([], "GPU")  # a run may need it
    command_line.run(main, _SECTIONS)
