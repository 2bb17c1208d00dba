"""Makes a page of a run, of runs side by side, or of a population.

python -m launch.report --run_dir=runs/pong
"""

import os
import pathlib
from collections.abc import Sequence

from absl import flags

from launch import command_line, opening
from population.folder import is_population
from run_folder import settings
from run_folder.settings import SettingsError

_OUTPUT = flags.DEFINE(
    command_line.FolderParser(),
    "output",
    None,
    "Folder for the page and its figures; by default report/ in the run's or population's.",
)
_SECTIONS = {"What is shown": ("run_dir", "trust"), "Where": ("output",)}


def _folders() -> list[str]:
    """The folders that the command line names. Raises SettingsError."""
    if not (named := command_line.RUN_DIR.value):
        raise SettingsError("--run_dir must be given: a run's folder, several with commas.")
    folders = named.split(",")
    if "" in folders:
        raise SettingsError(f"--run_dir must be folders with commas between them, got {named!r}.")
    if _OUTPUT.value == "":
        raise SettingsError("--output must name a folder, got ''.")
    for folder in folders:
        opening.check_here(folder)
        if not is_population(path := pathlib.Path(folder)):
            with opening.trusting():
                settings.load(path)
    return folders


@command_line.ending()
def main(_: Sequence[str]) -> None:
    folders = _folders()
    pages = command_line.later("analysis.report.pages")
    output = pathlib.Path(_OUTPUT.value) if _OUTPUT.value else None
    with opening.trusting():
        path = pages.write(folders, output)
    print(f"Report: {path}")


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # a run may need the GPU
    command_line.run(main, _SECTIONS)
