"""Draws what the benchmarks measured and writes the tables: python -m benchmarks.performance

docs/data/performance.jsonl holds the last line of each benchmark that was run:

    python -m benchmarks.learner --agent=r2d2 | tail -1 >> docs/data/performance.jsonl

The tables of docs/performance.md and README.md are made of it, no number in them by hand;
docs/data/performance_rows.csv names the figures and the command of each row.
"""

import csv
import pathlib
import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import figures, study
from benchmarks.figures import Line as Curve
from benchmarks.figures import Panel
from benchmarks.study import DOCS, markdown, replace_block

DATA = DOCS / "data/performance.jsonl"
ROOFLINE = DOCS / "images/performance_roofline.png"
COST = DOCS / "images/performance_cost.png"
_IMAGES = f"""![Useful work of each learner's step against the roof](images/{ROOFLINE.name})

![Cost of a step, a frame and an item against how many there are](images/{COST.name})"""

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


Points = tuple[list[int], list[float]]


def curve(lines: Sequence[Line], benchmark: str, prefix: str) -> Points:
    """R2D2's figures named `<prefix>, <count>` against their counts, of the paper's settings."""
    paper = {"agent": "r2d2", "preset": "paper"}.items()
    return _medians(
        (int(name.removeprefix(f"{prefix}, ")), found["value"])
        for line in lines
        if line["benchmark"] == benchmark and paper <= line["settings"].items()
        for name, found in line["figures"].items()
        if name.rpartition(", ")[0] == prefix
    )


def by_batch_size(lines: Sequence[Line], name: str) -> Points:
    """A learner's figure against its batch size."""
    return _medians(
        (line["settings"]["config"]["batch_size"], line["figures"][name]["value"]) for line in lines
    )


def _medians(points: Iterable[tuple[int, float]]) -> Points:
    """The median over all lines, by count."""
    values: dict[int, list[float]] = {}
    for count, value in points:
        values.setdefault(count, []).append(value)
    return sorted(values), [statistics.median(values[count]) for count in sorted(values)]


def learners(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of `benchmarks.learner` with the paper's settings, by network and precision.

    Those of accelerators would leave no room for the others.
    """
    found: dict[str, list[Line]] = {}
    for line in lines:
        settings = line["settings"]
        of_processor = line["benchmark"] == "learner" and not line["machine"]["accelerators"]
        if of_processor and settings["preset"] == "paper":
            label = f"{_network(settings)}, {settings['roof'].split('_')[1]}"
            found.setdefault(label, []).append(line)
    return dict(sorted(found.items()))


def draw_roofline(lines: Sequence[Line], path: pathlib.Path) -> None:
    """Useful work a second against the batch size, below the matrix product, by precision."""
    panels = []
    of_learners = learners(lines)
    for precision in ("float32", "bfloat16"):
        points = {
            label.removesuffix(f", {precision}"): by_batch_size(found, "useful_work")
            for label, found in of_learners.items()
            if label.endswith(precision)
        }
        roof = statistics.median(
            line["figures"][f"matmul_{precision}"]["value"]
            for found in of_learners.values()
            for line in found
            if f"matmul_{precision}" in line["figures"]
        )
        sizes = _counts(points)
        level = Curve(
            [sizes[0], sizes[-1]],
            [roof, roof],
            f"matrix product, {precision}",
            style=dict(color="black", linestyle="--"),
        )
        words = dict(title=precision, ylabel="useful work, GFLOP/s", ylim=(0, None))
        panels.append(_panel(points, "batch size", level, **words))
    figures.draw(panels, path, (9, 3.4), sharey=True, drawn_of=list(lines))


def draw_cost(lines: Sequence[Line], path: pathlib.Path) -> None:
    """Microseconds for a step of acting, a frame learned from and an item sampled."""
    acting = {name: curve(lines, "actor", name) for name in ("environments", "inference", "both")}
    learning = {name: by_batch_size(of, "learner") for name, of in learners(lines).items()}
    replay = {name: curve(lines, "replay", name) for name in ("sampled", "batches", "inserted")}
    panels = [
        _panel(
            {name: (counts, [1e6 / rate for rate in of]) for name, (counts, of) in rates.items()},
            xlabel,
            title=title,
            yscale="log",
        )
        for rates, xlabel, title in (
            (acting, "environments", "acting, µs a step"),
            (learning, "batch size", "learning, µs a frame"),
            (replay, "shards", "replay, µs an item"),
        )
    ]
    figures.draw(panels, path, (11, 3.4), drawn_of=list(lines))


def _counts(points: Mapping[str, Points]) -> list[int]:
    return sorted({count for counts, _ in points.values() for count in counts})


def _panel(points: Mapping[str, Points], xlabel: str, *others: Curve, **words: Any) -> Panel:
    """Curves over numbers that double."""
    style = dict(marker="o", markersize=4)
    lines = [Curve(x, y, label, style=style) for label, (x, y) in points.items() if x]
    ticks = _counts(points)
    axis = dict(xscale="log", xlabel=xlabel, xticks=ticks, xticklabels=map(str, ticks))
    return Panel([*lines, *others], axis | words, legend=dict(fontsize=7))


def written(page: pathlib.Path, lines: Sequence[Line]) -> str:
    """A page with its table, and the images where it shows them."""
    known = rows()
    in_docs = page.parent == DOCS
    shown = [row for row in known if row.table in ("headline", "more" if in_docs else "")]
    text = replace_block(page.read_text(), "table", table(shown, lines))
    if in_docs:
        text = replace_block(text, "images", _IMAGES if lines else "")
        of_gpu = [row for row in known if row.table == "gpu"]
        text = replace_block(text, "gpu", table(of_gpu, lines))
        text = replace_block(text, "profiles", profiles(lines))
    return text


PAGES = (DOCS / "performance.md", DOCS.parent / "README.md")


def main() -> None:
    lines = study.read_lines(DATA)
    if lines:
        draw_roofline(lines, ROOFLINE)
        draw_cost(lines, COST)
    for page in PAGES:
        page.write_text(written(page, lines))


if __name__ == "__main__":
    study.positional(__doc__)
    main()
