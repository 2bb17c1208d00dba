"""Films an episode: the picture, and beside it the agent's actions and estimates.

`shoot` plays and yields a frame for each step, `Captions` draws a frame, and `write` makes an mp4
of the drawn frames that a browser plays.
"""

import contextlib
import functools
import itertools
import os
import pathlib
import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from agents import environment_loop
from agents.networks import network
from analysis.playing.evaluation import Player
from environments import screens
from environments.copies.dead_simulators import CannotPlayError
from replay.structures import Nest, Step

PANEL_WIDTH = 320
MIN_HEIGHT = 480
_TARGET_HEIGHT, _MAX_WIDTH = 600, 800  # of the picture, roughly
_MARGIN = 16
_TINY, _SMALL, _LARGE = 14, 20, 30  # sizes of text
_LETTERS = 36  # of a line that can still be read
_MOST_STEPS, _FEWEST_STEPS, _TRACE_HEIGHT = 150, 30, 90
_BACKGROUND, _GREY, _WHITE, _BLUE = (24, 24, 28), (150, 150, 160), (240, 240, 240), (110, 180, 255)

# Every player has H.264 with colours at half the resolution; no browser has it at full.
_PIXELS = "yuv420p"
# Constant quality, less is better. The codec's own choice, 23, blurs small text.
_QUALITY = {"crf": "20", "preset": "veryfast"}
_FROM_THE_START = {"movflags": "faststart"}  # a browser shows it before it has all of it


class Frame(NamedTuple):
    """One step of an episode."""

    picture: np.ndarray  # uint8 [H, W, 3]
    step: int  # actor steps made so far
    score: float  # undiscounted return so far
    action: str  # in words; empty once the episode has ended
    probability: float  # with which the policy chose it
    estimates: dict[str, float]  # Q of the action, or V, in the rewards' units


class _Onlooker:
    """Keeps the newest row of an actor. Implements `agents.actor.Writer`."""

    row: Step
    values: dict[str, np.ndarray]

    def append(
        self, step: Step, *, core_state: Nest, values: dict[str, np.ndarray], learner_step: int
    ) -> None:
        self.row, self.values = step, values


def shoot(player: Player, task: str) -> tuple[int, Iterator[Frame]]:
    """Plays and films one episode.

    Args:
      player: who plays.
      task: one of `player.tasks`.

    Returns:
      Frames per second, and the frames: one for each step, then one of the last picture, with the
      estimates of the step before.
    """
    screen = screens.make(
        task,
        seed=player.played.seed,
        full_action_space=player.run.full_action_space,
        full_rendering=player.run.full_rendering,
    )
    return screen.frames_per_second, _frames(player, task, screen)


def _frames(player: Player, task: str, screen: screens.Screen) -> Iterator[Frame]:
    onlooker, index = _Onlooker(), player.tasks.index(task)
    agent, actions = player.agent, player.network.actions
    evaluator = player.actor(1, onlooker)
    with contextlib.closing(screen.env):
        loop = environment_loop.VectorEnvironmentLoop(screen.env, evaluator, [task])
        score, ended, told = 0.0, False, dict[str, float]()
        for step in itertools.count():
            picture = screen.picture()
            if ended:
                yield Frame(picture, step, score, "", 1.0, told)
                return
            ended = bool(loop.step()[1])
            if loop.lost:
                raise CannotPlayError(f"The episode of {task} that was filmed was lost.")
            row, chosen = onlooker.row, onlooker.row.action
            estimates = agent.estimates(player.update, onlooker.values, index)
            told = {name: float(value[0]) for name, value in estimates.items()}
            given = (
                agent.environment_action(chosen, actions) if agent.environment_action else chosen
            )
            # Of a bounded vector there is only a density, which is no probability.
            sure = float(np.exp(row.log_probability[0])) if network.is_discrete(actions) else 1.0
            yield Frame(picture, step, score, screen.action_name(given[0]), sure, told)
            score += float(row.reward[0])


