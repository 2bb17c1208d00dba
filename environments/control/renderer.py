"""MuJoCo's renderer: whether there is one here, and its choice.

dm_control chooses its renderer when it is imported, by the variable MUJOCO_GL. A renderer's threads
do not survive a fork: a process that is forked later hangs at its first picture. So dm_control is
imported here without one, and gets it in the process that draws, when it does.
"""

import contextlib
import functools
import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

_VARIABLE = "MUJOCO_GL"
_NONE = "off"
_PATIENCE = 120.0  # seconds; a first picture takes two
_PACKAGES = (
    "MUJOCO_GL=egl takes Debian's libegl1, libegl-mesa0, libgl1 and libgl1-mesa-dri, "
    "MUJOCO_GL=osmesa takes libosmesa6"
)
_DRAW = """
from dm_control import mujoco
mujoco.Physics.from_xml_string("<mujoco><worldbody/></mujoco>").render(8, 8)
print("drawn")
"""


def check(name: str) -> None:
    """Refuses to draw where nothing can be drawn, which another process tries once.

    Args:
      name: of the task to be drawn, for the sentence.

    Raises:
      ValueError: a sentence with the packages to install.
    """
    chosen = os.environ.get(_VARIABLE)
    if chosen is None and not os.environ.get("DISPLAY"):
        why = "there is no display and MUJOCO_GL is not set"
    elif said := _failure(chosen):
        setting = "without MUJOCO_GL" if chosen is None else f"with MUJOCO_GL={chosen}"
        why = f"nothing can be drawn here {setting} ({said})"
    else:
        return
    raise ValueError(f"{name!r} needs a renderer, but {why}: {_PACKAGES}.")


@functools.cache
def _failure(chosen: str | None) -> str:
    """Tries to draw, and says why that fails; forks of this process need not try again."""
    try:
        tried = subprocess.run(
            [sys.executable, "-c", _DRAW],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except subprocess.TimeoutExpired:
        return f"no picture after {_PATIENCE:g} s"
    if "drawn" in tried.stdout:
        return ""
    lines = tried.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {tried.returncode}"


@contextlib.contextmanager
def without() -> Iterator[None]:
    """Imports within it find no renderer; one that is in use stays."""
    chosen = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = _NONE
    try:
        yield
    finally:
        del os.environ[_VARIABLE]
        if chosen is not None:
            os.environ[_VARIABLE] = chosen


def use() -> None:
    """Gives dm_control in this process its renderer, for good. No fork may follow.

    Raises:
      ValueError: as `check`.
    """
    with without():
        from dm_control import _render
    if _render.BACKEND != _NONE:
        return
    check("A picture")
    # dm_control and PyOpenGL tell of the backends that they try.
    disabled = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        importlib.reload(_render)
    finally:
        logging.disable(disabled)
