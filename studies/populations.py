"""Populations and sweeps in small, as IMPALA's and PopArt's papers show theirs.

    python -m studies.populations evolution RUNS
    python -m studies.populations corrections RUNS
    python -m studies.populations popart RUNS --minutes=120

trains what RUNS does not hold yet, writes docs/data/populations_<study>.csv, then draws and prints
it. What was cut short goes on. The first is four members on catch that evolve, beside the same four
that do not; the second Figure D.2 of Espeholt et al. 2018, twelve samples of each correction; the
third PopArt on four games, for as long as it is given.
"""

import itertools
import pathlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

from population import settings
from population.folder import PopulationFolder, is_population
from run_folder import checkpoints
from studies import arguments, timed
from studies import populations_results as results

SEEDS = range(3)
ARMS = {"all": "evolves", "none": "does not"}
MEMBERS, STEPS = 4, 160_000
SAMPLES, CORRECTIONS, SWEEP_STEPS = 12, ("vtrace", "one_step", "epsilon", "none"), 40_000
GAMES = "atari:pong,atari:breakout,atari:crazy_climber,atari:qbert"

Flags = tuple[str, ...]

_CATCH: Flags = ("--agent=impala", "--env=catch", "--num_actors=16", "--evaluation_episodes=0")
_EVOLUTION: Flags = (
    *(f"--members={MEMBERS}", "--sweep=impala.learning_rate=log:5e-6:5e-3"),
    *("--annealing_frames=none", "--burn_in_frames=10000", "--ready_episodes=2000"),
    f"--max_actor_steps={STEPS}",
)
_CORRECTIONS: Flags = (
    *(
        f"--members={SAMPLES * len(CORRECTIONS)}",
        "--evolve=none",
        "--concurrent=2",
        "--impala.replay_fraction=0.5",
    ),
    *("--sweep=impala.learning_rate=log:5e-4:5e-2", "--sweep=impala.entropy_cost=log:5e-5:1e-2"),
    f"--sweep=impala.correction=grid:{','.join(CORRECTIONS)}",
    f"--max_actor_steps={SWEEP_STEPS}",
)
# The paper's burn-in of 20 million frames and 5,000 episodes would outlast two hours.
_POPART: Flags = (
    *("--agent=popart", f"--env={GAMES}", f"--members={MEMBERS}", "--evaluation_episodes=0"),
    *("--burn_in_frames=2000000", "--ready_episodes=1000", "--turn_steps=400000"),
)


class Study(NamedTuple):
    """Populations, and what is shown of them."""

    populations: Mapping[str, Flags]  # name -> as they are begun
    fields: tuple[str, ...]  # whose values are kept
    points: int  # of each member's score
    draw: Callable[[results.Rows, pathlib.Path], None]
    tell: Callable[[results.Rows], str]


STUDIES = {
    "evolution": Study(
        {
            f"{arm}-{seed}": (*_CATCH, *_EVOLUTION, f"--evolve={arm}", f"--seed={seed}")
            for seed, arm in itertools.product(SEEDS, ARMS)
        },
        ("learning_rate",),
        20,
        results.draw_evolution,
        results.tell_evolution,
    ),
    "corrections": Study(
        {"corrections": (*_CATCH, *_CORRECTIONS)},
        ("correction", "learning_rate", "entropy_cost"),
        10,
        results.draw_corrections,
        results.tell_corrections,
    ),
    "popart": Study(
        {"popart": _POPART},
        ("learning_rate", "entropy_cost", "rmsprop_epsilon", "max_gradient_norm"),
        40,
        results.draw_popart,
        results.tell_popart,
    ),
}


def data(name: str) -> pathlib.Path:
    """Where a study's rows are kept."""
    return arguments.DOCS / "data" / f"populations_{name}.csv"


def has_ended(path: pathlib.Path) -> bool:
    """Whether every member of a population has reached its limit; without one it never has."""
    if not is_population(path):
        return False
    found, folder = settings.load(path), PopulationFolder(path)
    manifests = [checkpoints.parse(folder.member(i).checkpoints) for i in range(found.members)]
    return all(
        m is not None and found.is_at_limit(m.actor_steps, m.learner_step) for m in manifests
    )


def train(path: pathlib.Path, flags: Flags, minutes: float | None) -> None:
    """Begins a population, or goes on with it, to its limit or for so many minutes.

    Raises:
      subprocess.CalledProcessError: it failed.
    """
    how = ("--resume",) if is_population(path) else flags
    timed.run(["launch.population", f"--run_dir={path}", *how], minutes)


def main() -> None:
    """Trains what is missing, then writes, draws and prints it."""
    parser = arguments.of_trainings(__doc__, "populations", None, {"study": STUDIES})
    asked = parser.parse_args()
    study, name = STUDIES[asked.study], f"populations_{asked.study}"
    for population, flags in study.populations.items():
        if asked.minutes is None and not any(flag.startswith("--max_") for flag in flags):
            parser.error(f"{asked.study} has no end of its own: add --minutes=120")
        if asked.minutes != 0 and not has_ended(asked.runs / population):
            train(asked.runs / population, flags, asked.minutes)
    rows = [
        row
        for population in study.populations
        for row in results.read(asked.runs / population, study.fields, study.points)
    ]
    arguments.make_folders(asked.docs)
    results.write(asked.docs / "data" / f"{name}.csv", study.fields, rows)
    study.draw(rows, asked.docs / "images" / f"{name}.png")
    print(study.tell(rows))


if __name__ == "__main__":
    main()
