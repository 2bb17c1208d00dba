"""Figure 6: how many updates old the parameters are whose experience is replayed."""

import dataclasses
from typing import NamedTuple

import numpy as np

from analysis.diagnosis import saved_replay
from run_folder import log_reader
from run_folder.layout import learner_label
from run_folder.settings import Settings, SettingsError


@dataclasses.dataclass(frozen=True)
class Row:
    """One distribution of parameter lags, in updates.

    Attributes:
      of: `logged`, the means of batches over the whole run; `sampled`, items of the saved replay as
        the learner would draw them; `stored`, all its items alike.
      mean: of the lags.
      p10: a tenth of them are smaller.
      median: half of them are.
      p90: nine tenths are.
      count: rows of the log, or samples.
    """

    of: str
    mean: float
    p10: float
    median: float
    p90: float
    count: int


class Lags(NamedTuple):
    """What there is to know of a run's parameter lag."""

    learner_steps: np.ndarray  # [rows] of the log
    logged: np.ndarray  # [rows] mean lag of the batches since the row before
    replay: saved_replay.Sampled | None  # None where no replay was saved


def measure(run: Settings, name: str, samples: int) -> Lags:
    """Reads an agent's log, and samples its saved replay.

    Args:
      run: the settings of the run.
      name: of the agent.
      samples: the most to draw from replay.

    Raises:
      SettingsError: when nothing was logged yet and no replay was saved.
      CheckpointError: when the checkpoint is damaged.
    """
    path = run.folder.log(learner_label(name))
    log = log_reader.read(path)
    steps, logged = log.defined("learner_steps", "parameter_lag")
    lags = Lags(steps, logged, saved_replay.sample(run, name, samples))
    if not len(logged) and lags.replay is None:
        raise SettingsError(
            f"{run.path} has neither logged a parameter lag nor saved a replay: {path} has none."
        )
    return lags


def rows(lags: Lags) -> list[Row]:
    """The distributions in figures."""
    found = []
    if len(lags.logged):
        found.append(_row("logged", lags.logged, np.ones(len(lags.logged))))
    if lags.replay is not None:
        lag, probability = lags.replay
        found.append(_row("sampled", lag, np.ones(len(lag))))
        found.append(_row("stored", lag, 1 / probability))
    return found


def weighted_quantile(values: np.ndarray, weights: np.ndarray, quantile: float) -> float:
    """The least value at or below which lies that part of the weight.

    Args:
      values: `[M]`.
      weights: `[M]`, positive.
      quantile: between 0 and 1.
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, quantile * below[-1])])


def _row(of: str, lag: np.ndarray, weights: np.ndarray) -> Row:
    p10, median, p90 = (weighted_quantile(lag, weights, q) for q in (0.1, 0.5, 0.9))
    mean = float(np.average(lag, weights=weights))
    return Row(of=of, mean=mean, p10=p10, median=median, p90=p90, count=len(lag))
