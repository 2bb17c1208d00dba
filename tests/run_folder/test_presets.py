"""What the local preset makes of an environment that it does not know by name: it looks at it."""

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from agents.entry import Kind
from agents.environment_loop import VectorEnvironmentLoop
from agents.impala import config as impala
from agents.in_process import InProcess
from agents.stac import config as stac
from environments import suites
from environments.dm import make_environment_spec
from run_folder import catalogue, settings

IMAGES = {"grey": (84, 84), "one_colour": (64, 48, 1), "colour": (210, 160, 3), "least": (20, 20)}
SMALL = {"low": (19, 84), "narrow": (84, 19, 3), "grid": (7, 7, 3), "bytes": (400,)}


class Picture(gymnasium.Env):
    """Shows noise of one shape, for four steps."""

    action_space: spaces.Space = spaces.Discrete(3)

    def __init__(self, shape: tuple[int, ...]):
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), float(action), False, False, {}


def _make_picture(**arguments: Any) -> gymnasium.Env:
    return Picture(**arguments)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    shapes = IMAGES | SMALL
    for name, shape in shapes.items():
        gymnasium.register(
            f"pictures/{name}-v0",
            entry_point=_make_picture,
            max_episode_steps=4,
            kwargs={"shape": shape},
        )
    yield
    for name in shapes:
        del gymnasium.registry[f"pictures/{name}-v0"]


@pytest.mark.parametrize("agent", catalogue.AGENTS)
@pytest.mark.parametrize(
    "env",
    [
        *(f"gym:pictures/{name}-v0" for name in IMAGES),
        "gym:ALE/Pong-v5",
        "gym:ALE/Pong-v5,gym:ALE/Qbert-v5",
    ],
)
def test_an_image_is_given_the_values_of_atari_and_a_core(agent: str, env: str) -> None:
    found = catalogue.preset_config("local", catalogue.entry(agent), env)
    on_atari = catalogue.preset_config("local", catalogue.entry(agent), "atari:pong")
    of_image: dict[str, Any] = dict(frame_stack=1, torso="shallow")
    if agent.startswith("r2d2"):
        of_image |= dict(replay_size=10_000)
    else:
        of_image |= dict(lstm_size=256)
        if agent in ("impala", "stac", "stacx"):  # so few unrolls want a lower rate, with a core
            of_image |= dict(learning_rate=2e-4)
    assert found == on_atari | of_image


@pytest.mark.parametrize("agent", catalogue.AGENTS)
@pytest.mark.parametrize(
    "env",
    [
        *(f"gym:pictures/{name}-v0" for name in SMALL),
        "memory:recall",
        "memory:cartpole",
        "gym:CartPole-v1",
        "gym:FrozenLake-v1",
    ],
)
def test_vectors_and_what_is_too_small_for_convolutions_are_played_as_catch_is(
    agent: str, env: str
) -> None:
    found = catalogue.preset_config("local", catalogue.entry(agent), env)
    assert found == catalogue.preset_config("local", catalogue.entry(agent), "catch")
    assert found["torso"] == "mlp"


V_TRACE = {"impala": impala, "stac": stac, "stacx": stac}


@pytest.mark.parametrize("name", V_TRACE)
@pytest.mark.parametrize(
    ("env", "images"),
    [
        ("gym:Pendulum-v1", False),
        ("control:cartpole/swingup", False),
        ("rwrl:walker/walk/hard", False),
        ("control-pixels:walker/walk", True),
        ("tests.run_folder.test_presets:Steered", True),
    ],
)
def test_where_actions_are_vectors_values_are_those_of_control(
    name: str, env: str, images: bool
) -> None:
    """The names of control suites tell by themselves: nothing has to be installed to ask."""
    module: Any = V_TRACE[name]
    constant = ("STACX_" if name == "stacx" else "") + "CONTROL" + "_IMAGE" * images
    assert catalogue.config(name, env) == getattr(module, constant)
    entry = catalogue.entry(name)
    kind: Kind = "control_image" if images else "control"
    assert catalogue.kind_of(env) == kind
    assert catalogue.preset_config("local", entry, env) == entry.local[kind]
    assert catalogue.preset_config("paper", entry, env) == {}
    local = {name: dict(entry.local[kind])}
    config = settings.make_configs(env, catalogue.named(name), local, {})[name]
    assert config.annealing_frames == 30_000_000


class Steered(Picture):
    """Shows pictures, and is steered by two numbers."""

    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self) -> None:
        super().__init__((84, 84, 3))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return super().step(action.sum())


@pytest.mark.parametrize("name", ["r2d2", "popart"])
def test_agents_without_values_of_control_have_those_of_what_is_seen(name: str) -> None:
    entry = catalogue.entry(name)
    assert catalogue.preset_config("local", entry, "gym:Pendulum-v1") == entry.local["small"]
    assert catalogue.config(name, "gym:Pendulum-v1").torso == entry.config.torso


def test_an_environment_that_cannot_be_made_is_not_taken_for_control() -> None:
    assert catalogue.config("impala", "no_such.module:make").torso == "resnet"


def test_the_paper_preset_changes_nothing_for_an_image() -> None:
    assert catalogue.preset_config("paper", catalogue.entry("r2d2"), "gym:pictures/colour-v0") == {}


@pytest.mark.parametrize(
    ("agent", "name"), [("r2d2", "colour"), ("impala", "grey"), ("popart", "one_colour")]
)
def test_agents_play_images_and_learn_from_them(agent: str, name: str) -> None:
    env = f"gym:pictures/{name}-v0"
    small = {"burn_in": "0", "length": "4", "batch_size": "2"}
    small |= {"period": "4"} if agent == "r2d2" else {"queue_size": "4"}
    values = {agent: catalogue.preset_config("local", catalogue.entry(agent), env)}
    config = settings.make_configs(env, catalogue.named(agent), values, {agent: small})[agent]
    assert config.torso == "shallow"
    process = InProcess(
        catalogue.entry(agent).make(config, agent),
        make_environment_spec(env),
        tasks=np.zeros(2, int),
        seed=0,
    )
    loop = VectorEnvironmentLoop(suites.make(env, 2, seed=0), process.actor, [env, env])
    for _ in range(6):
        loop.step()
    process.learner.step()
    process.close()
    assert process.learner.learner_steps == 1
