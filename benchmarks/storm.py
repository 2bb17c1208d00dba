"""Kills and stops a run's processes at random, and says how the run ended.

    python -m benchmarks.storm r2d2,impala /tmp/storm --minutes=60 --per_hour=60 --steps=4000000

trains with a checkpoint every 15 s. From its second minute on, so many signals an hour
meet random nodes, as many SIGKILLs as SIGSTOPs: a Poisson process that follows from the seed. A
node that was stopped counts as dead after `--hang_seconds=20`. The run has to reach its limit by
itself, with code 0; to redo, each time, no more play than of one interval between checkpoints and
one save; to log no step twice; and to leave nothing behind. The exit code says whether it did.
"""

import csv
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psutil

from benchmarks import study
from benchmarks.run import nodes
from run_folder import checkpoints, progress
from run_folder.layout import RunFolder

INTERVAL_SECONDS = 15.0
HANG_SECONDS = 20.0
CALM_SECONDS = 60.0  # from a run's first progress on: what dies in its first minute is not mended
LOOK_SECONDS = 0.1
GONE_SECONDS = 15.0  # within which all processes of an ended run are gone
UNSEEN_SECONDS = 3.0  # progress is written once a second, by a process that may be stopped


class Outcome(NamedTuple):
    """The outcome of a storm."""

    code: int
    seconds: float
    counts: dict[str, float]
    struck: list[str]  # a signal and the group of nodes that it met
    mended: int  # deaths that left a file in `crashes/`
    begun_again: int  # launches but the first
    redone: list[float]  # seconds of play, each time that it went back
    stood: list[float]  # seconds without a step before that, each time
    longest_save: float
    repeated: list[str]  # logs with a row that counts less than the one before it
    left: list[str]  # processes and temporary files

    def broken(self) -> list[str]:
        """The promises that were not kept, in sentences."""
        redone = max(self.redone, default=0.0)
        allowed = INTERVAL_SECONDS + self.longest_save + UNSEEN_SECONDS
        promises = {
            f"It ended with code {self.code}.": self.code == 0,
            f"It redid {redone:.1f} s.": redone <= allowed,
            f"A step is logged twice in {', '.join(self.repeated)}.": not self.repeated,
            f"It left {', '.join(self.left)}.": not self.left,
        }
        return [sentence for sentence, kept in promises.items() if not kept]


class Counts:
    """A run's counts, as they are seen from time to time.

    Attributes:
      redone: seconds of play that the run lost each time it went back: from what it went back to
        until it had made its last step.
      stood: seconds for which it had made no step then, as nobody saw yet that a node stood still.
    """

    def __init__(self) -> None:
        self.redone: list[float] = []
        self.stood: list[float] = []
        self._walltime = self._stepped = self._steps = 0.0

    def take(self, counts: Mapping[str, float]) -> None:
        """Takes the counts of now: `walltime` in seconds of the run, and `actor_steps`."""
        walltime, steps = counts["walltime"], counts["actor_steps"]
        if walltime < self._walltime - UNSEEN_SECONDS:
            self.redone.append(max(self._stepped - walltime, 0.0))
            self.stood.append(self._walltime - max(self._stepped, walltime))
        if steps != self._steps:
            self._stepped = walltime
        self._walltime, self._steps = walltime, steps


