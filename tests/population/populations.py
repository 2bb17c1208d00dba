"""Populations, what their members decided, and what they logged."""

import json
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from population import decisions
from population.decisions import Decision
from population.folder import PopulationFolder
from population.settings import Population
from run_folder.layout import RunFolder

AGENT = "impala"
RETURNS = (-1.0, 0.5, 1.0)  # of the three members of the fixture `state`
SWEEP = dict(learning_rate="log:1e-4:1e-2", entropy_cost="choice:0.01,0.001")


def settings_of(**given: Any) -> Population:
    """Three members on catch, which decide soon."""
    values: dict[str, Any] = dict(
        agent=AGENT,
        env="catch",
        seed=0,
        sweep=SWEEP,
        flags=dict(num_actors=4),
        overrides={},
        members=3,
        turn_steps=1_000,
        burn_in_frames=0,
        ready_episodes=10,
    )
    return Population(**(values | given))


def decision_of(member: int, number: int, **given: Any) -> Decision:
    """A decision by which nothing was adopted."""
    values: dict[str, Any] = dict(
        member=member,
        number=number,
        time=1_000.0 + 10 * number + member,
        actor_steps=100 * number,
        episodes=10 * number,
        learner_step=5 * number,
        score=None,
        rival=None if number == 0 else (member + 1) % 3,
        rival_score=None,
        adopted=None,
        rival_learner_step=None,
        ancestor=member,
        old={} if number == 0 else dict(learning_rate=1e-3, entropy_cost=0.01),
        new=dict(learning_rate=1e-3, entropy_cost=0.01),
    )
    return Decision(**(values | given))


def decide(folder: PopulationFolder, member: int, numbers: int) -> list[Decision]:
    """Makes so many decisions of a member, none of which adopts anything."""
    made = [decision_of(member, number) for number in range(numbers)]
    for decision in made:
        assert decisions.write(folder, decision)
    return made


def newest(folder: PopulationFolder, member: int) -> Decision | None:
    """The last decision of a member; None before its first."""
    made = decisions.of_member(folder, member)
    return made[-1] if made else None


def listed(folder: PopulationFolder) -> list[Decision]:
    """The decisions in population.jsonl."""
    return [Decision(**json.loads(line)) for line in folder.listing.read_text().splitlines()]


def names(folder: PopulationFolder) -> set[str]:
    """Of all that stands among the decisions."""
    return {path.name for path in folder.decisions.iterdir()}


def refuse(code: int) -> Callable[..., None]:
    """A stand-in for a system call that fails."""

    def call(path: object, *_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code), str(path))

    return call


def log_episodes(run: RunFolder, returns: Sequence[tuple[int, str, float]]) -> None:
    """Adds episodes to a run's log: actor steps, task, return."""
    run.logs.mkdir(parents=True, exist_ok=True)
    path = run.log("episodes")
    if not path.exists():
        path.write_text("actor_steps,walltime,actor,task,episode_return,episode_length\n")
    with path.open("a") as file:
        for actor_steps, task, episode_return in returns:
            file.write(f"{actor_steps},1.0,0,{task},{episode_return},9\n")


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
