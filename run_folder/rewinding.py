"""Takes a run's logs back to the checkpoint that it goes on from.

A run that was killed has logged more than its last checkpoint knows of. When it goes on, the same
steps are made again, and logged again. So rows of the CSV files and scalars of TensorBoard that
count more than the checkpoint are removed first: no step stands there twice. Of a run in a bucket
they stay, and `run_folder.log_reader` leaves them out.

No more of a log is read than has to be, from its end: going on takes as long on a run's last day as
on its first.
"""

import contextlib
import functools
import math
import os
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.lib.io import tf_record

from run_folder import checkpoints, log_reader
from run_folder.checkpoints import Manifest
from run_folder.layout import RunFolder, agent_of, steps_key

_END_BYTES = 1 << 16  # of a log that are looked at, if that is enough
_LONGEST_EVENT = 1 << 12  # bytes; a scalar's are a hundred

Limits = Mapping[str, float]  # counter -> the greatest value that the checkpoint knows of


def rewind(folder: RunFolder, manifests: Mapping[str, Manifest], paced_by: str) -> None:
    """Removes what was logged after the checkpoints that a run goes on from.

    Args:
      folder: the run's.
      manifests: by agent; none of an agent that begins anew.
      paced_by: whose updates the logs that belong to no agent count.

    Raises:
      OSError: a file cannot be written. It is then as it was.
    """
    known = checkpoints.counts(manifests)
    counts = {name: known[name] for name in ("actor_steps", "walltime")}

    def limits(label: str) -> Limits:
        own = manifests.get(agent_of(label) or paced_by)
        return dict(counts, learner_steps=own.learner_step if own else 0)

    _rewind(folder, limits, lambda label: True)


def rewind_own(folder: RunFolder, labels: Collection[str], limits: Limits) -> None:
    """Removes what one process logged beyond limits, from which another goes on in its place.

    Logs of other labels are as they were: other processes write them meanwhile. Raises OSError.
    """
    _rewind(folder, lambda _: limits, labels.__contains__)


def cut(folder: RunFolder) -> None:
    """Removes what is no whole row from the logs of a run that ended in order. Raises OSError."""
    _rewind(folder, lambda label: {steps_key(label): math.inf}, lambda _: True)


def _rewind(
    folder: RunFolder, limits: Callable[[str], Limits], is_meant: Callable[[str], bool]
) -> None:
    for path in sorted(folder.logs.glob("*.csv")):
        if is_meant(path.stem):
            _rewind_rows(path, limits(path.stem))
    for path in folder.events():
        if _is_own(folder, label := _first_label(path)) and is_meant(label):
            _rewind_events(path, limits(label)[steps_key(label)])


def _is_own(folder: RunFolder, label: str) -> bool:
    """Whether scalars are of the run or of its evaluations: there may be somebody's beside them."""
    return folder.log(label).exists() or label.partition("-")[0] == "evaluate"


def _rewind_rows(path: pathlib.Path, limits: Limits) -> None:
    """Removes rows that count more, and what is no whole row: a part, or a power cut's zeros."""
    with path.open("r+b") as rows:
        line = rows.readline()
        try:
            header = log_reader.columns(line.decode(errors="replace"))
        except ValueError:
            return  # it is no log, or none that can be read
        stands = functools.partial(_stands, header, limits)

        def row_after(start: int) -> int | None:
            rows.seek(start)
            rows.readline()  # the end of the one before
            offset = rows.tell()
            return offset if stands(rows.readline()) else None

        begin = len(line) if header else 0  # cells whose columns are lost say nothing
        start = _where(begin, rows.seek(0, os.SEEK_END), row_after)
        rows.seek(start)
        found = rows.readlines()
        kept = list(filter(stands, found))
        if len(kept) < len(found):  # which takes no more of the disk
            rows.seek(start)
            rows.writelines(kept)
            rows.truncate()


def _where(begin: int, end: int, standing_after: Callable[[int], int | None]) -> int:
    """From where on a log has to be read. It counts more and more: what is before that, stands.

    `standing_after` gives the offset of the first row after an offset, where that one stands.
    """
    size = _END_BYTES
    while (start := end - size) > begin:
        if (found := standing_after(start)) is not None:
            return found
        size *= 4
    return begin


def _stands(header: Sequence[str], limits: Limits, row: bytes) -> bool:
    lines = [row.decode(errors="replace")] if row.endswith(b"\n") else []
    cells = next(log_reader.rows(lines), [])
    if not cells or len(cells) != len(header):
        return False
    counted = dict(zip(header, cells, strict=True))
    try:
        return not any(float(counted[name]) > limits[name] for name in limits if name in counted)
    except ValueError:
        return False


def _rewind_events(path: pathlib.Path, limit: float) -> None:
    """Removes scalars of a later step, and whatever follows half a record."""
    records, size = tf_record.tf_record_random_reader(str(path)), path.stat().st_size

    def event_after(start: int) -> int | None:
        for offset in range(start, start + _LONGEST_EVENT):  # by its checksums a record is known
            for event, _ in _events(records, offset):
                return offset if event.step <= limit else None
        return None

    end = _where(0, size, event_after)
    for event, after in _events(records, end):
        if event.step > limit:
            break
        end = after
    if end < size:
        os.truncate(path, end)


def _first_label(path: pathlib.Path) -> str:
    """The log whose scalars a file has, one for each; nothing before any."""
    for event, _ in _events(tf_record.tf_record_random_reader(str(path)), 0):
        for value in event.summary.value:
            return str(value.tag.partition("/")[0])
    return ""


def _events(records: Any, offset: int) -> Iterator[tuple[Any, int]]:
    """Events from an offset on, each with the offset of the next, as far as they are whole."""
    with contextlib.suppress(tf.errors.DataLossError, IndexError):
        while True:
            record, offset = records.read(offset)
            yield tf.compat.v1.Event.FromString(record), offset
