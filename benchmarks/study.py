"""The harness of the studies in docs/: it trains their arms, resumes them and keeps results.

A study names its arms and says how to train one. This module trains the arms that a file of
docs/data lacks, for so many minutes each where the study asks for that, and adds the results.
"""

import argparse
import contextlib
import csv
import io
import json
import math
import os
import pathlib
import queue
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any, NamedTuple, TypeVar, get_origin

import numpy as np

from analysis.playing import files, intervals
from run_folder import checkpoints, disk, progress, resuming, run_lock
from run_folder.layout import RunFolder

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
LEAST_MINUTES = 1.0  # for which a start is worth its while
END_SECONDS = 120.0  # within which whatever was asked to end has ended
TIED = ("setpriv", "--pdeathsig", "TERM")  # before what is to end with who started it
STUDENT_T = {3: 4.303, 5: 2.776}  # 97.5% quantiles, by the number of values

RunType = TypeVar("RunType", bound=NamedTuple)
ResultType = TypeVar("ResultType", bound=NamedTuple)
Job = TypeVar("Job")
Done = TypeVar("Done")


class Run(NamedTuple):
    """The names of one training of a study."""

    task: str
    arm: str
    seed: int


def parser(description: str | None) -> argparse.ArgumentParser:
    """The parser of a script, whose docstring is its help."""
    spec = sys.modules["__main__"].__spec__
    return argparse.ArgumentParser(
        prog=f"python -m {spec.name}" if spec else None,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def positional(description: str | None, *names: str) -> list[str]:
    """The arguments of these names, in order; with none, a script that takes only --help."""
    found = parser(description)
    for name in names:
        found.add_argument(name)
    return list(vars(found.parse_args()).values())


def parser_of_trainings(
    description: str | None, runs: str, minutes: float | None, **choices: Collection[str]
) -> argparse.ArgumentParser:
    """The parser of a script that trains for so many minutes each, then draws; others add to it.

    `choices` are arguments that come before the folder of runs, and what each may be.
    """
    found = parser(description)
    for name, values in choices.items():
        found.add_argument(name, choices=values)
    found.add_argument("runs", type=pathlib.Path, help=f"folder of the {runs}")
    found.add_argument(
        "--minutes", type=_minutes, default=minutes, help=f"of each of the {runs}; 0 only draws"
    )
    return found


def _minutes(text: str) -> float:
    minutes = float(text)
    if not (minutes == 0 or LEAST_MINUTES <= minutes < math.inf):
        raise argparse.ArgumentTypeError(f"must be 0, or {LEAST_MINUTES:g} or more, got {text}")
    return minutes


def read(
    path: pathlib.Path, run: type[RunType], result: type[ResultType]
) -> dict[RunType, ResultType]:
    """The trainings that a file holds; none where there is no file."""
    if not path.exists():
        return {}
    with path.open() as file:
        return {_parse(run, row): _parse(result, row) for row in csv.DictReader(file)}


def _parse(kind: Any, row: dict[str, str]) -> Any:
    return kind(**{name: _value(of, row[name]) for name, of in kind.__annotations__.items()})


def _value(of: Any, text: str) -> Any:
    if get_origin(of) is tuple:
        return tuple(float(part) for part in text.split())
    return of(text) if of in (int, float) else text


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(f"{part:.3f}" for part in value)
    return f"{value:.4f}" if isinstance(value, float) else value


def extend(path: pathlib.Path, found: Mapping[RunType, ResultType]) -> None:
    """Adds trainings to a file, or puts them in the place of their like; it never holds a part."""
    if not found:
        return
    first, result = next(iter(found.items()))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*first._fields, *result._fields])
    for run, made in (read(path, type(first), type(result)) | dict(found)).items():
        writer.writerow([*run, *map(_text, made)])
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write(path, text.getvalue())


def complete(
    path: pathlib.Path,
    runs: Sequence[RunType],
    train: Callable[[RunType], ResultType],
    result: type[ResultType],
) -> dict[RunType, ResultType]:
    """Makes the trainings that a file lacks, printing each; returns all that it then holds."""
    kind = type(runs[0])
    for run in runs:
        if run not in read(path, kind, result):  # another process may have made it meanwhile
            found = train(run)
            extend(path, {run: found})
            print(*run, *(x for x in found if not isinstance(x, tuple)), flush=True)
    return read(path, kind, result)


