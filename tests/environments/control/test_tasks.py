"""The names of continuous tasks, and the sentences about what is missing; needs no package."""

import re
import subprocess

import pytest

from environments import suites
from environments.control import environment as control
from environments.control import renderer
from environments.control import tasks as control_tasks

BAD_NAMES = {
    "control": "expected control:<domain>/<task>, one of acrobot/swingup, acrobot/swingup_spar",
    "control:": "expected control:<domain>/<task>, one of acrobot/swingup, ",
    "control-pixels": "expected control-pixels:<domain>/<task>, one of acrobot/swingup, ",
    "rwrl": "expected rwrl:<domain>/<task>/<level>, one of cartpole/swingup/none, ",
    "control:cartpole/swing": "did you mean control:cartpole/swingup?",
    "control:cartpole_swingup": "did you mean control:cartpole/swingup?",
    "control:walker": "did you mean control:walker/run, control:walker/stand or control:walker/wa",
    "control:walker/fly": "did you mean control:walker/run, control:walker/stand or control:wal",
    "control:wlaker/run": "did you mean control:walker/run?",
    "control:lqr/lqr_2_1": "expected control:<domain>/<task>, one of",
    "control-pixels:cheeta/run": "did you mean control-pixels:cheetah/run?",
    "contrl:cartpole/swingup": "did you mean control:cartpole/swingup?",
    "rwrl:walker/walk": "did you mean rwrl:walker/walk/none, rwrl:walker/walk/easy, rwrl:walker/wa",
    "rwrl:walker/walk/medum": "did you mean rwrl:walker/walk/medium?",
    "rwrl:walker/run/easy": "did you mean rwrl:walker/walk/none",
}


@pytest.mark.parametrize(("name", "message"), BAD_NAMES.items())
def test_a_bad_name_is_refused_with_the_nearest_or_all(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        suites.check(name)
    assert repr(name) in str(refusal.value)
    assert "\n" not in str(refusal.value)


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
