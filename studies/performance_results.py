"""Lines that the benchmarks printed, and the table that they make."""

import json
import pathlib
import shlex
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Line = Mapping[str, Any]


class Row(NamedTuple):
    """One row of the table. Its command decides which lines it is made of.

    `ours`, `other` and `ratio` name figures of those lines; an empty name leaves its cell empty.
    """

    text: str
    command: str  # what follows `python -m benchmarks.`
    ours: str
    other: str = ""
    ratio: str = ""
    target: str = ""


def read(path: pathlib.Path) -> list[Line]:
    """The lines of a file, each as one benchmark ended with; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_text().splitlines() if text]


def select(lines: Sequence[Line], command: str) -> list[Line]:
    """Those that a command printed, in whatever order its flags were."""
    wanted = sorted(shlex.split(f"python -m benchmarks.{command}"))
    return [line for line in lines if sorted(shlex.split(line["command"])) == wanted]


def table(rows: Sequence[Row], lines: Sequence[Line]) -> str:
    """In Markdown. A row whose command printed no line is left out."""
    found = [(row, select(lines, row.command)) for row in rows]
    body = [_markdown(row, selected) for row, selected in found if selected]
    if not body:
        return ""
    head = ["| | here | peer or roof | ratio | target | command |", "|---|---|---|---|---|---|"]
    return "\n".join(head + body)


def _markdown(row: Row, lines: Sequence[Line]) -> str:
    cells = [_cell(name, lines) for name in (row.ours, row.other, row.ratio)]
    return "| " + " | ".join([row.text, *cells, row.target, f"`{row.command}`"]) + " |"


def _cell(name: str, lines: Sequence[Line]) -> str:
    """The figure of every line: `2,905 / 2,911 frames/s`."""
    if not name:
        return ""
    figures = [line["figures"][name] for line in lines]
    values = " / ".join(_number(found["value"]) for found in figures)
    return f"{values} {figures[0]['unit']}"


def _number(value: float) -> str:
    """Three digits, more only before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def profiles(lines: Sequence[Line]) -> str:
    """In Markdown: where each learner's time goes, a row for each line of `benchmarks.profile`."""
    found = [line for line in lines if line["benchmark"] == "profile"]
    if not found:
        return ""
    kinds = [name for name, shown in found[0]["figures"].items() if shown["unit"] == "%"]
    rows = [
        [_profiled(line["settings"]), _cell("step", [line])]
        + [f"{line['figures'][kind]['value']:.1f}" for kind in kinds]
        for line in found
    ]
    head = ["", "step", *(f"{kind}, %" for kind in kinds)]
    rule = ["---"] * len(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *rows])


def _profiled(settings: Mapping[str, Any]) -> str:
    config = settings["config"]
    precision = config.get("precision", "float32")
    return f"{_network(settings)}, {precision}, batch {config['batch_size']}"


def curve(lines: Sequence[Line], benchmark: str, prefix: str) -> tuple[list[int], list[float]]:
    """A benchmark's figures named `<prefix>, <count>` against their counts, of R2D2.

    Of the paper's settings; medians over all lines.
    """
    values: dict[int, list[float]] = {}
    paper = {"agent": "r2d2", "preset": "paper"}.items()
    for line in lines:
        if line["benchmark"] != benchmark or not paper <= line["settings"].items():
            continue
        for name, found in line["figures"].items():
            start, _, count = name.rpartition(", ")
            if start == prefix:
                values.setdefault(int(count), []).append(found["value"])
    return _medians(values)


def by_batch_size(lines: Sequence[Line], name: str) -> tuple[list[int], list[float]]:
    """A learner's figure against its batch size: the medians over all lines."""
    values: dict[int, list[float]] = {}
    for line in lines:
        size = line["settings"]["config"]["batch_size"]
        values.setdefault(size, []).append(line["figures"][name]["value"])
    return _medians(values)


def _medians(values: Mapping[int, Sequence[float]]) -> tuple[list[int], list[float]]:
    counts = sorted(values)
    return counts, [statistics.median(values[count]) for count in counts]


def learners(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of `benchmarks.learner` with the paper's settings, by what was measured.

    Those of accelerators would leave no room for the others.
    """
    found: dict[str, list[Line]] = {}
    for line in lines:
        of_processor = line["benchmark"] == "learner" and not line["machine"]["accelerators"]
        if of_processor and line["settings"]["preset"] == "paper":
            found.setdefault(_label(line["settings"]), []).append(line)
    return found


def median(lines: Sequence[Line], name: str) -> float | None:
    """Of one figure over all lines that have it; None where none has."""
    values = [line["figures"][name]["value"] for line in lines if name in line["figures"]]
    return statistics.median(values) if values else None


def _label(settings: Mapping[str, Any]) -> str:
    return f"{_network(settings)}, {settings['roof'].split('_')[1]}"


def _network(settings: Mapping[str, Any]) -> str:
    config = settings["config"]
    core = f", LSTM {config['lstm_size']}" if config["lstm_size"] else ""
    return f"{settings['agent']}, {config['torso']}{core}"


def replace_block(text: str, name: str, block: str) -> str:
    """A page with what stands between two comments of that name replaced.

    Raises:
      ValueError: when the page lacks one of them.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"Expected one {begin} and one {end} in the page.")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n\n{block}\n\n{end}{rest.partition(end)[2]}"