def read_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON, each as one benchmark ended with; none where it is not there."""
    if not path.exists():
        return []
    with path.open() as file:
        return [json.loads(text) for text in file if text.strip()]


def run(arguments: Sequence[str], minutes: float | None, before: Sequence[str] = ()) -> bool:
    """Runs `python -m` to its end, or has it end in order after so many minutes or with a study.

    `before` stands before the command, such as `taskset -c 0`.

    Returns:
      Whether it had its minutes, and was asked to end.

    Raises:
      subprocess.CalledProcessError: it failed.
      subprocess.TimeoutExpired: it was asked to end, and did not.
    """
    command = (*TIED, *before, sys.executable, "-m", *arguments)
    print(shlex.join(["python", "-m", *arguments]), flush=True)
    with subprocess.Popen(command) as running:
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = running.wait(None if minutes is None else 60 * minutes)
        is_asked = code is None
        if is_asked:
            running.send_signal(signal.SIGTERM)
            try:
                code = running.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                running.kill()  # else it would be waited for without an end
                raise
    if code:
        raise subprocess.CalledProcessError(code, command)
    return is_asked


def has_ended(run_dir: pathlib.Path) -> bool:
    """Whether a run has reached its own limit, beyond which it does not go on."""
    state = progress.read(run_dir) if progress.ended_in_order(run_dir) else None
    return state is not None and bool(resuming.limits_reached(state["limits"], state["counts"]))


def train(
    path: pathlib.Path, flags: Sequence[str], minutes: float, before: Sequence[str] = ()
) -> None:
    """Trains a run for so many minutes in all, or to its limit; one that was cut short goes on.

    The minutes of a launch that was killed count up to its last save. One whose study was killed
    ends in order, which is waited for.

    Raises:
      CheckpointError: its manifest is damaged.
      subprocess.CalledProcessError, subprocess.TimeoutExpired: as `run`.
      RuntimeError: somebody else had it end.
    """
    how, deadline = flags, time.monotonic() + END_SECONDS
    while run_lock.is_held(path) and time.monotonic() < deadline:
        time.sleep(1.0)
    if RunFolder(path).config.exists():
        how = ("--resume",)
        saved = checkpoints.parse(RunFolder(path).checkpoints)
        minutes -= saved.walltime / 60 if saved is not None else 0
    if minutes >= LEAST_MINUTES and not has_ended(path):
        had_its_time = run(["launch.train", f"--run_dir={path}", *how], minutes, before)
        if not (had_its_time or has_ended(path)):
            raise RuntimeError(f"{path} was asked to end before its {minutes:g} minutes were over.")


def on_cores(jobs: Sequence[Job], work: Callable[[Job, int], Done]) -> Iterator[tuple[Job, Done]]:
    """Does jobs, each on a core that it is given, and yields each with what its work returns.

    Once one has failed, or nobody takes what is yielded any more, none begins.
    """
    cores: queue.SimpleQueue[int] = queue.SimpleQueue()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)

    def do(job: Job) -> tuple[Job, Done]:
        core = cores.get()
        try:
            return job, work(job, core)
        finally:
            cores.put(core)

    with futures.ThreadPoolExecutor(cores.qsize()) as pool:
        try:
            for done in futures.as_completed([pool.submit(do, job) for job in jobs]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def mean_by_minute(
    walltime: np.ndarray, values: np.ndarray, minutes: int | None = None
) -> np.ndarray:
    """The mean of the values `[E]` in each minute, `[minutes]`; NaN in one without any.

    Without a number of minutes the last value's is the last.
    """
    minute = (walltime // 60).astype(int)
    count = np.bincount(minute, minlength=minutes or 0)[:minutes]
    total = np.bincount(minute, values, minlength=minutes or 0)[:minutes]
    return np.where(count, total / np.maximum(count, 1), np.nan)


class Episodes(NamedTuple):
    """The episodes of a run that ended within a minute."""

    actor_steps: float  # of the run so far, the mean at their ends
    episode_return: float  # mean


def episodes_by_minute(
    walltime: np.ndarray, actor_steps: np.ndarray, returns: np.ndarray
) -> Iterator[tuple[int, Episodes]]:
    """Episodes by the minute in which they ended; a minute without any is missing."""
    means = (mean_by_minute(walltime, column).tolist() for column in (actor_steps, returns))
    for minute, found in enumerate(zip(*means, strict=True)):
        if math.isfinite(found[0]):
            yield minute, Episodes(*found)


class Evaluation(NamedTuple):
    """The outcome of an evaluation."""

    actor_steps: int  # of the training before it
    evaluated: float  # mean return
    standard_error: float  # of the mean; NaN of a single episode

    @classmethod
    def of(cls, actor_steps: int, returns: np.ndarray) -> "Evaluation":
        """The outcome of episodes with these returns `[E]`."""
        error = returns.std(ddof=1) / np.sqrt(len(returns)) if len(returns) > 1 else np.nan
        return cls(actor_steps, float(returns.mean()), float(error))


def newest_evaluation(run_dir: pathlib.Path) -> Evaluation:
    """The newest evaluation of a run folder, which has one."""
    written = RunFolder(run_dir).evaluations.glob("*.csv")
    rows = files.read(max(written, key=lambda path: path.stat().st_mtime))
    return Evaluation.of(rows[0].actor_steps, np.array([row.episode_return for row in rows]))


def evaluate(
    run_dir: pathlib.Path, episodes: int, before: Sequence[str] = (), checkpoint: str = "latest"
) -> Evaluation:
    """Has a run's last parameters play, or others; arguments and errors as of `run`."""
    how = [f"--run_dir={run_dir}", f"--episodes={episodes}", f"--checkpoint={checkpoint}"]
    run(["launch.evaluate", *how], None, before)
    return newest_evaluation(run_dir)


