"""A measurement's rows, as a table on the terminal and as a CSV file."""

import csv
import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

_WIDTH = 120  # where nobody says how wide the lines may be


def write(path: pathlib.Path, rows: Sequence[Any]) -> None:
    """Writes dataclasses of one type, their attributes the columns; None is empty."""
    columns = [field.name for field in dataclasses.fields(rows[0])]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(dataclasses.astuple(row) for row in rows)


def show(console: Console, title: str, rows: Sequence[Any]) -> None:
    """Prints the same rows, numbers to four digits."""
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for field in dataclasses.fields(rows[0]):
        is_text = isinstance(getattr(rows[0], field.name), str)
        name = field.name.replace("_", " ")
        table.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        table.add_row(*(_text(value) for value in dataclasses.astuple(row)))
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
