"""Each agent with another core than the LSTM: updates, checkpoints, exports, and learning."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from agents.impala.agent import Config as ImpalaConfig
from agents.networks.named import CORES
from agents.popart.agent import Config as PopArtConfig
from agents.single_process import SingleProcessAgent
from agents.stac.agent import Config as StacConfig
from environments import suites
from environments.dm import make_environment_spec
from r2d2.agent import Config as R2D2Config
from tests import training
from tests.batches import environment_spec, with_actions_of
from tests.eager import eagerly
from tests.small_agents import make_agent, make_batch, make_update, small_config
from tests.updates import parameters_of, same

OTHERS = [core for core in CORES if core != "lstm"]
# An agent has one of these in each test: every core has its turn.
ONE_OF_EACH = pytest.mark.parametrize(
    ("name", "core"),
    [
        ("r2d2", "lru"),
        ("impala", "mingru"),
        ("popart", "sonnet:VanillaRNN"),
        ("stac", "gru"),
        ("rsac", "lru"),
    ],
)


@ONE_OF_EACH
@eagerly()
def test_an_update_moves_every_parameter(name: str, core: str) -> None:
    config = small_config(name, core=core, burn_in=2)
    update, batch = make_update(config), make_batch(config)
    before = parameters_of(update)
    for _ in range(3):
        _, metrics = update(batch)
    assert all(np.isfinite(x).all() for x in metrics.values())
    moved = [np.abs(x - y).max() for x, y in zip(parameters_of(update), before, strict=True)]
    assert min(moved) > 0


@ONE_OF_EACH
def test_it_learns_in_bfloat16(name: str, core: str) -> None:
    config = small_config(name, core=core, precision="bfloat16")
    update = make_update(config)
    before = parameters_of(update)
    _, metrics = update(make_batch(config))
    assert np.isfinite(metrics["loss"])
    assert not same(parameters_of(update), before)


@pytest.mark.parametrize("name", [name for name, _ in ONE_OF_EACH.args[1]])
def test_its_forget_gate_begins_with_the_bias_that_is_asked_for(name: str) -> None:
    config = small_config(name, forget_bias=3.5)
    spec = with_actions_of(config, environment_spec())
    network: Any = make_agent(config).make_network(spec)
    gates = np.split(network._core._bias.numpy(), 4)
    assert [set(gate) for gate in gates] == [{0.0}, {3.5}, {0.0}, {0.0}]


SMALL: dict[str, Any] = dict(torso="mlp", hidden_sizes=(32,), lstm_size=32, frame_stack=1)
R2D2 = R2D2Config(
    **SMALL,
    head_size=32,
    burn_in=2,
    length=4,
    period=2,
    batch_size=8,
    min_replay_size=8,
    replay_size=500,
)


def test_an_agent_is_saved_with_its_replay_and_goes_on_alike(tmp_path: Any) -> None:
    """Its states are of a structure that somebody else has made."""
    config = dataclasses.replace(R2D2, core="sonnet:LSTM", samples_per_insert=2.0)

    def made() -> SingleProcessAgent:
        return SingleProcessAgent(
            make_agent(config), make_environment_spec("catch"), num_environments=4, seed=0
        )

    agent, environments = made(), suites.make("catch", 4, seed=0)
    agent.learn(environments, 400)
    assert agent.learner.learner_steps > 0
    agent.save(tmp_path / "saved", replay=True)
    loaded = [made() for _ in range(2)]
    for each in loaded:
        each.load(tmp_path / "saved", replay=True)
        assert same(parameters_of(each.learner_update), parameters_of(agent.learner_update))
        each.learn(suites.make("catch", 4, seed=1), 40)
    assert same(*(parameters_of(each.learner_update) for each in loaded))
    assert not same(*(parameters_of(each.learner_update) for each in (agent, loaded[0])))


VTRACE: dict[str, Any] = SMALL | dict(
    length=10, frames_per_step=1, learning_rate=5e-3, rmsprop_epsilon=1e-3, annealing_frames=288_000
)
AGENTS: dict[str, Any] = {
    "r2d2": dataclasses.replace(R2D2, **training.R2D2),
    "impala": ImpalaConfig(**VTRACE),
    "popart": PopArtConfig(**VTRACE),
    "stac": StacConfig(**VTRACE, head_hidden_sizes=(32,), max_gradient_norm=40.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("core", OTHERS)
def test_it_solves_catch(name: str, core: str) -> None:
    reached = training.train(
        make_agent(dataclasses.replace(AGENTS[name], core=core)),
        "catch",
        num_environments=32,
        vector_steps=9_000,  # at most
        steps_per_update=2,
        until=0.95,
        seed=1,
    )
    assert reached >= 0.9
