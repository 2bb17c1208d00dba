"""Tables and event files that the project writes."""

import csv
import pathlib

import tensorflow as tf

from run_folder.layout import RunFolder


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    """Each row of a CSV file, by its columns' names; none where there is no file yet."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def steps_on_tensorboard(run_dir: pathlib.Path) -> dict[str, list[int]]:
    """The steps of each scalar that TensorBoard would read in a run folder."""
    found: dict[str, list[int]] = {}
    for path in RunFolder(run_dir).events():
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                found.setdefault(value.tag, []).append(event.step)
    return found
