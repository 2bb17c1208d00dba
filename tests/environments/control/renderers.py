"""A renderer that draws MuJoCo's bodies here."""

import importlib.util

import pytest

from environments.control import renderer


def choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a test draw by EGL or OSMesa, or skips it where neither does."""
    if importlib.util.find_spec("dm_control") is None:
        pytest.skip("dm_control is not installed: `make setup-control`")
    said = ""
    for backend in ("egl", "osmesa"):
        monkeypatch.setenv("MUJOCO_GL", backend)
        try:
            renderer.check("control-pixels:cartpole/swingup")
            return
        except ValueError as error:
            said = str(error)
    pytest.skip(said)
