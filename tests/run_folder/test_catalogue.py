"""Agents by name and by import path, and what the local preset makes of an environment."""

import collections
import dataclasses
import importlib
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any, Literal, Optional
from unittest import mock

import ale_py  # noqa: F401 (registers games, which would be undone with those of a test)
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from agents import fields
from agents.entry import Entry, Kind
from agents.environment_loop import VectorEnvironmentLoop
from agents.impala import config as impala
from agents.in_process import InProcess
from agents.requirements import FRACTION
from agents.rsac import config as rsac
from agents.stac import config as stac
from environments import suites
from environments.dm import make_environment_spec
from run_folder import building, catalogue, settings, texts
from tests import extending

GIVEN = dict(env="catch", run_dir="/run", preset="local")
LONG = "A" * 65
MODULE = """
import dataclasses
from agents.contract import Agent
from agents.entry import Entry

@dataclasses.dataclass(frozen=True)
class Config:
    size: int = 1
    torso: str = "mlp"

NOTHING = 3
ENTRY = Entry(Config(), lambda config, name: "an agent")
Größe = ENTRY
{LONG} = ENTRY
RENAMED = Entry(Config(), lambda config, name: Agent("other", *[None] * 9))
""".replace("{LONG}", LONG)


@pytest.fixture
def package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "entries_of_a_test.py").write_text(MODULE)
    (tmp_path / "raises_in_a_test.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(extending.write(tmp_path))


def test_an_agent_of_ones_own_is_called_by_its_name(package: None) -> None:
    agents = f"impala,{extending.AGENT}"
    assert catalogue.names(agents) == {"impala": "impala", "REINFORCE": extending.AGENT}
    overrides = {"REINFORCE": {"discount": "0.25", "torso": extending.TORSO}}
    run = settings.resolve(GIVEN | dict(agent=agents), overrides)
    assert run.agents == ("impala", "REINFORCE")
    assert run.acting == ("impala", "REINFORCE")
    assert run.configs["REINFORCE"].discount == 0.25
    agent = building.make_agent(run, "REINFORCE")
    assert agent.tables[0].name == "REINFORCE"
    update = agent.make_update(building.environment_spec(run))
    assert 32 in [variable.shape[-1] for variable in update.network.trainable_variables]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("r2d3", "'r2d3' is unknown; there are r2d2, .* Did you mean 'r2d2'?"),
        ("entries_of_a_test:", "'entries_of_a_test:' is unknown"),
        ("no_such_module:A", "such as my_package.agents:REINFORCE, got 'no_such_module:A'"),
        ("no_such_module:A", "there is no module 'no_such_module' on PYTHONPATH"),
        ("raises_in_a_test:A", "importing 'raises_in_a_test' raises RuntimeError: no licence"),
        ("entries_of_a_test:ENTRI", "has no 'ENTRI', did you mean 'ENTRY'?"),
        ("entries_of_a_test:NOTHING", "must name an agents.entry.Entry, .* it is of type int."),
        ("entries_of_a_test:Größe", "files and flags by 'Größe', which must be of at most 64"),
        ("r2d2,other_module:r2d2", "names an agent twice"),
    ],
)
def test_what_is_no_agent_is_refused(package: None, agent: str, said: str) -> None:
    with pytest.raises(settings.SettingsError) as error:
        settings.resolve(GIVEN | dict(agent=agent), {})
    assert agent.split(",")[0] in str(error.value)
    assert re.search(said, str(error.value)), error.value


@pytest.mark.parametrize(
    ("name", "said"),
    [("ENTRY", "must give an agents.contract.Agent .* got 'an agent'"), ("RENAMED", "'other'")],
)
def test_an_entry_that_makes_no_agent_of_its_name_is_refused(
    package: None, name: str, said: str
) -> None:
    run = settings.resolve(GIVEN | dict(agent=f"entries_of_a_test:{name}"), {})
    with pytest.raises(settings.SettingsError, match=said):
        building.make_agent(run, name)


