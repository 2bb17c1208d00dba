"""Takes a run's logs back to the checkpoint that it goes on from.

A run that was killed has logged more than its last checkpoint knows of. When it goes on, the same
steps are made again, and logged again. So rows of the CSV files and scalars of TensorBoard that
count more than the checkpoint are removed first: no step stands there twice. Of a run in a bucket
they stay, and `run_folder.log_reader` leaves them out.
"""

import contextlib
import csv
import io
import os
import pathlib
from collections.abc import Callable, Collection, Mapping

import tensorflow as tf

from run_folder import checkpoints, whole_files
from run_folder.checkpoints import Manifest
from run_folder.layout import RunFolder, agent_of
from run_folder.log_writer import steps_key

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
        """Of a log, or of TensorBoard's group of that name."""
        own = manifests.get(agent_of(label) or paced_by)
        return dict(counts, learner_steps=own.learner_step if own else 0)

    for path in sorted(folder.logs.glob("*.csv")):
        _rewind_rows(path, limits(path.stem))
    for path in folder.events():
        _rewind_events(path, lambda label: limits(label)[steps_key(label)])


def rewind_own(folder: RunFolder, labels: Collection[str], limits: Limits) -> None:
    """Removes what one process had logged after that from which another goes on in its place.

    Logs of other labels are as they were: other processes write them meanwhile.

    Args:
      folder: the run's.
      labels: of the logs that were the process's.
      limits: counter -> the greatest value that may stand in them.

    Raises:
      OSError: a file cannot be written. It is then as it was.
    """
    for path in map(folder.log, labels):
        if path.exists():
            _rewind_rows(path, limits)
    for path in folder.events():
        if _first_label(path) in labels:
            _rewind_events(path, lambda label: limits[steps_key(label)])


def _first_label(path: pathlib.Path) -> str:
    """Whose scalars are in a file, which a process has for each of its logs; nothing before any."""
    with contextlib.suppress(tf.errors.DataLossError):  # somebody is writing the last record
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            for value in tf.compat.v1.Event.FromString(record).summary.value:
                return str(value.tag.partition("/")[0])
    return ""


def _rewind_rows(path: pathlib.Path, limits: Limits) -> None:
    """Removes rows that count more, and a part of a row."""
    text = path.read_text(errors="replace")
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    counters = [(i, limits[name]) for i, name in enumerate(header) if name in limits]

    def stands(row: list[str]) -> bool:
        if len(row) != len(header):
            return False
        try:
            return not any(float(row[i]) > limit for i, limit in counters)
        except ValueError:
            return False

    kept = io.StringIO()
    csv.writer(kept, lineterminator="\n").writerows([header, *filter(stands, rows)])
    if header and kept.getvalue() != text:
        whole_files.write(path, kept.getvalue())


def _rewind_events(path: pathlib.Path, limit: Callable[[str], float]) -> None:
    """Removes scalars of a later step; whatever follows half a record is gone with it."""
    kept, removed = [], False
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            labels = {value.tag.partition("/")[0] for value in event.summary.value}
            if any(event.step > limit(label) for label in labels):
                removed = True
            else:
                kept.append(record)
    except tf.errors.DataLossError:
        removed = True
    if not removed:
        return
    temporary = path.with_name(whole_files.TEMPORARY + path.name)  # no events.*: TensorBoard reads
    with tf.io.TFRecordWriter(str(temporary)) as writer:
        for record in kept:
            writer.write(record)
    os.replace(temporary, path)
