"""Writes the tables of what the benchmarks measured: python -m benchmarks.performance

docs/data/performance.jsonl holds the last line of each benchmark that was run:

    python -m benchmarks.learner --agent=r2d2 | tail -1 >> docs/data/performance.jsonl

The tables of docs/performance.md and README.md are made of it, no number in them by hand;
docs/data/performance_rows.csv names the figures and the command of each row.
"""

import csv
import pathlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import study
from benchmarks.study import DOCS, markdown, replace_block

DATA = DOCS / "data/performance.jsonl"

Line = Mapping[str, Any]


class Row(NamedTuple):
    """One row of a table. Its command decides which lines it is made of.

    `ours`, `other` and `ratio` name figures of those lines; an empty name leaves its cell empty.
    """

    table: str  # `headline`, `more` or `gpu`
    text: str
    command: str  # what follows `python -m benchmarks.`
    ours: str
    other: str = ""
    ratio: str = ""
    target: str = ""


def rows() -> list[Row]:
    """The rows of all tables."""
    with (DOCS / "data/performance_rows.csv").open(newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def select(lines: Sequence[Line], command: str) -> list[Line]:
    """The lines that a command printed, whatever the order of its flags."""
    wanted = sorted(shlex.split(f"python -m benchmarks.{command}"))
    return [line for line in lines if sorted(shlex.split(line["command"])) == wanted]


def table(rows: Iterable[Row], lines: Sequence[Line]) -> str:
    """In Markdown. A row whose command printed no line is left out."""
    body = []
    for row in rows:
        if found := select(lines, row.command):
            cells = [_cell(name, found) for name in (row.ours, row.other, row.ratio)]
            body.append([row.text, *cells, row.target, f"`{row.command}`"])
    head = ["", "here", "rival or roof", "ratio", "target", "command"]
    return markdown(head, body) if body else ""


def _cell(name: str, lines: Sequence[Line]) -> str:
    """The figure of every line: `2,905 / 2,911 frames/s`."""
    if not name:
        return ""
    found = [line["figures"][name] for line in lines]
    return f"{' / '.join(_number(each['value']) for each in found)} {found[0]['unit']}"


def _number(value: float) -> str:
    """Three digits, more only before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def profiles(lines: Sequence[Line]) -> str:
    """In Markdown: where each learner's time goes, a row for each line of `benchmarks.profile`."""
    found = [line for line in lines if line["benchmark"] == "profile"]
    if not found:
        return ""
    kinds = [name for name, shown in found[0]["figures"].items() if shown["unit"] == "%"]
    body = []
    for line in found:
        config = line["settings"]["config"]
        precision = config.get("precision", "float32")
        name = f"{_network(line['settings'])}, {precision}, batch {config['batch_size']}"
        shares = [f"{line['figures'][kind]['value']:.1f}" for kind in kinds]
        body.append([name, _cell("step", [line]), *shares])
    return markdown(["", "step", *(f"{kind}, %" for kind in kinds)], body)


def _network(settings: Mapping[str, Any]) -> str:
    config = settings["config"]
    kind = config.get("core", "lstm").upper()
    core = f", {kind} {config['lstm_size']}" if config["lstm_size"] else ""
    return f"{settings['agent']}, {config['torso']}{core}"


def written(page: pathlib.Path, lines: Sequence[Line]) -> str:
    """A page with its tables."""
    known = rows()
    in_docs = page.parent == DOCS
    shown = [row for row in known if row.table in ("headline", "more" if in_docs else "")]
    text = replace_block(page.read_text(), "table", table(shown, lines))
    if in_docs:
        of_gpu = [row for row in known if row.table == "gpu"]
        text = replace_block(text, "gpu", table(of_gpu, lines))
        text = replace_block(text, "profiles", profiles(lines))
    return text


PAGES = (DOCS / "performance.md", DOCS.parent / "README.md")


def main() -> None:
    lines = study.read_lines(DATA)
    for page in PAGES:
        page.write_text(written(page, lines))


if __name__ == "__main__":
    study.positional(__doc__)
    main()
