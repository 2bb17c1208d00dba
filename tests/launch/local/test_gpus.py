"""Actors act on a GPU where it was asked for, or where it is worth it and has room."""

import os
import pathlib
from typing import Any

import pytest
import tensorflow as tf

from launch import train
from launch.local import fork_server, gpus
from run_folder.settings import SettingsError
from tests.launch import typed
from tests.run_folder import saved_runs

A, B = "GPU-aaaa", "GPU-bbbb"
ONE, TWO = f"0, {A}, 141000\n", f"0, {A}, 80000\n1, {B}, 79000\n"
MANY = dict(num_actors=4_096, actors_per_node=16)  # 256 nodes


@pytest.fixture(autouse=True)
def _build_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: {"is_cuda_build": True})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")


def _tells(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """Has this machine an nvidia-smi that tells of these GPUs; None, none at all."""
    path = tmp_path / "bin" / "nvidia-smi"
    path.parent.mkdir()
    if text is not None:
        path.write_text(f"#!/bin/sh\n{text if text == 'exit 9' else f'printf {text!r}'}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(path.parent))


@pytest.mark.parametrize(
    ("device", "told", "given", "expected"),
    [
        ("auto", None, {}, []),
        ("auto", "exit 9", {}, []),
        ("auto", ONE, {}, [A]),
        ("auto", TWO, {}, [A, B]),
        ("auto", ONE, dict(num_actors=16), [A]),
        ("auto", ONE, dict(num_actors=15), []),
        ("auto", ONE, dict(num_actors=256, actors_per_node=1), []),
        ("auto", ONE, dict(num_actors=256, actors_per_node=32), [A]),
        ("auto", "0, GPU-aaaa, [N/A]\n", {}, []),
        ("gpu", ONE, dict(num_actors=15), [A]),
        ("cpu", ONE, {}, []),
    ],
)
def test_who_acts_where(
    device: str,
    told: str | None,
    given: dict[str, Any],
    expected: list[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _tells(tmp_path, monkeypatch, told)
    run = saved_runs.resolve(actor_device=device, **given)
    assert gpus.of_actors(run) == (expected, "")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("1", ["1"]), ("1, 0", ["1", "0"]), ("GPU-b", ["GPU-b"]), ("-1", []), ("", []), ("7", [])],
)
def test_gpus_that_a_variable_hides_are_not_there(
    wanted: str, expected: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _tells(tmp_path, monkeypatch, TWO)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", wanted)
    found, why = gpus.visible()
    assert [gpu.name for gpu in found] == expected
    assert (f"CUDA_VISIBLE_DEVICES={wanted} hides" in why) == (not expected)


@pytest.mark.parametrize(
    ("told", "given", "said"),
    [
        (
            ONE,
            MANY,
            "actor nodes that take 256 times 1,536 MB do not fit into the 141,000 MB free of a "
            "GPU, beside 4,096 MB for a learner: 89 nodes would, and --actors_per_node=64 makes no "
            "more",
        ),
        (TWO, MANY, "79,000 MB free of each of 2 GPUs.*: 96 nodes would, .*=64 makes"),
        (ONE, dict(MANY, agent="r2d2,impala"), ": 86 nodes would"),
        (ONE, dict(MANY, num_actors=89 * 16), ""),
        (ONE, dict(MANY, num_actors=90 * 16), ": 89 nodes would, and --actors_per_node=32 makes"),
        (f"0, {A}, 5000\n", {}, "5,000 MB .*: end what else uses it"),
    ],
)
def test_nodes_share_what_a_gpu_has_free(
    told: str,
    given: dict[str, Any],
    said: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _tells(tmp_path, monkeypatch, told)
    found, why = gpus.of_actors(saved_runs.resolve(actor_device="auto", **given))
    if not said:
        assert (found, why) == ([A], "")
        return
    assert found == []
    assert why.startswith("Actors act on processors: ")
    with pytest.raises(SettingsError, match=f"^--actor_device=gpu: .*{said}.*; or --actor_device"):
        gpus.of_actors(saved_runs.resolve(actor_device="gpu", **given))
    with pytest.raises(SettingsError) as error:
        gpus.of_actors(saved_runs.resolve(actor_device="gpu", **given))
    assert why.removeprefix("Actors act on processors: ")[:-1] in str(error.value)


@pytest.mark.parametrize(
    ("argv", "told", "said"),
    [
        ([], None, "needs an NVIDIA GPU that TensorFlow sees, and no nvidia-smi answers"),
        ([], "exit 9", "and nvidia-smi tells of none: docs/installing.md says"),
        ([], ONE, "and the TensorFlow that is installed is one for processors:"),
        ([], TWO, f"TensorFlow does not see {A}, {B}, of which nvidia-smi tells."),
        (["--job=job"], ONE, "--actor_device=gpu is for a run on this machine;"),
        (["--actor_device=tpu"], ONE, "--actor_device must be one of auto, cpu, gpu, got 'tpu'."),
    ],
)
def test_a_gpu_that_cannot_be_is_refused_before_anything_is_made(
    argv: list[str],
    told: str | None,
    said: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _tells(tmp_path, monkeypatch, told)
    if "for processors" in said:
        monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: {"is_cuda_build": False})
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    new = ("--agent=r2d2", "--env=catch", "--run_dir=run", "--actor_device=gpu")
    assert said in typed.refused(train.main, *new, *argv)
    assert list(folder.iterdir()) == []


def test_gpus_that_tensorflow_sees_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")  # as a fork server's children have it
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda _: os.environ["CUDA_VISIBLE_DEVICES"].split(",")
    )
    gpus.check_seen([A, B])


def test_a_run_is_told_which_and_records_what_was_asked(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[Any] = []
    begin = typed.NoServer.__init__

    def init(self: typed.NoServer, **how: Any) -> None:
        given.append(how["gpus"])
        begin(self, **how)

    monkeypatch.setattr(typed.NoServer, "__init__", init)
    runs = typed.instead_of_starting(monkeypatch)
    _tells(tmp_path, monkeypatch, TWO)
    new = ("--agent=impala", "--env=catch", f"--run_dir={tmp_path}/run", "--actor_device=auto")
    resumed = (f"--run_dir={tmp_path}/run", "--resume")
    assert typed.run(train.main, *new) == 0
    assert typed.run(train.main, *resumed, "--actor_device=cpu") == 0
    assert typed.run(train.main, *resumed) == 0
    assert [run.actor_device for run in runs] == ["auto", "cpu", "cpu"]
    assert given == [[A, B], [], []]
    assert "Actors act on processors" not in capsys.readouterr().out
    monkeypatch.setattr(gpus, "LEARNER_MB", 80_000)
    assert typed.run(train.main, *resumed, "--actor_device=auto") == 0
    assert given[-1] == []
    assert "Actors act on processors: actor nodes that take 1 times" in capsys.readouterr().out


def test_nodes_take_gpus_in_turn_and_all_but_actors_and_learners_none() -> None:
    def seen(gpus: list[str], label: str) -> str | None:
        server: Any = fork_server._Server(None, gpus)  # type: ignore[arg-type]
        return dict(server._environment_of(label)).get("CUDA_VISIBLE_DEVICES")

    labels = ("actor/0", "actor/1", "actor/2", "evaluator/0", "replay/1", "learner/0")
    assert [seen([A, B], label) for label in labels] == [A, B, A, "-1", "-1", None]
    assert [seen([], label) for label in labels] == ["-1"] * 5 + [None]
    assert os.environ.get("CUDA_VISIBLE_DEVICES") is None
