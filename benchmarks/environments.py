"""Writes the tables of docs/environments.md: python -m benchmarks.environments"""

import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf
from acme import specs
from gymnasium import spaces

from agents import actor, environment_loop, fields
from benchmarks import study
from environments import gym, suites
from environments.copies.spec import spec_of
from replay.frames import is_image
from run_folder import building, settings
from run_folder.settings import Settings, SettingsError

PAGE = study.DOCS / "environments.md"
AGENTS = ("r2d2", "impala")

_IMAGE = spaces.Box(0, 255, (24, 24, 3), np.uint8)
_VECTOR = spaces.Box(-1, 1, (4,), np.float32)
_CHOICE = spaces.Discrete(3)

OBSERVATIONS: dict[str, spaces.Space] = {
    "Box(4,), floats": _VECTOR,
    "Box(4,), bytes": spaces.Box(0, 255, (4,), np.uint8),
    "Box(24, 24, 3), bytes": _IMAGE,
    "Box(24, 24), bytes": spaces.Box(0, 255, (24, 24), np.uint8),
    "Box(3, 24, 24), bytes": spaces.Box(0, 255, (3, 24, 24), np.uint8),
    "Box(24, 24, 3), floats": spaces.Box(0, 1, (24, 24, 3), np.float32),
    "Box(5, 5), floats": spaces.Box(0, 1, (5, 5), np.float32),
    "Discrete": spaces.Discrete(5, start=2),
    "MultiDiscrete": spaces.MultiDiscrete([2, 3]),
    "MultiBinary": spaces.MultiBinary(3),
    "OneOf": spaces.OneOf([_CHOICE, _VECTOR]),
    "Text": spaces.Text(20),
    "Dict of image, text, vector": spaces.Dict(seen=_IMAGE, said=spaces.Text(20), felt=_VECTOR),
    "Tuple of images and a choice": spaces.Tuple([_IMAGE, _IMAGE, _CHOICE]),
    "Sequence": spaces.Sequence(_CHOICE),
    "Graph": spaces.Graph(_VECTOR, None),
}
ACTIONS: dict[str, spaces.Space] = {
    "Discrete": spaces.Discrete(3, start=-1),
    "MultiDiscrete": spaces.MultiDiscrete([3, 4]),
    "MultiDiscrete of six nines": spaces.MultiDiscrete([9] * 6),
    "MultiBinary": spaces.MultiBinary(4),
    "Box(2,), whole numbers": spaces.Box(-1, 1, (2,), np.int32),
    "Box(2,), floats": spaces.Box(-1, 1, (2,), np.float32),
    "Box(2, 2), floats": spaces.Box(-1, 1, (2, 2), np.float32),
    "Box(2,), no bounds": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "Tuple": spaces.Tuple([_CHOICE, _CHOICE]),
    "Text": spaces.Text(5),
}
_POPGYM = (
    *("Autoencode", "Battleship", "Concentration", "CountRecall", "HigherLower", "MineSweeper"),
    *("MultiarmedBandit", "NoisyPositionOnlyCartPole", "NoisyPositionOnlyPendulum"),
    *("PositionOnlyCartPole", "PositionOnlyPendulum", "RepeatFirst", "RepeatPrevious"),
    "VelocityOnlyCartpole",
)
SUITES = (
    "gym:CartPole-v1",
    "gym:ALE/Pong-v5",
    "gym:minigrid:MiniGrid-MemoryS7-v0",
    "gym:minigrid:BabyAI-GoToLocal-v0",
    "gym:minigrid:BabyAI-BossLevel-v0",
    *(f"gym:popgym:popgym-{task}Easy-v0" for task in _POPGYM),
    "benchmarks.memory_tasks:memory_len_6",
    "benchmarks.memory_tasks:memory_size_6",
)

_FIRST = "\n| observations |"  # with which the tables begin


Row = list[str]  # name, observations, actions, and the words of each of `AGENTS`


class Probe(gymnasium.Env):
    """Shows samples of a space, whatever is done."""

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 0.0, False, False, {}


