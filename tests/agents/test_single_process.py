"""Agents that act and learn in one thread: when the learner steps, and that it never waits."""

import dataclasses
import pathlib
from typing import Any

import acme
import gymnasium
import numpy as np
import pytest
from acme import specs
from dm_env import specs as dm_specs

from agents.contract import Agent
from agents.impala import agent as impala
from agents.single_process import Pace, SingleProcessAgent, pace_of
from environments import dm, suites
from r2d2 import agent as r2d2
from tests.agents.recording import Episodes, run_episodes

SMALL: dict[str, Any] = dict(torso="mlp", hidden_sizes=(8,), lstm_size=4, frame_stack=1)


def _impala(**changes: Any) -> impala.Config:
    values = dict(SMALL, length=4, batch_size=2, queue_size=4, rmsprop_epsilon=1e-3)
    return impala.Config(**{**values, **changes})


def _r2d2(**changes: Any) -> Agent:
    return r2d2.make(r2d2.Config(length=16, period=8, batch_size=4, min_replay_size=20, **changes))


def test_steps_of_a_pace() -> None:
    pace = Pace(first=5, period=2)
    assert [pace.learner_steps(rows) for rows in range(10)] == [0, 0, 0, 0, 0, 1, 1, 2, 2, 3]
    assert Pace(first=5, period=0.5).learner_steps(6) == 3


def test_other_tables_pace_by_their_ratio() -> None:
    """An item brings 8 rows; the paper replays 0.8 trained rows for each."""
    assert pace_of(_r2d2(samples_per_insert=2.0)).period == 4 * 8 / 2
    assert pace_of(_r2d2()).period == 4 * 16 / 0.8
    assert pace_of(_r2d2()).first == 20 * 8


@pytest.mark.parametrize(("replay_fraction", "lstm_size", "burn_in"), [(0.0, 4, 3), (0.5, 0, 0)])
def test_impala_learns_from_every_unroll_and_never_waits(
    replay_fraction: float, lstm_size: int, burn_in: int
) -> None:
    """Catch's episodes of nine steps have a tenth row each: counting steps would fill the queue."""
    environment = dm.make("catch")
    config = _impala(replay_fraction=replay_fraction, lstm_size=lstm_size, burn_in=burn_in)
    agent = impala.IMPALA(acme.make_environment_spec(environment), config, seed=3)
    run_episodes(environment, agent, 30)
    unrolls = (30 * 10 - 1) // 4  # the row after an unroll completes it
    assert agent.learner.learner_steps == unrolls // (1 if replay_fraction else 2)


def test_pictures_words_and_numbers_are_seen_and_whole_numbers_from_any_on_are_done() -> None:
    seen = {
        "picture": specs.BoundedArray((3, 20, 20), np.uint8, 0, 255),  # its channels stand first
        "floor": specs.DiscreteArray(5, dtype=np.int64),
        "said": dm_specs.StringArray(()),
    }
    environment = Episodes(seen, specs.BoundedArray((), np.int64, -1, 1), length=5)
    config = _impala(torso="shallow", lstm_size=0)
    agent = impala.IMPALA(acme.make_environment_spec(environment), config, seed=3)
    run_episodes(environment, agent, 8)
    assert agent.learner.learner_steps == (8 * 6 - 1) // 4 // 2
    assert {int(action) for action in environment.actions} == {-1, 0, 1}


def _played(actions: specs.Array, observations: Any = None) -> specs.EnvironmentSpec:
    number = specs.Array((), np.float32)
    seen = specs.Array((4,), np.float32) if observations is None else observations
    return specs.EnvironmentSpec(seen, actions, number, number)


SMALL_R2D2 = r2d2.Config(torso="mlp", frame_stack=1)
CHOICE = specs.DiscreteArray(3)


