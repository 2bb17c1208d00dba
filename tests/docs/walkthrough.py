"""Follows README.md to an agent that was trained, resumed, evaluated and filmed.

    python -m tests.docs.walkthrough FOLDER              minutes: what the page says
    python -m tests.docs.walkthrough FOLDER --scale=0.1  a minute, as a test does it

The commands are the page's, word for word, but with their run folders in FOLDER. Each must end well
before the next begins.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Iterator

from tests.docs import pages

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
        yield [sys.executable, *(_changed(word, folder, scale) for word in arguments)]


def _changed(word: str, folder: str, scale: float) -> str:
    flag, equals, value = word.partition("=")
    if flag in SCALED:
        value = str(max(1, round(int(value) * scale)))
    elif flag == "--run_dir":
        value = str(pathlib.Path(folder, value))
    return f"{flag}{equals}{value}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.docs.walkthrough",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0, help="of steps and episodes: 1")
    asked = parser.parse_args()
    for command in commands(pages.README.read_text(), str(asked.folder.resolve()), asked.scale):
        print(f"$ {shlex.join(command)}", flush=True)
        subprocess.run(command, cwd=pages.ROOT, check=True)
