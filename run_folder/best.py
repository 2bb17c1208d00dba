"""The parameters of an agent's best evaluation: checkpoints/best-<agent>.npz.

A run's evaluator writes them: what it played by, and nothing else of the learner. They play, and a
run goes on from them only where no learner was saved. They are one file, so that they are there
whole or not at all. They stay wherever the run goes on from, also where that is an earlier update.
"""

import dataclasses
import io
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.contract import Network
from run_folder import disk
from run_folder.checkpoints import DamagedError, OtherSizesError

_NUMBER = "parameters"  # without it, damage might hide the last of them
_PARAMETER = "parameter-{}"
_COUNTS: dict[str, Callable[[Any], Any]] = dict(
    score=float, learner_step=int, actor_steps=int, walltime=float
)


@dataclasses.dataclass(frozen=True)
class Best:
    """What was evaluated."""

    score: float  # `task_returns.overall` of the evaluation
    learner_step: int  # updates that had been made
    actor_steps: int  # of the run, when the evaluation began
    walltime: float  # seconds of the run until then
    parameters: list[np.ndarray]  # of the network's variables, in their order


def file_name(agent: str) -> str:
    """The name of an agent's file in a checkpoint folder."""
    return f"best-{agent}.npz"


def write(folder: pathlib.Path, agent: str, best: Best) -> None:
    """Puts the parameters into a checkpoint folder, in the place of those that are there.

    Raises:
      OSError: the disk cannot take them. Those that were there are there still.
    """
    folder.mkdir(exist_ok=True)  # of a run folder that is gone, none
    counts = {name: getattr(best, name) for name in _COUNTS}
    arrays = {_PARAMETER.format(i): value for i, value in enumerate(best.parameters)}
    file = io.BytesIO()
    np.savez(file, **{_NUMBER: len(arrays)}, **counts, **arrays)
    disk.write(folder / file_name(agent), file.getvalue())


def read(folder: pathlib.Path, agent: str) -> Best | None:
    """What is kept of an agent, its checksums compared; None where nothing is.

    Raises:
      DamagedError: it is not as it was written.
    """
    path = folder / file_name(agent)
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            counts = {name: kind(file[name]) for name, kind in _COUNTS.items()}
            named = [_PARAMETER.format(i) for i in range(int(file[_NUMBER]))]
            return Best(**counts, parameters=[_widened(file[name]) for name in named])
    except Exception as error:  # zipfile and numpy have a dozen kinds
        raise DamagedError(f"The best parameters {path} are corrupt: {disk.said(error)}.") from None


def _widened(value: np.ndarray) -> np.ndarray:
    """As a network has it: `analysis.playing.small_run` writes 16 bits."""
    return value.astype(np.float32) if value.dtype == np.float16 else value


def assign(best: Best, network: Network) -> None:
    """Sets a network's variables to what is kept.

    Raises:
      OtherSizesError: they are of a network of other sizes; nothing is set.
    """
    kept = [value.shape for value in best.parameters]
    wanted = [tuple(variable.shape) for variable in network.variables]
    if kept != wanted:
        raise OtherSizesError(
            f"The best parameters are of a network of other sizes: they must be {wanted}, got "
            f"{kept}."
        )
    for variable, value in zip(network.variables, best.parameters, strict=True):
        variable.assign(value)
