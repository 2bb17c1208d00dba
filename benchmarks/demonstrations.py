"""Hard exploration with twenty demonstrations and without, as in R2D3's paper, in small.

    python -m benchmarks.demonstrations /tmp/demonstrations

records a bot, trains what docs/data/demonstrations.csv does not hold yet, each run for so many
minutes on all cores, and prints the page's table. A run that was cut goes on.
"""

import collections
import pathlib
from collections.abc import Iterator
from typing import Any

from benchmarks import study
from benchmarks.study import DOCS, Evaluation, Run

DATA = DOCS / "data/demonstrations.csv"
PAGE = DOCS / "demonstrations.md"
TASKS = ("gym:minigrid:MiniGrid-MultiRoom-N4-S5-v1", "gym:minigrid:MiniGrid-DoorKey-8x8-v0")
FRACTIONS = {"alone": "", "1/256": "1/256", "1/16": "1/16"}
SEEDS = range(3)
MINUTES = 20.0
DEMONSTRATIONS, EPISODES = 20, 100

_LEFT, _RIGHT, _FORWARD, _PICK_UP, _TOGGLE = 0, 1, 2, 3, 5
_STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # by MiniGrid's directions


def bot(observation: Any, env: Any) -> int:
    """The next action of a shortest way, in MiniGrid's rooms with doors, a key and a goal."""
    del observation
    cells = {
        (x, y): cell
        for x in range(env.width)
        for y in range(env.height)
        if (cell := env.grid.get(x, y)) is not None
    }
    locked = [place for place, cell in cells.items() if cell.type == "door" and cell.is_locked]
    kind, action = "goal", _FORWARD
    if locked:
        kind, action = ("door", _TOGGLE) if env.carrying else ("key", _PICK_UP)
    (target, *_) = locked if kind == "door" else [p for p, c in cells.items() if c.type == kind]
    x, y = map(int, env.agent_pos)
    first = next(_ways(cells, (x, y), int(env.agent_dir), target))
    ahead = cells.get((x + _STEPS[env.agent_dir][0], y + _STEPS[env.agent_dir][1]))
    if first is None:
        return action
    closed = first == _FORWARD and ahead is not None and ahead.type == "door" and not ahead.is_open
    return _TOGGLE if closed else first


def _ways(
    cells: dict[tuple[int, int], Any], place: tuple[int, int], direction: int, target: Any
) -> Iterator[int | None]:
    """First actions of shortest ways to where a target is ahead; None where it is already."""
    waiting: collections.deque[Any] = collections.deque([(place, direction, None)])
    seen = {(place, direction)}
    while waiting:
        (x, y), direction, first = waiting.popleft()
        ahead = (x + _STEPS[direction][0], y + _STEPS[direction][1])
        if ahead == target:
            yield first
        for action, state in (
            (_LEFT, ((x, y), (direction - 1) % 4)),
            (_RIGHT, ((x, y), (direction + 1) % 4)),
            (_FORWARD, (ahead, direction)),
        ):
            cell = cells.get(state[0])
            free = (
                cell is None or cell.type == "goal" or (cell.type == "door" and not cell.is_locked)
            )
            if state not in seen and (free or state[0] == (x, y)):
                seen.add(state)
                waiting.append((*state, action if first is None else first))


def train(run: Run, runs: pathlib.Path, minutes: float) -> Evaluation:
    """Trains a run and evaluates it.

    Raises:
      subprocess.CalledProcessError: it failed.
    """
    name = run.task.rpartition("-v")[0].rpartition("MiniGrid-")[2]
    folder, path = runs / f"bot-{name}", runs / f"{name}-{run.arm.replace('/', '_')}-{run.seed}"
    flags = ["--agent=r2d2", f"--env={run.task}", f"--seed={run.seed}"]
    if fraction := FRACTIONS[run.arm]:
        policy = "--policy=benchmarks.demonstrations:bot"
        recorded = (f"--env={run.task}", f"--folder={folder}", f"--episodes={DEMONSTRATIONS}")
        study.run(["launch.record", policy, *recorded], None)
        flags += [f"--demonstrations={folder}", f"--demo_fraction={fraction}"]
    study.train(path, flags, minutes)
    study.run(["launch.evaluate", f"--run_dir={path}", f"--episodes={EPISODES}"], None)
    found = study.newest_evaluation(path)
    assert found is not None
    return found


def table(found: dict[Run, Evaluation]) -> str:
    """The page's table: mean returns over the seeds of what all have been trained of."""
    rows = []
    for task in TASKS:
        whole = [a for a in FRACTIONS if all(Run(task, a, seed) in found for seed in SEEDS)]
        if whole == list(FRACTIONS):
            each = (study.over_seeds(found, "evaluated", task=task, arm=arm) for arm in whole)
            rows.append([f"`{task}`", *map(str, each)])
    return study.markdown(["task", *FRACTIONS], rows)


def main() -> None:
    found = study.parser_of_trainings(__doc__, "trainings", MINUTES)
    given = found.parse_args()
    runs = [Run(task, arm, seed) for task in TASKS for seed in SEEDS for arm in FRACTIONS]
    results = study.read(DATA, Run, Evaluation)
    if given.minutes:
        results = study.complete(
            DATA, runs, lambda run: train(run, given.runs, given.minutes), Evaluation
        )
    text = study.replace_block(PAGE.read_text(), "demonstrations", table(results))
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