class Captions:
    """Draws the frames of one episode, in order.

    Args:
      title: lines above everything else.
    """

    def __init__(self, *title: str) -> None:
        self._title = title
        self._trace: deque[float] = deque(maxlen=_MOST_STEPS)

    def draw(self, frame: Frame) -> np.ndarray:
        """One picture of the film: uint8 `[H, W, 3]`, both even, of the same size for all."""
        picture = _enlarged(frame.picture)
        height = max(picture.height, MIN_HEIGHT)
        canvas = Image.new("RGB", (_even(picture.width + PANEL_WIDTH), _even(height)), _BACKGROUND)
        canvas.paste(picture, (0, (height - picture.height) // 2))
        panel = _Panel(canvas, picture.width + _MARGIN)
        for line in self._title:
            panel.write(line, _SMALL, _GREY)
        panel.show("score", f"{frame.score:,.10g}")
        sure = f"  {frame.probability:.0%}" if frame.probability <= 0.995 else ""
        panel.show("action", frame.action + sure if frame.action else "the episode has ended")
        for name, value in frame.estimates.items():
            panel.show(name, f"{value:,.4g}")
        self._trace.extend(list(frame.estimates.values())[:1])
        panel.plot(self._trace)
        panel.write(f"step {frame.step:,}", _SMALL, _GREY)
        return np.asarray(canvas)


def _enlarged(picture: np.ndarray) -> Image.Image:
    """A picture enlarged by a whole factor, so that every pixel stays a square."""
    height, width = picture.shape[:2]
    factor = max(1, min(round(_TARGET_HEIGHT / height), _MAX_WIDTH // width))
    return Image.fromarray(picture.repeat(factor, axis=0).repeat(factor, axis=1))


def _even(length: int) -> int:
    """A length made even, since H.264 halves the resolution of colours."""
    return length + length % 2


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


class _Panel:
    """The column beside the picture, filled from the top."""

    def __init__(self, canvas: Image.Image, left: int) -> None:
        self._draw = ImageDraw.Draw(canvas)
        self._left = left
        self._top = _MARGIN
        self._width = PANEL_WIDTH - 2 * _MARGIN

    def write(self, text: str, size: int, colour: tuple[int, int, int]) -> None:
        """One line, in smaller letters if it would not fit."""
        fits = size
        while fits > 8 and self._draw.textlength(text, _font(fits)) > self._width:
            fits -= 1
        self._draw.text((self._left, self._top), text, colour, _font(fits))
        self._top += round(1.3 * size)

    def show(self, name: str, value: str) -> None:
        """A name above its value; a long one, an action of many joints, takes several lines."""
        self._top += _MARGIN // 2
        self.write(name, _SMALL, _GREY)
        lines = textwrap.wrap(value, _LETTERS)
        for line in lines:
            self.write(line, _LARGE if len(lines) == 1 else _TINY, _WHITE)

    def plot(self, values: Sequence[float]) -> None:
        """A line through the values, the newest last, and one at zero."""
        low, high = min([0.0, *values]), max([0.0, *values])
        scale = _TRACE_HEIGHT / (high - low) if high > low else 0.0
        bottom = self._top + _MARGIN // 2 + _TRACE_HEIGHT
        zero, width = bottom + scale * low, self._width - 2  # lines reach past their ends
        self._draw.line([(self._left, zero), (self._left + width, zero)], _GREY)
        step = width / (max(len(values), _FEWEST_STEPS) - 1)
        points = [
            (self._left + i * step, bottom - scale * (value - low))
            for i, value in enumerate(values)
        ]
        self._draw.line(points, _BLUE, width=2)
        self._top = bottom + _MARGIN


def write(path: pathlib.Path, frames: Iterable[np.ndarray], frames_per_second: int) -> None:
    """Writes a film. Its file appears when it is complete.

    Args:
      path: of the file, whose folder is made.
      frames: uint8 `[H, W, 3]`, at least one, of the same even height and width.
      frames_per_second: how fast they follow one another.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Of two processes that film the same at once each has its own.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    frames = iter(frames)
    first = next(frames)
    try:
        with av.open(str(unfinished), "w", format="mp4", options=_FROM_THE_START) as container:
            stream = container.add_stream("libx264", rate=frames_per_second, options=_QUALITY)
            stream.height, stream.width = first.shape[:2]
            stream.pix_fmt = _PIXELS
            for frame in itertools.chain([first], frames):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
            container.mux(stream.encode())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)  # it is where it belongs, or was cut short