def storm(
    agent: str,
    run_dir: pathlib.Path,
    *,
    minutes: float,
    per_hour: float,
    steps: int,
    seed: int,
    learners: int = 1,
    env: str = "catch",
) -> Outcome:
    """Strikes a run's nodes at moments that count from its first progress on, to its end."""
    command = (
        *(sys.executable, "-m", "launch.train", f"--agent={agent}", f"--env={env}"),
        *(f"--run_dir={run_dir}", "--num_actors=32", "--actors_per_node=16", "--restarts=1000"),
        *(f"--hang_seconds={HANG_SECONDS}", f"--checkpoint_minutes={INTERVAL_SECONDS / 60}"),
        *("--evaluation_minutes=0.5", f"--max_actor_steps={steps}"),
        f"--learners_per_agent={learners}",
    )
    folder, chance = RunFolder(run_dir), random.Random(seed + 1)
    moments = _moments(random.Random(seed), CALM_SECONDS, 60 * minutes, per_hour)
    due = next(moments, None)
    struck, counted, longest_save = list[str](), Counts(), 0.0
    begun, seen = 0.0, set[psutil.Process]()
    with tempfile.TemporaryDirectory(prefix="storm-") as temporary:
        launcher = subprocess.Popen(command, env=os.environ | {"TMPDIR": temporary})
        while launcher.poll() is None:
            time.sleep(LOOK_SECONDS)
            if (state := progress.read(run_dir)) is not None:
                begun = begun or time.monotonic()
                counted.take(state["counts"])
            if (manifest := checkpoints.parse(folder.checkpoints)) is not None:
                longest_save = max(longest_save, manifest.replay_seconds)
            now = time.monotonic() - begun if begun else 0.0
            if due is None or now < due:
                continue
            due = next(moments, None)
            found = nodes(launcher.pid, run_dir)
            seen.update(found.values())
            if found:
                label = chance.choice(sorted(found))
                number = chance.choice([signal.SIGKILL, signal.SIGSTOP])
                found[label].send_signal(number)
                struck.append(f"{number.name} to {label.split('/')[0]}")
                print(f"{now:.0f} s: {number.name} to {label}", flush=True)
        # The number of one that is long gone may be a thread's by now, for which nobody can wait.
        lingering = [process for process in seen if process.is_running()]
        alive = psutil.wait_procs(lingering, timeout=GONE_SECONDS)[1]
        left = [*map(str, alive), *map(str, pathlib.Path(temporary).iterdir())]
    return Outcome(
        code=launcher.returncode,
        seconds=time.monotonic() - begun if begun else 0.0,
        counts=(progress.read(run_dir) or {"counts": {}})["counts"],
        struck=struck,
        mended=len(list(folder.crashes.glob("*"))),
        begun_again=len(folder.launches.read_text().splitlines()) - 1,
        redone=counted.redone,
        stood=counted.stood,
        longest_save=longest_save,
        repeated=repeated(folder),
        left=left,
    )


def _moments(chance: random.Random, first: float, last: float, per_hour: float) -> Iterator[float]:
    """Seconds of a run, from `first` to `last`, that have nothing to do with each other."""
    moment = first
    while (moment := moment + chance.expovariate(per_hour / 3600)) < last:
        yield moment


def repeated(folder: RunFolder) -> list[str]:
    """Logs in which a counter goes back."""
    found = []
    for path in sorted(folder.logs.glob("*.csv")):
        rows = list(csv.DictReader(path.open()))
        for name in ("actor_steps", "learner_steps", "walltime"):
            counts = [float(row[name]) for row in rows if row.get(name)]
            if counts != sorted(counts):
                found.append(f"{path.name} ({name})")
    return found


def end(struck: Sequence[str], told: str, wrong: Sequence[str]) -> int:
    """Prints the outcome of a storm; returns the exit code."""
    for victims, count in sorted(Counter(struck).items()):
        print(f"{count:3} x {victims}")
    print("\n".join([told, *wrong]))
    return bool(wrong)


def _seconds(durations: Sequence[float]) -> str:
    return f"{', '.join(f'{duration:.1f}' for duration in durations) or '0'} s"


def main() -> int:
    """Strikes a run; returns the exit code."""
    parser = study.parser(__doc__)
    parser.add_argument("agent", help="as launch.train takes it")
    parser.add_argument("run_dir", type=pathlib.Path, help="a new folder")
    parser.add_argument("--minutes", type=float, default=60.0, help="until the last signal")
    parser.add_argument("--per_hour", type=float, default=60.0, help="signals")
    parser.add_argument("--steps", type=int, default=4_000_000, help="the run's limit")
    parser.add_argument("--seed", type=int, default=0, help="of what is struck, and when")
    parser.add_argument("--learners", type=int, default=1, help="of each agent")
    parser.add_argument("--env", default="catch", help="as launch.train takes it")
    asked: dict[str, Any] = vars(parser.parse_args())
    outcome = storm(asked.pop("agent"), asked.pop("run_dir").resolve(), **asked)
    told = (
        f"{outcome.seconds:.0f} s, {outcome.counts.get('actor_steps', 0):,.0f} actor steps; "
        f"{outcome.mended} deaths mended, of which {outcome.begun_again} by beginning again; "
        f"redone {_seconds(outcome.redone)}; stood still before it went back "
        f"{_seconds(outcome.stood)}; longest save {outcome.longest_save:.1f} s"
    )
    return end(outcome.struck, told, outcome.broken())


if __name__ == "__main__":
    sys.exit(main())
