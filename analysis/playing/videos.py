"""Films as mp4 files that a browser plays."""

import itertools
import os
import pathlib
from collections.abc import Iterable

import av
import numpy as np

# Every player has H.264 with colours at half the resolution; no browser has it at full.
_PIXELS = "yuv420p"
# Constant quality, less is better. The codec's own choice, 23, blurs small text.
_QUALITY = {"crf": "20", "preset": "veryfast"}
_FROM_THE_START = {"movflags": "faststart"}  # a browser shows it before it has all of it


def write(path: pathlib.Path, frames: Iterable[np.ndarray], frames_per_second: int) -> None:
    """Writes a film. It is there when it is whole.

    Args:
      path: of the file, whose folder is made.
      frames: uint8 `[H, W, 3]`, at least one, of the same even height and width.
      frames_per_second: how fast they follow one another.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    frames = iter(frames)
    first = next(frames)
    with av.open(str(unfinished), "w", format="mp4", options=_FROM_THE_START) as container:
        stream = container.add_stream("libx264", rate=frames_per_second, options=_QUALITY)
        stream.height, stream.width = first.shape[:2]
        stream.pix_fmt = _PIXELS
        for frame in itertools.chain([first], frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    os.replace(unfinished, path)
