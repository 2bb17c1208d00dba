"""Reads a run's CSV files into columns, without rows that are broken or were undone."""

import array
import csv
import dataclasses
import os
import pathlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from run_folder.texts import reading

COUNTERS = ("learner_steps", "actor_steps", "walltime")
"""The columns that only grow, unless a run went on from a checkpoint older than its last rows."""

_SHOWN = 200  # characters of a line, in a sentence


@dataclasses.dataclass(frozen=True)
class Log:
    """A CSV file's rows, column by column."""

    numbers: Mapping[str, np.ndarray]  # name -> `[rows]` float64
    texts: Mapping[str, np.ndarray]  # name -> `[rows]` of strings

    def __len__(self) -> int:
        return len(next(iter(self.numbers.values()), ()))

    def __getitem__(self, column: str) -> np.ndarray:
        """A column of numbers, `[rows]`; NaN where the file has none of this name."""
        return self.numbers.get(column, np.full(len(self), np.nan))

    def where(self, kept: np.ndarray) -> "Log":
        """The rows that a `[rows]` bool picks."""
        return Log(
            {name: column[kept] for name, column in self.numbers.items()},
            {name: column[kept] for name, column in self.texts.items()},
        )

    def defined(self, *columns: str) -> list[np.ndarray]:
        """Columns, each without the rows in which one of them is undefined."""
        found = [self[name] for name in columns]
        kept = np.isfinite(found).all(axis=0)
        return [column[kept] for column in found]

    def last(self, column: str) -> float:
        """A column's last defined value, NaN where there is none."""
        (values,) = self.defined(column)
        return float(values[-1]) if len(values) else float("nan")


def read(
    path: pathlib.Path,
    texts: Sequence[str] = (),
    *,
    last_bytes: int | None = None,
    most_rows: int | None = None,
) -> Log:
    """The rows of a file that count; none where there is no such file.

    A process that was killed may leave a part of a row. A run that was killed goes on from its last
    checkpoint: what it had logged since never happened, as far as the learner knows.

    Args:
      path: of the file.
      texts: the columns that hold no numbers.
      last_bytes: how much of the end is read, of which the first row may be a part; None reads all.
      most_rows: how many rows are read, evenly spread over these; None reads all.

    Raises:
      SettingsError: it cannot be read, or its first line names no columns of a log.
    """
    if not path.exists():
        return Log({}, {})
    with reading(path):
        return _read(path, texts, last_bytes, most_rows)


def columns(line: str, texts: Sequence[str] = ()) -> list[str]:
    """The columns that the first line of a log names; none while it is not written as a whole.

    Raises:
      ValueError: these are no columns of a log.
    """
    header = next(rows([line]), [])
    if not line.endswith("\n") or not header:
        return []
    missing = [name for name in texts if name not in header]
    if missing or len(set(header)) < len(header) or not set(COUNTERS).intersection(header):
        wanted = ", ".join([*texts, f"at least one of {', '.join(COUNTERS)}"])
        raise ValueError(
            f"line 1 must name each column once, among them {wanted}, "
            f"got {line.rstrip()[:_SHOWN]!r}"
        )
    return header


def rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Cells of each line; none of a line that is damaged."""
    reader = csv.reader("" if "\0" in line else line for line in lines)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:  # a cell without end: like bytes of 0, what a power cut leaves
            yield []


def _read(
    path: pathlib.Path, texts: Sequence[str], last_bytes: int | None, most_rows: int | None
) -> Log:
    with path.open("rb") as file:
        header = file.readline()
        if last_bytes is not None and file.seek(0, os.SEEK_END) - last_bytes > len(header):
            file.seek(-last_bytes, os.SEEK_END)
            file.readline()
        else:
            file.seek(len(header))
        named = columns(header.decode(errors="replace"), texts)
        lines = file if most_rows is None else _spread(file, most_rows)
        log = _parse(named, rows(line.decode(errors="replace") for line in lines), texts)
    counters = [log.numbers[name] for name in COUNTERS if name in log.numbers]
    return log.where(standing(counters)) if counters else log


def _spread(file: BinaryIO, most: int) -> Iterator[bytes]:
    """So many of the lines that follow, evenly spread; of fewer all."""
    begin, end = file.tell(), file.seek(0, os.SEEK_END)
    file.seek(begin)
    for i in range(most):
        if (start := begin + (end - begin) * i // most) > file.tell():
            file.seek(start - 1)
            file.readline()  # the row that it is in
        yield file.readline()


def standing(counters: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows no later row undoes, by counting less than they do.

    Args:
      counters: `[rows]` each, at least one; a row in which one is not finite does not stand.

    Returns:
      `[rows]` bool.
    """
    stand = [counter <= np.fmin.accumulate(counter[::-1])[::-1] for counter in counters]
    return np.all([*stand, *map(np.isfinite, counters)], axis=0)


def _parse(header: Sequence[str], rows: Iterable[list[str]], texts: Sequence[str]) -> Log:
    if not header:
        return Log({}, {})
    is_text = [name in texts for name in header]
    number_columns = [i for i, text in enumerate(is_text) if not text]
    numbers = array.array("d")
    words: dict[str, list[str]] = {name: [] for name in header if name in texts}
    for row in rows:
        if len(row) != len(header):
            continue
        try:
            parsed = [float(row[i]) for i in number_columns]
        except ValueError:
            continue
        numbers.extend(parsed)
        for name, text, is_word in zip(header, row, is_text, strict=True):
            if is_word:
                words[name].append(sys.intern(text))  # tasks repeat: one string serves all rows
    table = np.asarray(numbers).reshape(-1, len(number_columns)).T
    return Log(
        {header[i]: column for i, column in zip(number_columns, table, strict=True)},
        {name: np.asarray(column, object) for name, column in words.items()},
    )
