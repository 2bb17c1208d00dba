"""An exported policy does in a process without the project what the project's evaluation does."""

import dataclasses
import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tree
from acme import specs

from agents import actor
from analysis.playing import evaluation, saved_model
from analysis.playing.evaluation import Player
from benchmarks import environments
from replay.frames import FrameStack
from replay.structures import FIRST, MID
from run_folder import building
from run_folder.settings import SettingsError
from tensor_ops.elementwise import where_rows
from tests.run_folder import saved_runs

STEPS, GAMES, BEGINS = 12, 3, ((0, 0), (0, 1), (0, 2), (5, 1), (9, 0))  # (step, game)

# Plays what the test plays, where the project cannot be imported.
STRANGER = """
import pathlib, sys
sys.path = [p for p in sys.path if not (pathlib.Path(p or ".") / "agents/contract.py").exists()]
import importlib.util
assert all(importlib.util.find_spec(name) is None for name in ("agents", "r2d2", "launch"))
import json
import numpy as np
import tensorflow as tf
played = {}
for folder in json.load(sys.stdin):
    policy = tf.saved_model.load(folder)
    stream = np.load(folder + ".npz")
    names = [name for name in stream if name.startswith("observation")]
    actions, state = [], policy.initial_state(stream["first"].shape[1])
    for t in range(len(stream["first"])):
        seen = {name.partition("/")[2]: stream[name][t] for name in names}
        seen = seen.get("", seen)
        rest = [stream[name][t] for name in ("reward", "first", "lives") if name in stream]
        step = policy.step_with_lives if "lives" in stream else policy.step
        action, state = step(seen, *rest, state)
        actions.append(action.numpy().tolist())
    played[folder] = actions
json.dump(played, sys.stdout)
"""


def _stream(spec: specs.EnvironmentSpec, with_lives: bool) -> dict[str, np.ndarray]:
    """Observations of some games, `[T, N, ...]` each."""
    rng = np.random.default_rng(1)

    def draw(leaf: Any) -> np.ndarray:
        shape = (STEPS, GAMES, *leaf.shape)
        if leaf.dtype.kind == "f":
            return rng.normal(size=shape).astype(leaf.dtype)
        return rng.integers(0, 256, shape).astype(leaf.dtype)

    flat = tree.flatten_with_path(tree.map_structure(draw, spec.observations))
    made = {"/".join(("observation", *path)): leaf for path, leaf in flat}
    made["reward"] = rng.normal(size=(STEPS, GAMES)).astype(np.float32)
    made["first"] = np.zeros((STEPS, GAMES), bool)
    made["first"][tuple(zip(*BEGINS, strict=True))] = True
    if with_lives:
        lost = (np.arange(STEPS) // 4)[:, None] * np.array([1, 0, 1])
        made["lives"] = (3 - lost).astype(np.uint8)
    return made


def _own_actions(player: Player, stream: dict[str, np.ndarray]) -> list[Any]:
    """The actions of the project's own evaluation at the same sight."""
    evaluator = actor.make_evaluator(
        player.agent, player.network, num_environments=GAMES, seed=player.played.seed
    )
    spec = building.environment_spec(player.run)
    paths = [
        "/".join(("observation", *path)) for path, _ in tree.flatten_with_path(spec.observations)
    ]
    actions = []
    for t in range(STEPS):
        seen = tree.unflatten_as(spec.observations, [stream[path][t] for path in paths])
        lives = stream["lives"][t] if "lives" in stream else np.zeros(GAMES, np.uint8)
        step_type = np.where(stream["first"][t], FIRST, MID)
        if t:
            evaluator.observe(stream["reward"][t], np.ones(GAMES, np.float32))
        actions.append(np.array(evaluator.act(seen, step_type, lives)).tolist())
    return actions


def test_actions_are_those_of_the_evaluation_policy(tmp_path: pathlib.Path) -> None:
    runs: dict[str, tuple[str, str, dict[str, str], dict[str, Any]]] = {
        "frames": ("r2d2", "catch", {"frame_stack": "3"}, {"memory_steps": 2, "epsilon": 0.3}),
        "loops": ("impala", "catch", {"torso": "resnet", "frame_stack": "2"}, {}),
        "feedforward": ("r2d2_feedforward", "catch", {"frame_stack": "2"}, {"epsilon": 0.3}),
        "vectors": ("impala", "gym:Pendulum-v1", {}, {}),
        "tasks with lives": ("popart", "catch,catch:large_rewards", {"life_loss": "true"}, {}),
        "parts": ("r2d2", "Dict of image, text, vector", {"frame_stack": "2"}, {"epsilon": 0.3}),
        "numbered parts": ("impala", "Tuple of images and a choice", {}, {}),
        "words": ("impala", "Text", {}, {}),
        "several choices": ("r2d2", "MultiDiscrete", {}, {"epsilon": 0.3}),
        "several policies": ("impala", "MultiDiscrete of six nines", {}, {}),
    }
    own = {}
    for name, (agent, env, overrides, how) in runs.items():
        acting = env not in environments.OBSERVATIONS
        if not acting or env in environments.ACTIONS:
            env = environments.registered(env, acting)
        run = saved_runs.save(tmp_path / "runs" / name, agent, env, overrides=overrides)
        player = evaluation.load(run, agent, seed=4, **how)
        folder = tmp_path / name
        saved_model.write(player, folder)
        stream = _stream(building.environment_spec(run), overrides.get("life_loss") == "true")
        np.savez(f"{folder}.npz", **stream)
        own[str(folder)] = _own_actions(player, stream)
    done = subprocess.run(
        [sys.executable, "-c", STRANGER],
        cwd=tmp_path,
        input=json.dumps(list(own)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    for name, expected in own.items():
        np.testing.assert_allclose(theirs[name], expected, atol=1e-5, err_msg=name)
        assert len(np.unique(expected)) > 1, name  # a policy that knows one action shows nothing


def test_what_a_graph_cannot_hold_is_one_sentence(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "run")
    player = evaluation.load(run, "r2d2")
    own = dataclasses.replace(
        player.agent, environment_action=lambda action, actions: np.tanh(action)
    )
    said = r"^r2d2 cannot be exported: its policy and .* one of them raises \w+Error: \w.*$"
    with pytest.raises(SettingsError, match=said) as told:
        saved_model.write(dataclasses.replace(player, agent=own), tmp_path / "model")
    assert "\n" not in str(told.value)
    assert "in user code" not in str(told.value)  # with which AutoGraph begins
    assert not (tmp_path / "model").exists()


def test_a_model_that_a_full_disk_does_not_take_is_not_there(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = evaluation.load(saved_runs.save(tmp_path / "run"))

    def save_half(made: tf.Module, folder: str) -> None:
        pathlib.Path(folder, "variables").mkdir(parents=True)
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", save_half)
    with pytest.raises(SettingsError, match="model cannot be written: No space left on device"):
        saved_model.write(player, tmp_path / "models" / "model")
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (7,)])
def test_frames_are_stacked_as_an_actor_stacks_them(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    stack = FrameStack(3)
    frames = (tf.zeros([2, 2, *shape], tf.uint8),) if len(shape) > 1 else ()
    for t in range(6):
        first = np.array([t == 0, t in (0, 4)])
        observation = rng.integers(0, 256, (2, *shape)).astype(np.uint8)
        frames = where_rows(tf.constant(first), tree.map_structure(tf.zeros_like, frames), frames)
        stacked, frames = saved_model._push(tf.constant(observation), frames)
        np.testing.assert_array_equal(stacked, stack.push(observation, first))