@pytest.mark.parametrize(
    ("error", "said"),
    [(ValueError("size is odd."), "settings: size is odd."), (KeyError("x"), "KeyError: 'x'")],
)
def test_an_entry_that_makes_no_agent_of_a_config_says_why(
    package: None, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    run = settings.resolve(GIVEN | dict(agent="entries_of_a_test:ENTRY"), {})

    def make(config: Any, name: str) -> Any:
        raise error

    entry = dataclasses.replace(run.entry("ENTRY"), make=make)
    monkeypatch.setattr(settings.Settings, "entry", lambda *_: entry)
    with pytest.raises(settings.SettingsError, match=f"--agent=ENTRY cannot be made .*{said}"):
        building.make_agent(run, "ENTRY")


@dataclasses.dataclass(frozen=True)
class _Unusual:
    """Fields of an agent of one's own."""

    maybe: tuple[int, ...] | None = None
    fractions: tuple[float, ...] = (0.5,)
    optional: Optional[int] = None  # noqa: UP045
    number: Literal[1, 2] = 1
    plain: tuple = (1,)
    checked: float = fields.field(0.9, FRACTION, "")


def test_fields_of_unusual_types_are_typed_recorded_and_checked() -> None:
    typed = dict(maybe="3,4", fractions="0.25,1", optional="5", number="2", checked="0.5")
    declared = fields.declared(_Unusual)
    made = _Unusual(
        **{
            name: texts.value_of(name, text, declared[name].annotation)
            for name, text in typed.items()
        }
    )
    assert made == _Unusual((3, 4), (0.25, 1.0), 5, 2, (1,), 0.5)
    fields.check(made)
    recorded = json.loads(json.dumps(dataclasses.asdict(dataclasses.replace(made, plain=()))))
    found = _Unusual(**texts.fields_of(_Unusual, recorded | {"fractions": [1, 0.5], "plain": []}))
    assert (found.maybe, found.fractions) == ((3, 4), (1.0, 0.5))
    assert texts.value_of("maybe", "none", declared["maybe"].annotation) is None
    for wrong in (dict(number=3), dict(number=True), dict(checked=7), dict(fractions=("a",))):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            fields.check(_Unusual(**wrong))


def test_a_config_of_ones_own_is_checked_as_it_is_declared() -> None:
    agent = catalogue.NamedAgent("own", Entry(_Unusual(), make=mock.Mock()))
    with pytest.raises(ValueError, match="checked must be a number from 0 to 1, got 7"):
        settings._with(agent, "catch", _Unusual(), dict(checked=7))


def test_every_agent_of_the_project_is_listed_and_can_be_made_as_it_says() -> None:
    entries = [importlib.import_module(name).ENTRIES for name in set(catalogue._MODULES.values())]
    assert collections.ChainMap(*entries) == dict(catalogue.AGENTS)
    for name, entry in catalogue.AGENTS.items():
        assert isinstance(entry, Entry)
        agent = entry.make(catalogue.config(name, "atari:pong"), name)
        assert agent.name == name
        assert agent.is_recurrent == (agent.config.lstm_size > 0)
        for values in (*entry.local.values(), entry.shared):
            assert set(values) <= set(vars(agent.config))
        for field in (entry.num_tasks_field, entry.epsilon_field):
            assert field is None or hasattr(agent.config, field)


IMAGES = {"grey": (84, 84), "one_colour": (64, 48, 1), "colour": (210, 160, 3), "least": (20, 20)}
_OF_NUMBERED_ACTIONS = [name for name in catalogue.AGENTS if name != "rsac"]
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


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    with mock.patch.dict(gymnasium.registry):
        for name, shape in (IMAGES | SMALL).items():
            gymnasium.register(
                f"pictures/{name}-v0",
                entry_point=lambda **arguments: Picture(**arguments),
                max_episode_steps=4,
                kwargs={"shape": shape},
            )
        yield


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        *((f"gym:pictures/{name}-v0", "image") for name in IMAGES),
        ("gym:ALE/Pong-v5", "image"),
        ("gym:ALE/Pong-v5,gym:ALE/Qbert-v5", "image"),
        *((f"gym:pictures/{name}-v0", "small") for name in SMALL),
        *((env, "small") for env in ("catch", "memory:recall", "memory:cartpole")),
        *((f"gym:{name}-v1", "small") for name in ("CartPole", "FrozenLake")),
    ],
)
def test_vectors_and_what_is_too_small_for_convolutions_are_small(env: str, kind: Kind) -> None:
    assert catalogue.kind_of(env) == kind


@pytest.mark.parametrize("agent", _OF_NUMBERED_ACTIONS)
def test_an_image_is_given_the_values_of_atari_and_a_core_and_what_is_small_an_mlp(
    agent: str,
) -> None:
    found, on_atari, small = (
        catalogue.preset_config("local", catalogue.entry(agent), env)
        for env in ("gym:pictures/colour-v0", "atari:pong", "catch")
    )
    of_image: dict[str, Any] = dict(frame_stack=1, torso="shallow")
    if agent.startswith("r2d2"):
        of_image |= dict(replay_size=10_000)
    else:
        of_image |= dict(lstm_size=256)
        if agent in ("impala", "stac", "stacx"):  # so few unrolls want a lower rate, with a core
            of_image |= dict(learning_rate=2e-4)
    assert found == on_atari | of_image
    assert small["torso"] == "mlp"


OF_VECTORS = {"impala": impala, "stac": stac, "stacx": stac, "rsac": rsac}


@pytest.mark.parametrize("name", OF_VECTORS)
@pytest.mark.parametrize(
    ("env", "images"),
    [
        ("gym:Pendulum-v1", False),
        ("control:cartpole/swingup", False),
        ("rwrl:walker/walk/hard", False),
        ("control-pixels:walker/walk", True),
        ("tests.run_folder.test_catalogue:Steered", True),
    ],
)
def test_where_actions_are_vectors_values_are_those_of_control(
    name: str, env: str, images: bool
) -> None:
    """The names of control suites tell by themselves: nothing has to be installed to ask."""
    module: Any = OF_VECTORS[name]
    constant = ("STACX_" if name == "stacx" else "") + "CONTROL" + "_IMAGE" * images
    assert catalogue.config(name, env) == getattr(module, constant)
    entry = catalogue.entry(name)
    kind: Kind = "control_image" if images else "control"
    assert catalogue.kind_of(env) == kind
    assert catalogue.preset_config("local", entry, env) == entry.local[kind]
    assert catalogue.preset_config("paper", entry, env) == {}
    local = {name: dict(entry.local[kind])}
    config = settings.make_configs(env, catalogue.named(name), local, {})[name]
    assert name == "rsac" or config.annealing_frames == 30_000_000


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
    assert process.learner.learner_steps == 1
