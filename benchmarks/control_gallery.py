"""Plays every task of continuous control at random, and films it.

    MUJOCO_GL=egl python -m benchmarks.control_gallery OUT docs/images/control_tasks.png

plays an episode to its end of each of the 28 tasks of the suite's benchmark and, where the
Real-World RL suite is installed, of its 16. OUT gets a film of each, of every tenth step; the
picture shows each in the middle of its episode.
"""

import contextlib
import importlib.util
import pathlib
import re
from collections.abc import Iterator, Mapping

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from analysis.playing import film as films
from benchmarks import study
from environments import screens
from environments.control import tasks as control_tasks

EVERY = 10  # steps between two pictures
_COLUMNS = 8


def names() -> Iterator[str]:
    """The tasks, as `--env` takes them."""
    yield from (f"control:{task}" for task in control_tasks.BENCHMARKING)
    if importlib.util.find_spec("realworldrl_suite") is not None:
        yield from (f"rwrl:{task}" for task in control_tasks.RWRL)


def play(name: str, film: pathlib.Path) -> tuple[int, np.ndarray]:
    """Plays an episode by actions drawn uniformly within their bounds, and films it.

    Returns:
      Its steps, and the picture of its middle, uint8 `[H, W, 3]`.

    Raises:
      ValueError: the task cannot be played or watched here.
    """
    screen = screens.make(name, seed=0)
    with contextlib.closing(screen.env) as env:
        env.action_space.seed(0)
        env.reset()
        pictures, steps, over = [screen.picture()], 0, False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            steps += 1
            over = bool(terminated[0] | truncated[0])
            if not over and steps % EVERY == 0:
                pictures.append(screen.picture())
    films.write(film, pictures, max(screen.frames_per_second // EVERY, 1))
    return steps, pictures[len(pictures) // 2]


def draw(pictures: Mapping[str, np.ndarray], path: pathlib.Path) -> None:
    """Draws all tasks, a picture each, by name."""
    rows = -(-len(pictures) // _COLUMNS)
    figure, axes = plt.subplots(
        rows, _COLUMNS, figsize=(1.5 * _COLUMNS, 1.4 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat:
        axis.axis("off")
    for axis, (name, picture) in zip(axes.flat, pictures.items(), strict=False):
        axis.imshow(picture)
        axis.set_title(name.removeprefix("control:").replace("/", "\n", 1), fontsize=6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Plays, films and draws."""
    out, image = map(pathlib.Path, study.positional(__doc__, "out", "picture"))
    pictures = {}
    for name in names():
        film = out / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.mp4"
        steps, pictures[name] = play(name, film)
        print(f"{name}: {steps:,} steps", flush=True)
    draw(pictures, image)


if __name__ == "__main__":
    main()
