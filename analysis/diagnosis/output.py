"""A measurement's rows, as a table on the terminal and as a CSV file."""

import csv
import dataclasses
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table

_WIDTH = 80  # where nobody says how wide the lines may be


def write(path: pathlib.Path, rows: Sequence[Any]) -> None:
    """Writes dataclasses of one type, their attributes the columns; None is empty."""
    columns = [field.name for field in dataclasses.fields(rows[0])]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(dataclasses.astuple(row) for row in rows)


def show(console: Console, title: str, rows: Sequence[Any]) -> None:
    """Prints the same rows, numbers to four digits: a table for each task where they have one.

    A task's name would be a tenth column, for which a terminal of 80 has no room.
    """
    groups = itertools.groupby(rows, lambda row: getattr(row, "task", None))
    for task, of_task in groups:
        _show(console, f"{title}, {task}" if task else title, list(of_task))


def _show(console: Console, title: str, rows: Sequence[Any]) -> None:
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    shown = [field.name for field in dataclasses.fields(rows[0]) if field.name != "task"]
    for name in shown:
        is_text = isinstance(getattr(rows[0], name), str)
        justify: JustifyMethod = "left" if is_text else "right"
        table.add_column(name.replace("_", "\n"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(_text(getattr(row, name)) for name in shown))
    console.print(table, width=None if console.is_terminal else _WIDTH)


def _text(value: Any) -> str:
    if value is None:
        return "all"
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else value
    )