@pytest.mark.parametrize(
    ("spec", "config", "sentence"),
    [
        (_played(specs.Array((2,), np.float32)), SMALL_R2D2, r"cannot be played: must have discr"),
        (_played(specs.BoundedArray((6,), np.int32, 0, 8)), SMALL_R2D2, r"9 x 9 .* = 531,441 comb"),
        (_played(CHOICE), r2d2.Config(torso="mlp"), r"frame_stack must be 1 .* got 4; .* \(4"),
        (_played(CHOICE), r2d2.Config(frame_stack=1), r"needs images \[B, H, W, C\] .* mlp"),
        (
            _played(CHOICE, dm_specs.StringArray((2,))),
            SMALL_R2D2,
            "A spec must be an Array of numbers",
        ),
    ],
)
def test_what_an_agent_cannot_play_is_said_in_a_sentence(
    spec: specs.EnvironmentSpec, config: r2d2.Config, sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        r2d2.R2D2(spec, config)


def _acts_by(agent: SingleProcessAgent) -> list[np.ndarray]:
    """The parameters that it acts with, and the learner step that they are from."""
    policy = agent._process.actor._variables
    assert policy is not None
    return [variable.numpy() for variable in policy.client._variables]


def test_what_is_saved_is_acted_by_at_once_when_it_is_loaded(tmp_path: pathlib.Path) -> None:
    environment = dm.make("catch")
    spec = acme.make_environment_spec(environment)
    learned = impala.IMPALA(spec, _impala(), seed=3)
    while not learned.learner.learner_steps:
        run_episodes(environment, learned, 1)
    prefix = str(tmp_path / "kept" / "agent")
    learned.save(prefix)
    (saved,) = learned.get_variables(["policy"])
    state = learned.learner.save()
    again: dict[str, Any] = {
        "load": lambda agent: agent.load(prefix),
        "read_checkpoint": lambda agent: agent.learner.read_checkpoint(prefix),
        "restore": lambda agent: agent.learner.restore(state),
    }
    for name, restore in again.items():
        agent = impala.IMPALA(spec, _impala(), seed=4)
        restore(agent)
        for has, expected in zip(_acts_by(agent), saved, strict=True):
            np.testing.assert_array_equal(has, expected, err_msg=name)


CONFIG = r2d2.Config(
    **dict(SMALL, lstm_size=16, head_size=16, burn_in=2, length=8, period=4),
    batch_size=8,
    min_replay_size=20,
    replay_size=200,
    samples_per_insert=2.0,
)
IMPALA_CONFIG = _impala(length=5, lstm_size=8, batch_size=4, queue_size=8, replay_fraction=0.5)
Made = tuple[SingleProcessAgent, gymnasium.vector.VectorEnv]


def _made(make: Any, config: Any, env: str, *, seed: int = 3) -> Made:
    environments = suites.make(env, 4, seed=seed)
    return make.of(environments, config, seed=seed), environments


def _parameters(agent: SingleProcessAgent) -> list[np.ndarray]:
    (found,) = agent.get_variables(["policy"])
    return found


@pytest.mark.parametrize(
    ("make", "config", "env"),
    [(r2d2.R2D2, CONFIG, "memory:recall"), (impala.IMPALA, IMPALA_CONFIG, "catch")],
)
def test_two_runs_of_one_seed_are_equal_bit_for_bit(make: Any, config: Any, env: str) -> None:
    ends = []
    for _ in range(2):
        agent, environments = _made(make, config, env)
        played = agent.learn(environments, 1000)
        played += agent.learn(environments, 1000)
        evaluated = agent.evaluate(suites.make(env, 3, seed=9), 7, seed=3)
        ends.append((played, evaluated, _parameters(agent)))
    first, second = ends
    assert first[:2] == second[:2]
    assert len(first[1]) == 7
    for a, b in zip(first[2], second[2], strict=True):
        np.testing.assert_array_equal(a, b)
    assert first[2][-1] > 40  # updates
    other, _ = _made(make, config, env, seed=4)
    assert any((a != b).any() for a, b in zip(first[2], _parameters(other), strict=True))


@pytest.mark.parametrize(("make", "config"), [(r2d2.R2D2, CONFIG), (impala.IMPALA, _impala())])
def test_n_environments_teach_as_much_as_one_does_for_each_row(make: Any, config: Any) -> None:
    """Whatever N is, so many rows are so many updates; a queue's first batch comes later."""
    updates = []
    for n in (1, 8):
        environments = suites.make("catch", n, seed=0)
        agent = make.of(environments, config, seed=0)
        agent.learn(environments, 600)
        updates.append(agent.learner.learner_steps)
    assert updates[0] > 25
    assert updates[1] == pytest.approx(updates[0], abs=8)


def test_it_learns_on_from_what_was_saved_with_its_replay(tmp_path: pathlib.Path) -> None:
    agent, environments = _made(r2d2.R2D2, CONFIG, "catch")
    agent.learn(environments, 600)
    agent.save(tmp_path / "kept" / "one", replay=True)
    steps = agent.learner.learner_steps
    with_replay, _ = _made(r2d2.R2D2, CONFIG, "catch", seed=5)
    without, others = _made(r2d2.R2D2, CONFIG, "catch", seed=5)
    with_replay.load(tmp_path / "kept" / "one", replay=True)
    without.load(tmp_path / "kept" / "one")
    for a, b in zip(_parameters(with_replay), _parameters(without), strict=True):
        np.testing.assert_array_equal(a, b)
    for learner, played in ((with_replay, environments), (without, others)):
        learner.learn(played, 40)
    assert with_replay.learner.learner_steps > steps
    assert without.learner.learner_steps == steps  # it has to fill its replay first
    with pytest.raises(ValueError, match="cannot be this agent's replay"):
        _made(r2d2.R2D2, dataclasses.replace(CONFIG, length=12), "catch")[0].load(
            tmp_path / "kept" / "one", replay=True
        )


def test_an_evaluator_does_not_learn_and_explores_as_the_config_says() -> None:
    environment = dm.make("catch")
    config = dataclasses.replace(CONFIG, evaluation_epsilon=0.0)
    agent = r2d2.R2D2(acme.make_environment_spec(environment), config)
    episodes = Episodes(agent._spec.observations, agent._spec.actions, length=30)
    chosen = []
    for actor in (agent.evaluator(seed=1), agent.evaluator(seed=2)):
        episodes.actions.clear()
        run_episodes(episodes, actor, 1)
        chosen.append([int(action) for action in episodes.actions])
    assert chosen[0] == chosen[1]
    explores = agent.evaluate(suites.make("catch", 2, seed=0), 3)
    assert len(explores) == 3
    assert agent._rows == agent._process.replay.num_items() == agent.learner.learner_steps == 0


def test_an_evaluators_episode_may_be_broken_off() -> None:
    environment = dm.make("catch")
    evaluator = r2d2.R2D2(acme.make_environment_spec(environment), CONFIG).evaluator()
    for _ in range(2):
        evaluator.observe_first(timestep := environment.reset())
        evaluator.select_action(timestep.observation)  # and its outcome is not observed
    run_episodes(environment, evaluator, 1)


class _Interrupted(gymnasium.vector.VectorWrapper):
    """Raises what Ctrl-C does, in its so many steps."""

    steps = 7

    def step(self, actions: Any) -> Any:
        self.steps -= 1
        if not self.steps:
            raise KeyboardInterrupt
        return self.env.step(actions)


def test_an_episode_may_be_broken_off() -> None:
    """By a script's `reset`, Ctrl-C or other environments: what the last items lack is lost."""
    environment = dm.make("catch")
    agent = r2d2.R2D2(acme.make_environment_spec(environment), CONFIG)
    for _ in range(2):
        agent.observe_first(timestep := environment.reset())
        for _ in range(5):
            action = agent.select_action(timestep.observation)
            timestep = environment.step(action)
            agent.observe(action, timestep)
            agent.update()
        agent.select_action(timestep.observation)  # and its outcome is not observed
    agent, environments = _made(r2d2.R2D2, CONFIG, "catch")
    environments = _Interrupted(environments)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(environments, 402)
    for played in (environments, suites.make("catch", 4, seed=9)):
        agent.learn(played, 402)
    with pytest.raises(ValueError, match="learns in these environments: evaluate it in others"):
        agent.evaluate(played, 3)
    assert agent.learner.learner_steps > 20


def test_learn_and_acmes_loop_may_take_turns() -> None:
    """Neither goes on in the midst of the other's episode: here no item is ever completed."""
    environments = suites.make("catch", 1, seed=0)
    agent = r2d2.R2D2.of(environments, CONFIG)
    environment = dm.make("catch")
    for _ in range(3):
        agent.learn(environments, 5)  # of an episode's 9, and an item's 8
        agent.observe_first(timestep := environment.reset())
        for _ in range(5):
            action = agent.select_action(timestep.observation)
            timestep = environment.step(action)
            agent.observe(action, timestep)
    assert agent._rows == 3 * (5 + 5)
    assert agent._process.replay.num_items() == 0


def test_steps_of_episodes_that_are_always_broken_off_teach_nothing() -> None:
    config = dataclasses.replace(CONFIG, burn_in=0, length=40, period=40, min_replay_size=1)
    agent, _ = _made(r2d2.R2D2, config, "catch")
    for _ in range(30):
        agent.learn(suites.make("catch", 4, seed=0), 24)  # of an episode's 9 each
    assert agent.learner.learner_steps == 0
    agent.learn(suites.make("catch", 4, seed=0), 2_000)
    assert agent.learner.learner_steps > 0


class _From(gymnasium.Env):
    """Whose actions are counted from -1."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Discrete(3, start=-1)


@pytest.mark.parametrize(
    ("environments", "sentence"),
    [
        (lambda: suites.make("catch", 3, seed=0), "plays 4 environments, got 3: .*environments=3"),
        (
            lambda: suites.make("memory:recall", 4, seed=0),
            r"spec, observations uint8 \[10, 5\] from 0 to 255 and actions int32 \[\] from 0 to 2, "
            r"got observations float32 \[5\] .* and actions .*; environments\.copies",
        ),
        (lambda: gymnasium.make("CartPole-v1"), "VectorEnv, such as environments.suites.* got <"),
        (
            lambda: gymnasium.vector.SyncVectorEnv(
                [lambda: gymnasium.make("CartPole-v1")] * 4, autoreset_mode="SameStep"
            ),
            "autoreset_mode must be AutoresetMode.NEXT_STEP, got AutoresetMode.SAME_STEP",
        ),
        (
            lambda: gymnasium.make_vec("FrozenLake-v1", 4, vectorization_mode="sync"),
            r"must have an array as observation, got Discrete\(16\); environments\.copies",
        ),
        (
            lambda: gymnasium.vector.SyncVectorEnv([_From] * 4),
            r"must count actions from 0, got Discrete\(3, start=-1\); environments\.copies",
        ),
    ],
)
def test_environments_that_it_cannot_play_are_refused(environments: Any, sentence: str) -> None:
    agent, _ = _made(r2d2.R2D2, CONFIG, "catch")
    with pytest.raises(ValueError, match=sentence):
        agent.learn(environments(), 10)


def test_fewer_episodes_than_none_are_refused_and_not_waited_for() -> None:
    agent, environments = _made(r2d2.R2D2, CONFIG, "catch")
    with pytest.raises(ValueError, match="episodes must be at least 0, got -1"):
        agent.evaluate(environments, -1)


def test_a_file_that_is_missing_changes_nothing_and_anothers_is_told(
    tmp_path: pathlib.Path,
) -> None:
    agent, environments = _made(r2d2.R2D2, CONFIG, "catch")
    agent.learn(environments, 200)
    agent.save(tmp_path / "one", replay=True)
    (tmp_path / "one.index").rename(tmp_path / "other.index")
    new, _ = _made(r2d2.R2D2, CONFIG, "catch")
    with pytest.raises(FileNotFoundError, match=r"one\.index"):
        new.load(tmp_path / "one", replay=True)
    assert new._process.replay.num_items() == new._rows == 0
    (tmp_path / "other.index").rename(tmp_path / "one.index")
    larger, _ = _made(r2d2.R2D2, dataclasses.replace(CONFIG, lstm_size=5), "catch")
    with pytest.raises(ValueError, match=r"config\. Part .* make the agent anew"):
        larger.load(tmp_path / "one")
    with pytest.raises(TypeError, match="NoneType"):
        agent.save(None)  # type: ignore[arg-type]


def test_environments_of_gymnasium_are_played_as_they_are() -> None:
    environments = gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="sync")
    agent = r2d2.R2D2.of(environments, CONFIG)
    assert len(agent.learn(environments, 800)) > 10
    assert agent.learner.learner_steps > 10


def test_a_learner_says_that_there_is_nothing_to_learn_from() -> None:
    agent, _ = _made(r2d2.R2D2, CONFIG, "catch")
    with pytest.raises(RuntimeError, match="replay holds too few items for a batch"):
        agent.learner.step()
    with pytest.raises(ValueError, match="num_environments must be at least 1, got 0"):
        r2d2.R2D2(agent._spec, CONFIG, num_environments=0)
