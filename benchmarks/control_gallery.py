"""Plays every task of continuous control at random, and films it.

    MUJOCO_GL=egl python -m benchmarks.control_gallery OUT docs/images/control_tasks.png

plays an episode to its end of each of the 28 tasks of the suite's benchmark and, where the
Real-World RL suite is installed, of its 16. OUT gets a film of each, of every tenth step; the
picture shows each in the middle of its episode. A table says how long it took.
"""

import contextlib
import importlib.util
import pathlib
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from analysis.playing import film as films
from benchmarks import study
from environments import screens
from environments.control import tasks as control_tasks
from environments.dm import make_environment_spec

EVERY = 10  # steps between two pictures
_COLUMNS = 8


class Played(NamedTuple):
    """An episode of a task."""

    name: str
    observed: int  # numbers that an agent sees
    acted: int  # and gives
    steps: int
    episode_return: float
    seconds: float  # with the pictures
    picture: np.ndarray  # uint8 [H, W, 3], of its middle


def names() -> Iterator[str]:
    """The tasks, as `--env` takes them."""
    yield from (f"control:{task}" for task in control_tasks.BENCHMARKING)
    if importlib.util.find_spec("realworldrl_suite") is not None:
        yield from (f"rwrl:{task}" for task in control_tasks.RWRL)


def play(name: str, film: pathlib.Path) -> Played:
    """Plays an episode by actions drawn uniformly within their bounds, and films it.

    Raises:
      ValueError: the task cannot be played or watched here.
    """
    spec, began = make_environment_spec(name), time.monotonic()
    screen = screens.make(name, seed=0)
    with contextlib.closing(screen.env) as env:
        env.action_space.seed(0)
        env.reset()
        pictures, rewards, over = [_picture(screen)], [], False
        while not over:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            rewards.append(float(reward[0]))
            over = bool(terminated[0] | truncated[0])
            if not over and len(rewards) % EVERY == 0:
                pictures.append(_picture(screen))
    films.write(film, pictures, max(screen.frames_per_second // EVERY, 1))
    return Played(
        name=name,
        observed=spec.observations.shape[0],
        acted=spec.actions.shape[0],
        steps=len(rewards),
        episode_return=sum(rewards),
        seconds=time.monotonic() - began,
        picture=pictures[len(pictures) // 2],
    )


def _picture(screen: screens.Screen) -> np.ndarray:
    pictures = screen.env.render()
    assert pictures is not None
    return np.asarray(pictures[0]).copy()


def draw(played: Sequence[Played], path: pathlib.Path) -> None:
    """All tasks, a picture each."""
    rows = -(-len(played) // _COLUMNS)
    figure, axes = plt.subplots(
        rows, _COLUMNS, figsize=(1.5 * _COLUMNS, 1.4 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat:
        axis.axis("off")
    for axis, each in zip(axes.flat, played, strict=False):
        axis.imshow(each.picture)
        axis.set_title(each.name.removeprefix("control:").replace("/", "\n", 1), fontsize=6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def table(played: Iterable[Played]) -> str:
    """In Markdown: a task a row."""
    rows = []
    for one in played:
        counts = (one.name, str(one.observed), str(one.acted), f"{one.steps:,}")
        rows.append([*counts, f"{one.episode_return:.1f}", f"{one.seconds:.1f}"])
    return study.markdown(["task", "observation", "action", "steps", "return", "s"], rows)


def main() -> None:
    """Plays, films, draws and prints."""
    out, picture = map(pathlib.Path, study.positional(__doc__, "out", "picture"))
    played = []
    for name in names():
        played.append(play(name, out / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.mp4"))
        print(f"{name}: {played[-1].steps:,} steps in {played[-1].seconds:.1f} s", flush=True)
    draw(played, picture)
    print(table(played))


if __name__ == "__main__":
    main()
