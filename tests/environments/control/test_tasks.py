"""The names of continuous tasks, and the sentences about missing packages, which need none."""

import subprocess

import pytest

from environments import screens, suites
from environments.control import environment as control
from environments.control import renderer
from environments.control import tasks as control_tasks


def test_there_are_28_tasks_to_compare_agents_on_and_16_challenges() -> None:
    assert len(control_tasks.BENCHMARKING) == 28
    assert set(control_tasks.BENCHMARKING) < set(control_tasks.CONTROL)
    assert all(len(set(tasks)) == len(tasks) for tasks in control_tasks.TASKS.values())
    assert len(set(control_tasks.CONTROL)) == len(control_tasks.CONTROL) == 49
    assert len(set(control_tasks.RWRL)) == 16


@pytest.mark.parametrize(
    ("name", "installed", "said"),
    [
        ("control:cartpole/swingup", [], r"needs dm_control, .* `make setup-control` does it\.$"),
        ("control-pixels:cartpole/swingup", [], "needs dm_control"),
        (
            "rwrl:cartpole/swingup/easy",
            ["dm_control"],
            "needs realworldrl_suite, .* has the line",
        ),
    ],
)
def test_without_its_packages_a_sentence_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, name: str, installed: list[str], said: str
) -> None:
    monkeypatch.setattr(control, "_is_installed", lambda package: package in installed)
    monkeypatch.setattr(control, "addition", "make setup-{}".format)
    with pytest.raises(ValueError, match=said):
        suites.check(name)


def test_pixels_on_a_headless_machine_need_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_is_installed", lambda package: True)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(ValueError, match=r"MUJOCO_GL is not set: .*libegl-mesa0.*libosmesa6"):
        suites.check("control-pixels:cartpole/swingup")


def test_a_task_of_features_is_watched_by_a_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    screens.check("atari:pong")
    with pytest.raises(ValueError, match=r"'control:walker/walk'.* MUJOCO_GL is not set"):
        screens.check("control:walker/walk")


def test_a_renderer_that_does_not_draw_is_quoted_and_tried_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def fail(command: list[str], **_: object) -> subprocess.CompletedProcess:
        tried.append(command)
        return subprocess.CompletedProcess(command, 1, "", "Traceback\nImportError: no libEGL\n")

    renderer._failure.cache_clear()
    monkeypatch.setattr(control, "_is_installed", lambda package: True)
    monkeypatch.setattr(subprocess, "run", fail)
    monkeypatch.setenv("MUJOCO_GL", "egl")
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"MUJOCO_GL=egl \(ImportError: no libEGL\): .*libegl1"
        ):
            suites.check("control-pixels:cartpole/swingup")
    assert len(tried) == 1
    renderer._failure.cache_clear()
