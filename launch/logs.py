"""Loggers of a run: one CSV file and one TensorBoard label per log, the same names in both."""

import math
import pathlib
from collections.abc import Mapping
from typing import Any

from acme.utils.loggers import aggregators, base, csv, filters, tf_summary


def make_logger(
    run_dir: pathlib.Path, label: str, *, seconds: float = 0.0, steps_key: str = "actor_steps"
) -> base.Logger:
    """Appends rows to `logs/<label>.csv` and scalars to `tensorboard/`.

    Args:
      run_dir: the run folder.
      label: name of the log.
      seconds: rows that come sooner after the last one are dropped.
      steps_key: the column that is TensorBoard's step.
    """
    (run_dir / "logs").mkdir(parents=True, exist_ok=True)
    file = open(run_dir / "logs" / f"{label}.csv", "a")  # noqa: SIM115  the logger owns it
    to_csv = csv.CSVLogger(file, flush_every=1)
    to_board = tf_summary.TFSummaryLogger(str(run_dir / "tensorboard"), label, steps_key)
    logger: base.Logger = aggregators.Dispatcher([to_csv, _Finite(to_board)], base.to_numpy)
    return filters.TimeFilter(logger, seconds) if seconds else logger


class _Finite(base.Logger):
    """Keeps from TensorBoard what a period without an episode leaves undefined."""

    def __init__(self, to: base.Logger) -> None:
        self._to = to

    def write(self, data: Mapping[str, Any]) -> None:
        self._to.write({k: v for k, v in data.items() if math.isfinite(v)})

    def close(self) -> None:
        self._to.close()
