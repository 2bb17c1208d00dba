"""Kills a population at random moments, and checks that it loses nothing.

    python -m benchmarks.population_storm /tmp/storm --kills=20

trains members on catch that decide every few seconds. SIGKILL is sent equally often to the launcher
and all processes below it, to the launcher alone, whose members then end in order, and to members
alone, which the launcher has to notice. The victims and the times follow from the seed. A launcher
that was killed is resumed. After each kill every decision must be whole and as it was, no member
may be gone, and no member may have saved fewer steps or updates than before. In the end the
population must reach a limit by itself, with nothing decided twice, no step logged twice, and no
process left. The exit code tells whether all of this held.
"""

import contextlib
import itertools
import pathlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psutil

from benchmarks import storm, study
from population import decisions, settings
from population.decisions import Decision
from population.folder import PopulationFolder, is_population, name_of
from run_folder import checkpoints, log_reader
from run_folder.settings import SettingsError

ALL, LAUNCHER, MEMBERS = "launcher and members", "launcher", "members"
SECONDS = (3.0, 30.0)
MORE_STEPS = 5_000
END_SECONDS = 900.0
FLAGS = (
    *("--agent=impala", "--env=catch", "--num_actors=4", "--actors_per_node=4"),
    *("--evaluation_episodes=0", "--checkpoint_minutes=0.02", "--concurrent=2"),
    *("--burn_in_frames=200", "--ready_episodes=200", "--margin=0.01"),
)


class Seen(NamedTuple):
    """The progress of a population, which nothing may undo."""

    made: list[list[Decision]]  # of each member
    saved: list[tuple[int, int]]  # actor steps and updates, of each member
    runs: set[int]  # members that have a run


class Outcome(NamedTuple):
    """The outcome of a storm."""

    seconds: float
    struck: list[str]
    launches: int
    last: Seen
    wrong: list[str]  # in sentences


def look(folder: PopulationFolder, members: int) -> Seen:
    """The progress of a population.

    Raises:
      SettingsError: a decision is damaged or missing.
      CheckpointError: a manifest is damaged.
    """
    manifests = [checkpoints.parse(folder.member(i).checkpoints) for i in range(members)]
    return Seen(
        [decisions.of_member(folder, member) for member in range(members)],
        [(m.actor_steps, m.learner_step) if m else (0, 0) for m in manifests],
        {member for member in range(members) if folder.member(member).config.exists()},
    )


def undone(before: Seen, after: Seen) -> Iterator[str]:
    """The progress that a population has lost, in sentences."""
    for member in sorted(before.runs - after.runs):
        yield f"Member {name_of(member)} is gone."
    for member, (old, new) in enumerate(zip(before.made, after.made, strict=True)):
        if new[: len(old)] != old:
            yield f"A decision of member {name_of(member)} is not what it was."
    for member, (was, now) in enumerate(zip(before.saved, after.saved, strict=True)):
        if now[0] < was[0] or now[1] < was[1]:
            yield f"Member {name_of(member)} went back from {was} steps and updates to {now}."


def contradictions(folder: PopulationFolder, last: Seen) -> Iterator[str]:
    """Everything in an ended population that contradicts its own decisions, in sentences."""
    population = settings.load(folder.path)
    for member, made in enumerate(last.made):
        name = name_of(member)
        for old, new in itertools.pairwise(made):
            where = f"Decision {new.number} of member {name}"
            if new.old != old.new:
                yield f"{where} begins with other values than the one before it ended with."
            if new.rival_score is not None and new.score is not None:
                waited = new.episodes - old.episodes
                if waited < population.ready_episodes:
                    yield f"{where} was made after {waited} episodes."
            if new.actor_steps < max(old.actor_steps, population.burn_in_frames):
                yield f"{where} was made at {new.actor_steps} steps."
            if new.learner_step < old.learner_step_after:
                yield f"{where} was made at update {new.learner_step}."
            if new.adopted is not None and new.adopted >= len(last.made[new.rival or 0]):
                yield f"{where} adopts decision {new.adopted} of {new.rival}, which is not there."
        log = log_reader.read(folder.member(member).log("values"), texts=("adopted_from",))
        if log["decision"].tolist() != [decision.number for decision in made]:
            yield f"The log of values of member {name} lists {log['decision'].tolist()}."
        for log_name in storm.repeated(folder.member(member)):
            yield f"A step of member {name} is logged twice in {log_name}."
    listed, count = len(folder.listing.read_text().splitlines()), sum(map(len, last.made))
    if listed != count:
        yield f"population.jsonl lists {listed} decisions of {count}."


def plan(kills: int, seed: int, seconds: tuple[float, float]) -> list[tuple[str, float]]:
    """The victims of each kill, and the seconds before it."""
    chance = random.Random(seed)
    return [
        (chance.choice((ALL, LAUNCHER, MEMBERS)), chance.uniform(*seconds)) for _ in range(kills)
    ]


