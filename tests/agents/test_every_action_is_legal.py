"""No agent ever takes an illegal action: while it learns, in evaluation, exported, as a library."""

import dataclasses
import pathlib
from typing import Any

import acme
import dm_env
import numpy as np
import pytest
import tensorflow as tf

from agents.impala import agent as impala
from agents.popart import agent as popart
from agents.single_process import SingleProcessAgent
from agents.stac import agent as stac
from analysis.playing import evaluation, saved_model
from analysis.playing.policy import Policy
from environments import suites
from environments.dm import DmEnvironment, make_environment_spec
from r2d2 import agent as r2d2
from run_folder import building
from tests.masked import InInfo
from tests.run_folder import saved_runs
from tests.small_agents import IMPALA, R2D2, STAC, make_agent

CONFIGS: dict[str, Any] = {
    "r2d2": r2d2.Config(**R2D2 | dict(min_replay_size=4, epsilon_base=0.9, epsilon_alpha=1.0)),
    "impala": impala.Config(**IMPALA),
    "popart": popart.Config(**IMPALA),
    "stac": stac.Config(**STAC | dict(num_heads=2)),
}
N = 16


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("r2d2", "tests.masked:Shown"),
        pytest.param("impala", "tests.masked:InInfo", marks=pytest.mark.slow),
        pytest.param("popart", "tests.masked:Shown", marks=pytest.mark.slow),
        pytest.param("stac", "tests.masked:Shown", marks=pytest.mark.slow),
    ],
)
def test_every_action_is_legal(name: str, env: str) -> None:
    """The environments raise where one is not, and the loop counts those that it loses."""
    agent = SingleProcessAgent(
        make_agent(CONFIGS[name]), make_environment_spec(env), num_environments=N
    )
    environments = suites.make(env, N, seed=0)
    agent.learn(environments, 2_000)
    assert agent.learner.learner_steps > 10
    assert agent._loop is not None
    assert agent._loop[1].lost == 0
    assert all(np.isfinite(value) for value in agent.metrics().values())
    played = suites.make(env, N, seed=1)
    episodes = agent.evaluate(played, 200)
    assert len(episodes) == 200  # of which none was lost


def test_the_library_s_agent_takes_legal_actions_in_acme_s_loop() -> None:
    environment = suites.make("tests.masked:Shown", 1, seed=0)
    told: list[int] = []
    step = environment.step

    def watched(action: np.ndarray) -> Any:
        outcome = step(action)
        told.append(int(np.sum(outcome[4].get("lost", 0))))
        return outcome

    environment.step = watched  # type: ignore[method-assign,assignment]
    spec = make_environment_spec("tests.masked:Shown")
    agent = r2d2.R2D2(spec, CONFIGS["r2d2"])
    acme.EnvironmentLoop(DmEnvironment(environment, spec), agent).run(num_steps=200)
    assert len(told) > 200
    assert not any(told)


def test_an_agent_that_does_not_know_masks_is_refused() -> None:
    agent = dataclasses.replace(make_agent(CONFIGS["impala"]), masks_actions=False)
    with pytest.raises(ValueError, match="the agent does not say masks_actions=True"):
        SingleProcessAgent(agent, make_environment_spec("tests.masked:Shown"))
    SingleProcessAgent(agent, make_environment_spec("catch"))


def test_a_row_without_a_legal_action_is_refused_by_the_actor() -> None:
    spec = make_environment_spec("tests.masked:Shown")
    agent = impala.IMPALA(spec, CONFIGS["impala"])
    observation = {"observation": np.zeros(7, np.float32), "action_mask": np.zeros(6, np.int8)}
    agent.observe_first(dm_env.restart(observation))
    with pytest.raises(ValueError, match="'action_mask' must show a legal action"):
        agent.select_action(observation)
    legal = {**observation, "action_mask": np.eye(6, dtype=np.int8)[4]}
    assert agent.select_action(legal) == 4
    agent.observe(np.int32(4), dm_env.termination(1.0, observation))  # where none is needed
    with pytest.raises(ValueError, match="must be zeros and ones"):
        agent.select_action({**observation, "action_mask": np.full(6, 2, np.int8)})


@pytest.mark.parametrize("name", ["r2d2", "impala"])
def test_an_exported_policy_and_one_by_hand_take_legal_actions(
    name: str, tmp_path: pathlib.Path
) -> None:
    player = evaluation.load(saved_runs.save(tmp_path / "run", name, "tests.masked:InInfo"))
    module = saved_model.module(player, building.environment_spec(player.run))
    rng, state = np.random.default_rng(0), module.initial_state(tf.constant(50))
    for t in range(40):
        mask = (rng.random((50, 6)) < 0.2).astype(np.uint8)
        mask[np.arange(50), rng.integers(6, size=50)] = 1
        seen = {"observation": rng.random((50, 7)).astype(np.float32), "action_mask": mask}
        action, state = module.step(seen, np.zeros(50, np.float32), np.full(50, t == 0), state)
        assert mask[np.arange(50), action.numpy()].all()

    policy, task = Policy(player), InInfo()
    observation, info = task.reset(seed=0)
    by_hand, steps = policy.initial_state(), 0
    while steps < 300:
        shown = {"observation": observation, "action_mask": np.array(info["action_mask"])}
        chosen, by_hand = policy.step(shown, by_hand)
        observation, _, terminated, truncated, info = task.step(chosen)
        steps += 1
        if terminated or truncated:
            observation, info = task.reset()
            by_hand = policy.initial_state()
    with pytest.raises(ValueError, match="must show a legal action"):
        policy.step({**shown, "action_mask": np.zeros(6, bool)}, by_hand)
    with pytest.raises(ValueError, match="there is no 'action_mask' of an observation"):
        policy.step({"observation": observation}, by_hand)
