"""Follows README.md to an agent that was trained, resumed, evaluated and filmed.

    python -m studies.walkthrough FOLDER              minutes: what the page says
    python -m studies.walkthrough FOLDER --scale=0.1  a minute, as a test does it

The commands are those of the page, word for word, but that their run folders are in FOLDER. Each
must end well before the next begins.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence

from studies import pages

SECTION = "On one machine"
SCALED = ("--max_actor_steps", "--episodes")


def commands(text: str, folder: str, scale: float) -> Iterator[list[str]]:
    """The commands of a page's section.

    Args:
      text: the page.
      folder: what the page's run folders, which are relative, are put into.
      scale: multiplies steps and episodes.
    """
    for _, *arguments in pages.commands(pages.section(text, SECTION)):
        yield [sys.executable, *_changed(arguments, folder, scale)]


def _changed(words: Sequence[str], folder: str, scale: float) -> Iterator[str]:
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in SCALED:
            value = str(max(1, round(int(value) * scale)))
        elif flag == "--run_dir":
            value = str(pathlib.Path(folder, value))
        yield f"{flag}{equals}{value}"


def main() -> None:
    """Runs them."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.walkthrough",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0, help="of steps and episodes: 1")
    flags = parser.parse_args()
    text = pages.README.read_text()
    for command in commands(text, str(flags.folder.resolve()), flags.scale):
        print(f"$ {shlex.join(command)}", flush=True)
        subprocess.run(command, cwd=pages.ROOT, check=True)


if __name__ == "__main__":
    main()