class Interval(NamedTuple):
    """A mean, and how far its 95% interval reaches to either side."""

    mean: float
    margin: float

    def __str__(self) -> str:
        return f"{in_words(self.mean)} ± {in_words(self.margin)}"


def interval(values: Sequence[float]) -> Interval:
    """Student's 95% interval of a mean.

        x̄ ± t s / √n,   s² = Σ (x − x̄)² / (n − 1)

    Raises:
      ValueError: `STUDENT_T` has no t for so many values.
    """
    if len(values) not in STUDENT_T:
        raise ValueError(f"Expected {' or '.join(map(str, STUDENT_T))} values, got {len(values)}.")
    deviation = float(np.std(values, ddof=1))
    margin = STUDENT_T[len(values)] * deviation / math.sqrt(len(values))
    return Interval(float(np.mean(values)), margin)


class Estimate(NamedTuple):
    """A statistic and its 95% interval; a single value has none."""

    value: float
    interval: intervals.Interval

    def __str__(self) -> str:
        ends = self.interval if math.isfinite(self.interval.low) else ()
        digits = 0 if max(map(abs, (self.value, *ends))) >= 100 else 2
        value, *bounds = (in_words(x, digits) for x in (self.value, *ends))
        return f"{value} [{', '.join(bounds)}]" if bounds else value


def median(values: Sequence[float]) -> Estimate:
    """A median over seeds with its percentile bootstrap interval, as rliable has it.

    Agarwal et al. 2021, Section 4. Of three values the interval is from the least to the largest.
    """
    return Estimate(float(np.median(values)), intervals.of_median(values))


def in_words(value: float, digits: int = 2) -> str:
    """A number as a page has it."""
    return f"{value:,.{digits}f}".replace("-", "−")


def over_seeds(results: Mapping[Any, Any], measure: str, **setting: Any) -> Interval:
    """The interval of one field of the results over the seeds of one setting."""
    return interval(
        [
            getattr(result, measure)
            for run, result in results.items()
            if all(getattr(run, name) == value for name, value in setting.items())
        ]
    )


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (header, *rows))
    return "\n".join([first, "|---" * len(header) + "|", *others])


def replace_block(text: str, name: str, block: str) -> str:
    """A page with what stands between two comments of that name replaced.

    Raises:
      ValueError: the page lacks one of them.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"Expected one {begin} and one {end} in the page.")
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n\n{block}\n\n{end}{rest.partition(end)[2]}"
