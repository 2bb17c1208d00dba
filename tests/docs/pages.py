"""The commands that README.md and docs/*.md tell a reader to type, as a shell would run them."""

import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = (README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SHELLS = ("", "bash", "sh")
_INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
_INLINE = re.compile(r"`([^`]+)`")
_BEGINS = re.compile(r"(python -m|make|for \w+ in)\s")
_PLACEHOLDER = re.compile(r"<\w+>")

# The shell does its own loops, variables, quotes and comments. What it would call is written down
# instead, its words and the command each ended by a control character that no page has.
_RECORD = r"""
exec 3>&1 1>/dev/null
set -u
record() { printf '%s\x1f' "$@" >&3; printf '\x1e' >&3; }
python() { record python "$@"; }
make() { record make "$@"; }
tail() { while read -r _; do :; done; }
PATH=
"""

Words = tuple[str, ...]  # a program, python or make, and its arguments


def commands(text: str) -> list[Words]:
    """The commands of a page, each once: first those in blocks, then those in sentences.

    Raises:
      ValueError: for a block that is no script.
    """
    scripts = [*_blocks(text), *_inline(text)]
    return list(dict.fromkeys(words for script in scripts for words in _recorded(script)))


def section(text: str, title: str) -> str:
    """The text under a heading of the second level.

    Raises:
      ValueError: when there is none of this title.
    """
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"Expected a heading '## {title}'.")
    return found[1]


def _blocks(text: str) -> Iterator[str]:
    fenced = [block for language, block in _FENCED.findall(text) if language in _SHELLS]
    for block in (*fenced, *_INDENTED.findall(_FENCED.sub("", text))):
        if any(_BEGINS.match(line.strip() + " ") for line in block.splitlines()):
            yield block


def _inline(text: str) -> Iterator[str]:
    """Commands in sentences. One that is only named, without arguments, need only exist."""
    outside = _INDENTED.sub("", _FENCED.sub("", text))
    for code in _INLINE.findall(outside):
        if _BEGINS.match(code + " ") and not code.endswith("."):  # which a name would follow
            words = code.split()
            named = words[0] == "python" and len(words) == 3
            yield " ".join([*words, "--help"] if named else words)


def _recorded(script: str) -> Iterator[Words]:
    """The commands that a script would run."""
    script = _PLACEHOLDER.sub("placeholder", script)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "docs" / "data").mkdir(parents=True)  # what is written into it
        shell = subprocess.run(
            ["bash", "-c", _RECORD + script],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},  # or it complains in its user's language
            capture_output=True,
            text=True,
            check=False,
        )
    if shell.returncode or shell.stderr:
        raise ValueError(f"{script}\nis no script: {shell.stderr}")
    for line in shell.stdout.split("\x1e")[:-1]:
        yield tuple(line.split("\x1f")[:-1])
