"""Hard exploration with twenty demonstrations and without, as in R2D3's paper, in small.

    python -m benchmarks.demonstrations /tmp/demonstrations

records a bot, trains what docs/data/demonstrations.csv does not hold yet, each run on a core, and
writes the page's table. A run that was cut goes on.
"""

import collections
import functools
import importlib
import pathlib
from collections.abc import Iterator
from typing import Any

import gymnasium

from benchmarks import study
from benchmarks.study import DOCS, Evaluation, Run

DATA = DOCS / "data/demonstrations.csv"
PAGE = DOCS / "demonstrations.md"
TASK = "benchmarks.demonstrations:lava"
FRACTIONS = {"alone": "", "1/64": "1/64", "1/8": "1/8"}
SEEDS = range(3)
UPDATES, MINUTES = 3_000, 60.0  # and what a run takes at most, wherever it is
DEMONSTRATIONS, EPISODES = 20, 100
NUM_LAYOUTS = 4
# The reward is at the end of twenty steps, so a target reaches further, and values fade sooner.
FIELDS = (
    *("--r2d2.n_step=5", "--r2d2.discount=0.97", "--num_actors=16"),
    # The local preset of then.
    *("--r2d2.length=32", "--r2d2.period=16", "--r2d2.batch_size=32", "--r2d2.forget_bias=1"),
)
RUNS = [Run(TASK, arm, seed) for seed in SEEDS for arm in FRACTIONS]
ENDS = (f"--max_learner_steps={UPDATES}", "--evaluation_episodes=0")


def lava() -> gymnasium.Env:
    """MiniGrid's largest crossing of five rivers of lava, in four layouts, as an image.

    A step into lava ends an episode unpaid; the goal pays 1, less 0.9 of the time that it took.
    """
    importlib.import_module("minigrid")  # which makes its tasks known
    wrappers = importlib.import_module("minigrid.wrappers")
    made = gymnasium.make("MiniGrid-LavaCrossingS11N5-v0")
    seeded: gymnasium.Env = wrappers.ReseedWrapper(
        wrappers.ImgObsWrapper(made), seeds=range(NUM_LAYOUTS)
    )
    return seeded


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


def record(folder: pathlib.Path) -> None:
    """Has the bot play; a folder that is whole stays as it is."""
    flags = (f"--env={TASK}", f"--folder={folder}", f"--episodes={DEMONSTRATIONS}")
    study.run(["launch.record", "--policy=benchmarks.demonstrations:bot", *flags], None)


def train(runs: pathlib.Path, minutes: float, run: Run, core: int) -> Evaluation:
    """Trains a run on a core, and evaluates it."""
    flags = ["--agent=r2d2", f"--env={run.task}", f"--seed={run.seed}", *FIELDS]
    if fraction := FRACTIONS[run.arm]:
        flags += [f"--demonstrations={runs / 'bot'}", f"--demo_fraction={fraction}"]
    path, alone = folder_of(runs, run), ("taskset", "-c", str(core))
    study.train(path, [*flags, *ENDS], minutes, alone)
    return study.evaluate(path, EPISODES, alone)


def folder_of(runs: pathlib.Path, run: Run) -> pathlib.Path:
    """The run folder of a training."""
    return runs / f"{run.arm.replace('/', '_')}-{run.seed}"


def table(found: dict[Run, Evaluation]) -> str:
    """The page's table: means over the seeds, of the arms whose seeds are all there."""
    whole = [arm for arm in FRACTIONS if all(Run(TASK, arm, seed) in found for seed in SEEDS)]
    rows = []
    for arm in whole:
        each = [found[Run(TASK, arm, seed)] for seed in SEEDS]
        steps = sum(one.actor_steps for one in each) / len(each)
        values = (f"{one.evaluated:.2f}" for one in each)
        rows.append(
            [arm, str(study.over_seeds(found, "evaluated", arm=arm)), *values, f"{steps:,.0f}"]
        )
    seeds = (f"seed {seed}" for seed in SEEDS)
    return study.markdown(["demonstrations", "return", *seeds, "actor steps"], rows)


def main() -> None:
    given = study.parser_of_trainings(__doc__, "trainings", MINUTES).parse_args()
    results = study.read(DATA, Run, Evaluation)
    lacking = [run for run in RUNS if run not in results]
    if given.minutes and lacking:
        record(given.runs / "bot")
        work = functools.partial(train, given.runs, given.minutes)
        for run, found in study.on_cores(lacking, work):
            study.extend(DATA, {run: found})
            print(*run, found.evaluated, flush=True)
    text = table(study.read(DATA, Run, Evaluation))
    PAGE.write_text(study.replace_block(PAGE.read_text(), "demonstrations", text))


if __name__ == "__main__":
    main()
