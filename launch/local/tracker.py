"""Weights & Biases, for a local run: its logs are sent there by the launching process.

Nodes have no network of their own to send anything by (docs/security.md), and what they log is in
the run folder a moment later. So the rows are read from there as they come.
"""

import contextlib
import csv
import importlib.util
import io
import json
import math
import os
import pathlib
import secrets
from collections.abc import Iterator
from typing import Any

from environments.copies.dead_simulators import first_line
from recurrent_replay import addition
from run_folder import disk
from run_folder.log_reader import COUNTERS
from run_folder.settings import Settings, SettingsError

_LEFT_OUT = ("episodes",)  # a row for each: their means are in another log


def check(settings: Settings, *, here: bool) -> None:
    """Raises SettingsError for a run that asks to be reported and cannot be.

    Args:
      settings: of the run.
      here: whether its launching process lasts as long as the run does.
    """
    if not here:
        raise SettingsError(
            f"--wandb={settings.wandb} is for a run on this machine, whose launching process "
            "reports; on other hosts nobody does."
        )
    if importlib.util.find_spec("wandb") is None:
        raise SettingsError(
            f"--wandb takes the package wandb, which is not installed: run `{addition('wandb')}`."
        )


class Tracker:
    """Reports the logs of a run that names a project.

    A context manager, which raises SettingsError where Weights & Biases takes no report. A run is
    one there too, however often it is resumed.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._there: Any = None  # wandb's run, while it takes reports
        self._read: dict[pathlib.Path, int] = {}  # bytes of each log

    def __enter__(self) -> "Tracker":
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.update()
        if self._there is not None:
            self._there.finish()

    def update(self) -> None:
        """Reports the rows that have come since the last call. A report that fails ends no run."""
        if self._there is None:
            return
        try:
            for log in sorted(self._settings.folder.logs.glob("*.csv")):
                if log.stem not in _LEFT_OUT:
                    for row in self._new_rows(log):
                        self._there.log(row)
        except Exception as error:  # whatever wandb raises, whose own process may have died
            self._there = None
            why = first_line(error)
            with contextlib.suppress(OSError):  # a closed terminal
                print(f"Weights & Biases hears no more of this run: {why}", flush=True)

    def _begin(self) -> None:
        os.environ.setdefault("WANDB_SILENT", "true")  # it would draw into the live view
        import wandb

        folder = self._settings.folder
        known = folder.wandb_id.exists()
        folder.wandb_id.parent.mkdir(exist_ok=True)
        if not known:
            disk.write(folder.wandb_id, secrets.token_hex(4))
        else:  # what there is was reported
            self._read = {log: log.stat().st_size for log in folder.logs.glob("*.csv")}
        try:
            self._there = wandb.init(
                project=self._settings.wandb,
                name=folder.path.resolve().name,
                id=folder.wandb_id.read_text(),
                resume="allow",
                dir=str(folder.path),
                config=json.loads(self._settings.to_json()),
                # What a terminal shows is the run's own, and its graph of this machine is enough.
                settings=wandb.Settings(console="off", disable_git=True),
            )
        except wandb.Error as error:
            said = str(error).strip().splitlines()[0].removesuffix(".")
            raise SettingsError(
                f"--wandb={self._settings.wandb}: {said}; `wandb login` makes you known, and "
                "WANDB_MODE=offline keeps everything here."
            ) from None
        self._there.define_metric("*", step_metric="actor_steps")
        with contextlib.suppress(OSError):  # a closed terminal
            where = self._there.url or f"{folder.wandb_id.parent}, to be sent by `wandb sync`"
            print(f"Weights & Biases: {where}", flush=True)

    def _new_rows(self, log: pathlib.Path) -> Iterator[dict[str, float]]:
        """The whole rows of a log since the last call, under names such as `actor/episodes`."""
        with contextlib.suppress(OSError), log.open("rb") as file:
            header = file.readline()
            begin = max(self._read.get(log, 0), len(header))
            file.seek(0, io.SEEK_END)
            file.seek(min(begin, file.tell()))  # a log of a run that went back is shorter
            begin = file.tell()
            text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read[log] = begin + len(whole)
            names = header.decode().strip().split(",")
            labels = [name if name in COUNTERS else f"{log.stem}/{name}" for name in names]
            for values in csv.reader(whole.decode().splitlines()):
                row = {}
                for label, value in zip(labels, values, strict=False):
                    with contextlib.suppress(ValueError):
                        row[label] = float(value)
                yield {label: value for label, value in row.items() if math.isfinite(value)}