def tables() -> str:
    """The end of docs/environments.md."""
    found = {
        "observations": [space_row(name) for name in OBSERVATIONS],
        "actions": [space_row(name, acting=True) for name in ACTIONS],
        "`--env`": [suite_row(name) for name in SUITES],
    }
    header = ("shows", "takes", *AGENTS)
    return "\n\n".join(study.markdown([what, *header], rows) for what, rows in found.items())


def missing_package(name: str) -> str | None:
    """The package that one of `SUITES` needs and that is not here."""
    package = name.split(":")[1].partition("_")[0] if name.count(":") == 2 else None
    if name.startswith("benchmarks."):
        package = "bsuite"
    return package if package and importlib.util.find_spec(package) is None else None


def space_row(name: str, *, acting: bool = False) -> Row:
    """The line of one of `OBSERVATIONS`, or of `ACTIONS`."""
    return [name, *_tried(registered(name, acting))]


@functools.cache
def registered(name: str, acting: bool) -> str:
    """The name for `--env` of an environment that shows or takes one space."""
    seen, acted = (_VECTOR, ACTIONS[name]) if acting else (OBSERVATIONS[name], _CHOICE)
    env_id = f"docs/Probe{registered.cache_info().currsize}-v0"
    gymnasium.register(
        env_id,
        entry_point="benchmarks.environments:Probe",
        kwargs=dict(observation_space=seen, action_space=acted),
    )
    return f"gym:{env_id}"


def suite_row(name: str) -> Row:
    """The line of one of `SUITES`."""
    return [f"`{name}`", *_tried(name)]


def _tried(env: str) -> Row:
    """The observations and actions of an environment, and the words of each agent about it."""
    tf.config.run_functions_eagerly(True)  # to trace a graph for one step takes seconds
    try:
        said = [_said(env, agent).replace("|", " ") for agent in AGENTS]
    finally:
        tf.config.run_functions_eagerly(False)
    try:
        found = gym.describe(env)
    except ValueError:
        return ["", "", *said]
    spec = spec_of(found.observations, found.actions)
    return [", ".join(_shown(spec.observations)), _taken(spec.actions), *said]


def _said(env: str, agent: str) -> str:
    """`runs`, once an agent has made a step; or the sentence that the command line would print."""
    given = dict.fromkeys(fields.declared(Settings)) | dict(
        env=env, agent=agent, preset="local", run_dir="runs/none"
    )
    starting = importlib.import_module("launch.starting")  # whose flags are none of this command's
    try:
        run = settings.resolve(given, {})
        network = starting.make_updates(run)[agent].network
    except SettingsError as error:
        return str(error).replace(env, "...") if "docs/Probe" in env else str(error)
    made = building.make_agent(run, agent)
    with contextlib.closing(suites.make(env, 1, seed=0)) as environments:
        evaluator = actor.make_evaluator(made, network, num_environments=1, seed=0)
        loop = environment_loop.VectorEnvironmentLoop(environments, evaluator, [env])
        loop.step()
    return "runs"


def _shown(observations: Any) -> Iterator[str]:
    parts = observations.values() if isinstance(observations, dict) else [observations]
    for part in parts:
        size = " x ".join(map(str, part.shape))
        if is_image(len(part.shape)):
            yield f"image {size}, {part.dtype.name}"
        elif part.dtype.kind == "i":
            yield f"words {size}"
        else:
            yield f"vector {size}, {part.dtype.name}"


def _taken(actions: specs.BoundedArray) -> str:
    if isinstance(actions, specs.DiscreteArray):
        return f"1 of {actions.num_values}"
    if actions.dtype.kind == "i":
        return " and ".join(f"1 of {last + 1}" for last in actions.maximum)
    return "1 number" if actions.shape[0] == 1 else f"{actions.shape[0]} numbers"


def main() -> None:
    """Writes the tables."""
    study.positional(__doc__)
    missing = sorted({package for name in SUITES if (package := missing_package(name))})
    if missing:
        raise SystemExit(f"The table needs {', '.join(missing)}: docs/environments.md says how.")
    text, _, _ = PAGE.read_text().partition(_FIRST)
    PAGE.write_text(f"{text}\n{tables()}\n")


if __name__ == "__main__":
    main()