def run(
    run_dir: pathlib.Path,
    *,
    kills: int,
    members: int,
    seed: int,
    seconds: tuple[float, float] = SECONDS,
    more_steps: int = MORE_STEPS,
) -> Outcome:
    """Kills a population so many times, then lets it run to its end.

    The victims and the times follow from the seed. From a launch, or from a kill that the launcher
    survived, to the next kill, `seconds` pass, from least to most. After the last kill each member
    makes `more_steps`.
    """
    folder, chance = PopulationFolder(run_dir), random.Random(seed + 1)
    begun, struck, wrong = time.monotonic(), list[str](), list[str]()
    seen, launches = Seen([[]] * members, [(0, 0)] * members, set()), 0
    launcher: subprocess.Popen[bytes] | None = None
    for kind, wait in plan(kills, seed, seconds):
        if launcher is None or launcher.poll() is not None:
            launcher, launches = _launch(run_dir, members), launches + 1
        with contextlib.suppress(subprocess.TimeoutExpired):
            wrong.append(f"The population ended by itself, with code {launcher.wait(wait)}.")
            continue
        count = _kill(launcher, kind, chance)
        struck.append(kind)
        told = f"{time.monotonic() - begun:.0f} s: SIGKILL to {kind}, {count} processes"
        try:
            after = look(folder, members)
        except SettingsError as error:
            wrong.append(str(error))
            continue
        wrong += undone(seen, after)
        seen = after
        print(f"{told}; {sum(map(len, seen.made))} decisions; {_steps(seen)} steps", flush=True)
    if launcher is not None and launcher.poll() is None:
        _kill(launcher, ALL, chance)
    limit = max(steps for steps, _ in seen.saved) + more_steps
    launcher = _launch(run_dir, members, f"--max_actor_steps={limit}")
    below = psutil.Process(launcher.pid).children(recursive=True)
    code = launcher.wait(END_SECONDS)
    last = look(folder, members)
    wrong += undone(seen, last)
    wrong += contradictions(folder, last)
    wrong += [f"It ended with code {code}."] if code else []
    wrong += [
        f"Member {name_of(i)} ended at {steps}."
        for i, (steps, _) in enumerate(last.saved)
        if steps < limit
    ]
    alive = psutil.wait_procs(below, timeout=storm.GONE_SECONDS)[1]
    wrong += [f"It left {process}." for process in alive]
    return Outcome(time.monotonic() - begun, struck, launches + 1, last, wrong)


def _launch(run_dir: pathlib.Path, members: int, *flags: str) -> "subprocess.Popen[bytes]":
    """Begins a population, or resumes it."""
    how = ("--resume",) if is_population(run_dir) else (*FLAGS, f"--members={members}")
    command = (sys.executable, "-m", "launch.population", f"--run_dir={run_dir}", *how, *flags)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _kill(launcher: "subprocess.Popen[bytes]", kind: str, chance: random.Random) -> int:
    """Kills the victims in a random order; returns how many processes they were."""
    above = psutil.Process(launcher.pid)
    playing = above.children()
    if kind == MEMBERS and playing:
        playing = chance.sample(playing, chance.randint(1, len(playing)))
    below = [*playing, *(each for one in playing for each in _children(one))]
    victims = {ALL: [above, *below], LAUNCHER: [above], MEMBERS: below}[kind]
    chance.shuffle(victims)
    for process in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    if kind != MEMBERS:
        launcher.wait()
    psutil.wait_procs(victims, timeout=storm.GONE_SECONDS)
    return len(victims)


def _children(process: psutil.Process) -> Sequence[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        found: list[psutil.Process] = process.children(recursive=True)
        return found
    return []


def _steps(seen: Seen) -> str:
    return ", ".join(f"{steps:,}" for steps, _ in seen.saved)


def main() -> int:
    """Kills a population; returns the exit code."""
    parser = study.parser(__doc__)
    parser.add_argument("run_dir", type=pathlib.Path, help="a new folder")
    parser.add_argument("--kills", type=int, default=20, help="before it may end")
    parser.add_argument("--members", type=int, default=4, help="of the population")
    parser.add_argument("--seed", type=int, default=0, help="of who is killed, and when")
    asked: dict[str, Any] = vars(parser.parse_args())
    outcome = run(asked.pop("run_dir").resolve(), **asked)
    made = [decision for own in outcome.last.made for decision in own]
    told = (
        f"{outcome.seconds:.0f} s, {outcome.launches} launches; {len(made)} decisions, of which "
        f"{sum(decision.adopted is not None for decision in made)} adopted; "
        f"{_steps(outcome.last)} steps"
    )
    return storm.end(outcome.struck, told, outcome.wrong)


if __name__ == "__main__":
    sys.exit(main())
