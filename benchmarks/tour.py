"""Draws the pictures of docs/tour.md: python -m benchmarks.tour RUN_DIR FOLDER

RUN_DIR holds a run that has ended. FOLDER gets the live view as it was last drawn, and the run's
report as a wide window and a phone in the dark show it. It takes Chromium.
"""

import errno
import io
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from rich.console import Console

from benchmarks import study
from launch.local import view
from run_folder import progress, settings

COLUMNS = 130  # of the terminal
# The name of a picture of the report, and how Chromium is to show it.
WINDOWS = {
    "report": ("--window-size=1000,1020",),
    "report-phone": ("--window-size=500,1020", "--blink-settings=preferredColorScheme=0"),
}
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_QUIETLY = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # from an address


def draw(run_dir: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the pictures; returns their paths.

    Raises:
      SettingsError: there is no run.
      FileNotFoundError: the run has told of no progress, or there is no report of it or no browser.
      subprocess.CalledProcessError: the browser could not show it.
    """
    run = settings.load(run_dir)
    page = run.folder.report / "index.html"
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None or not page.exists():
        raise FileNotFoundError(
            errno.ENOENT, os.strerror(errno.ENOENT), str(page if browser else _BROWSERS[0])
        )
    written = [folder / "tour-view.svg"]
    written[0].write_text(live_view(run))
    for name, window in WINDOWS.items():
        written.append(folder / f"tour-{name}.png")
        with tempfile.TemporaryDirectory() as profile:
            shot = f"--screenshot={written[-1].resolve()}"
            told = (*_QUIETLY, *window, f"--user-data-dir={profile}", shot, page.resolve().as_uri())
            subprocess.run((browser, *told), check=True, stderr=subprocess.DEVNULL)
    return written


def live_view(run: settings.Settings) -> str:
    """The last picture in the launching terminal, as SVG.

    Raises:
      FileNotFoundError: the run has told of no progress.
    """
    state = progress.read(run.path)
    if state is None:
        raise FileNotFoundError(run.folder.progress)
    console = Console(width=COLUMNS, record=True, force_terminal=True, file=io.StringIO())
    title = f"{run.agent} on {run.env}, {run.run_dir}"
    shown = view.View(title, console, view.earlier(run.folder))
    console.print(shown.drawn(state | {"reason": ""}))
    return _FONT.sub("", console.export_svg(title="python -m launch.train"))


if __name__ == "__main__":
    run_dir, folder = map(pathlib.Path, study.positional(__doc__, "run_dir", "folder"))
    for path in draw(run_dir, folder):
        print(path)
