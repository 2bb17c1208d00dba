"""What `studies.reproduction` compares: tasks, agents on them, and what the paper says of those."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agents.contract import Agent
from r2d2 import agent as r2d2
from run_folder import catalogue
from studies import ripening
from studies.reproduction_results import Comparison, Run


class Arm(NamedTuple):
    """One of the agents that are compared: what it changes in its task's config."""

    changes: dict[str, Any]
    agent: str = "r2d2"


class Task(NamedTuple):
    """What its arms have in common."""

    steps: int  # of the environments, in each run
    changes: dict[str, Any]  # of the local preset
    arms: Mapping[str, Arm]


class Study(NamedTuple):
    """One question to the paper."""

    arms: Mapping[str, Sequence[str]]  # by task
    comparisons: Sequence[Comparison]


FEEDFORWARD = "feed-forward"


def _memory(burn_in: int) -> dict[str, Arm]:
    """From zero or from the stored state, with a burn-in or without; and without any state."""
    return {
        "zero": Arm(dict(burn_in=0, stored_state=False)),
        f"zero, burn-in {burn_in}": Arm(dict(burn_in=burn_in, stored_state=False)),
        "stored": Arm(dict(burn_in=0)),
        f"stored, burn-in {burn_in}": Arm(dict(burn_in=burn_in)),
        FEEDFORWARD: Arm(dict(burn_in=0), agent="r2d2_feedforward"),
    }


_LONG_BURN_IN = {"zero, burn-in 4": Arm(dict(burn_in=4, stored_state=False))}
_REWARDS = {
    "rescaled": Arm({}),
    "clipped": Arm(dict(rescale=False, reward_transform="clip")),
}
TASKS = {
    # Items of half an episode: none but those with the long burn-in hold both cue and query.
    "memory:recall": Task(30_000, dict(length=4, period=4), _memory(2) | _LONG_BURN_IN),
    "memory:cartpole": Task(50_000, {}, _memory(8)),
    ripening.NAME: Task(30_000, {}, _REWARDS),
    "catch:large_rewards": Task(30_000, {}, _REWARDS),
}
# Half an item, as in the paper: so much is R2D2's burn-in.
_BURN_INS = {"memory:recall": 2, "memory:cartpole": 8}


def _state_comparisons(task: str, burn_in: int) -> list[Comparison]:
    zero, stored = f"zero, burn-in {burn_in}", f"stored, burn-in {burn_in}"
    pairs = (("stored", "zero"), (zero, "zero"), (stored, zero), (stored, "stored"))
    return [Comparison(task, better, worse) for better, worse in pairs]


STUDIES = {
    "state": Study(
        {task: [arm for arm in TASKS[task].arms if arm != FEEDFORWARD] for task in _BURN_INS},
        [
            *_state_comparisons("memory:recall", 2),
            Comparison("memory:recall", "zero, burn-in 4", "zero"),
            *_state_comparisons("memory:cartpole", 8),
        ],
    ),
    "feedforward": Study(
        {task: [f"stored, burn-in {n}", FEEDFORWARD] for task, n in _BURN_INS.items()},
        [Comparison(task, f"stored, burn-in {n}", FEEDFORWARD) for task, n in _BURN_INS.items()],
    ),
    "rewards": Study(
        {task: list(_REWARDS) for task in (ripening.NAME, "catch:large_rewards")},
        [
            Comparison(task, "rescaled", "clipped")
            for task in (ripening.NAME, "catch:large_rewards")
        ],
    ),
}


def runs(studies: Iterable[str], seeds: int) -> list[Run]:
    """The trainings of some studies, all arms of a seed before the next seed."""
    found = [
        Run(task, arm, seed)
        for seed in range(seeds)
        for study in studies
        for task, arms in STUDIES[study].arms.items()
        for arm in arms
    ]
    return list(dict.fromkeys(found))  # two studies may share an arm


def make_agent(run: Run) -> Agent:
    """The agent of a run: the local preset, with what its task and arm change."""
    task = TASKS[run.task]
    arm = task.arms[run.arm]
    values = (
        catalogue.preset_config("local", catalogue.entry(arm.agent), run.task)
        | task.changes
        | arm.changes
    )
    config = dataclasses.replace(r2d2.VARIANTS[arm.agent], **values)
    return r2d2.make(config, arm.agent)
