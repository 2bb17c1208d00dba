"""The study of memory tasks: what is trained, what is kept of it, and what is shown."""

import csv
import pathlib

import numpy as np
import pytest

from r2d2.config import VARIANTS
from r2d2.policy import epsilon_ladder
from run_folder.layout import RunFolder
from studies import memory, records
from studies.curves import Episodes
from studies.memory import PPO, R2D2, Minute, Run

TASK = next(iter(memory.TASKS))


def test_returns_are_of_actors_that_hardly_explore() -> None:
    own = VARIANTS[R2D2]
    actors = np.arange(memory.NUM_ACTORS)
    epsilons = epsilon_ladder(actors, len(actors), own.epsilon_base, own.epsilon_alpha)
    assert [i for i, epsilon in enumerate(epsilons) if epsilon < 0.01] == list(memory.GREEDY)


def test_each_training_is_another() -> None:
    assert len({memory.folder_of(pathlib.Path(), run) for run in memory.RUNS}) == 18
    assert f"--env={TASK}" in memory.flags(memory.RUNS[0])


def test_what_is_kept_of_a_run(tmp_path: pathlib.Path) -> None:
    run = Run(TASK, R2D2, 1)
    log = RunFolder(tmp_path).log("episodes")
    log.parent.mkdir()
    with log.open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["walltime", "actor_steps", "episode_return", "actor"])
        rows.writerows([[10, 100, 3, 15], [20, 200, -9, 0], [50, 300, 5, 9], [70, 900, 8, 12]])
    assert list(memory.minutes_of(tmp_path, run)) == [
        (Minute(*run, 0), Episodes(200.0, 4.0)),
        (Minute(*run, 1), Episodes(900.0, 8.0)),
    ]
    peer = run._replace(agent=PPO)
    assert [e.episode_return for _, e in memory.minutes_of(log, peer)] == [
        pytest.approx(-1 / 3),
        8.0,
    ]


def test_it_is_drawn_and_told(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "memory.csv"
    for agent, final in ((R2D2, 0.5), (PPO, -0.25)):
        for seed in memory.SEEDS:
            for minute, value in enumerate((-1.0, final - 0.1, final + 0.1)):
                key = Minute(TASK, agent, seed, minute)
                records.append(path, key, Episodes(1_000.0 * minute * seed, value))
    points = memory.read(path)
    memory.draw(points, tmp_path / "memory.png")
    assert (tmp_path / "memory.png").stat().st_size > 10_000
    assert memory.table(points).splitlines()[2:] == [
        f"| `{TASK}` | 0.50 ± 0.00 | 4,000 | -0.25 ± 0.00 | 4,000 |"
    ]
