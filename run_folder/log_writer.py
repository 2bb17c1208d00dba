"""Loggers of a run: one CSV file and one TensorBoard group per log, the same names in both."""

import math
import pathlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from acme.utils.loggers import aggregators, base, csv

from run_folder.layout import RunFolder, steps_key


def make_logger(run_dir: pathlib.Path, label: str) -> base.Logger:
    """Appends rows to `logs/<label>.csv` and scalars to TensorBoard's group of that name.

    A file that was begun by an earlier part of the run keeps the columns that it has.
    """
    folder = RunFolder(run_dir)
    folder.logs.mkdir(exist_ok=True)
    path = folder.log(label)
    file = path.open("a+")
    file.seek(0)
    header = file.readline().rstrip()
    # By default a row is dropped that comes before the last one, by a clock that was set back.
    to_csv: base.Logger = csv.CSVLogger(file, time_delta=-math.inf, flush_every=1)
    if header:
        to_csv = _Columns(to_csv, header.split(","))
    return aggregators.Dispatcher([to_csv, Board(run_dir, label)], base.to_numpy)


class _Columns(base.Logger):
    """Rows of given columns: what they lack is NaN, what they have besides is dropped."""

    def __init__(self, to: base.Logger, columns: list[str]) -> None:
        self._to = to
        self._columns = columns

    def write(self, data: Mapping[str, Any]) -> None:
        self._to.write({column: data.get(column, math.nan) for column in self._columns})

    def close(self) -> None:
        self._to.close()


class Board(base.Logger):
    """TensorBoard's scalars `<label>/<column>` alone, without what a period left undefined.

    Acme's own logger would rename the columns: `episode_return` to `EpisodeReturn`.
    """

    def __init__(self, folder: pathlib.Path, label: str) -> None:
        self._writer = tf.summary.create_file_writer(str(folder))
        self._label = label
        self._steps_key = steps_key(label)

    def write(self, data: Mapping[str, Any]) -> None:
        with self._writer.as_default(step=int(data[self._steps_key])):
            for column, value in data.items():
                if column != self._steps_key and math.isfinite(value):
                    tf.summary.scalar(f"{self._label}/{column}", value)

    def close(self) -> None:
        self._writer.close()
