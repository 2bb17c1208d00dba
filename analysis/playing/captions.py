"""Draws what an agent does beside the picture of what it does it to."""

import functools
import textwrap
from collections import deque
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from analysis.playing.film import Frame

PANEL_WIDTH = 320
MIN_HEIGHT = 480
_TARGET_HEIGHT, _MAX_WIDTH = 600, 800  # of the picture, roughly
_MARGIN = 16
_TINY, _SMALL, _LARGE = 14, 20, 30  # sizes of text
_LETTERS = 36  # of a line that can still be read
_MOST_STEPS, _FEWEST_STEPS, _TRACE_HEIGHT = 150, 30, 90
_BACKGROUND, _GREY, _WHITE, _BLUE = (24, 24, 28), (150, 150, 160), (240, 240, 240), (110, 180, 255)


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
        panel.show("action", _action(frame))
        for name, value in frame.estimates.items():
            panel.show(name, f"{value:,.4g}")
        self._trace.extend(list(frame.estimates.values())[:1])
        panel.plot(self._trace)
        panel.write(f"step {frame.step:,}", _SMALL, _GREY)
        return np.asarray(canvas)


def _action(frame: Frame) -> str:
    if not frame.action:
        return "the episode has ended"
    return frame.action if frame.probability > 0.995 else f"{frame.action}  {frame.probability:.0%}"


def _enlarged(picture: np.ndarray) -> Image.Image:
    """In whole multiples, so that every pixel stays a square."""
    height, width = picture.shape[:2]
    factor = max(1, min(round(_TARGET_HEIGHT / height), _MAX_WIDTH // width))
    return Image.fromarray(picture.repeat(factor, axis=0).repeat(factor, axis=1))


def _even(length: int) -> int:
    """H.264 halves the resolution of colours."""
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
