"""Agents that act and learn in one thread: when the learner steps, and that it never waits."""

import pathlib
import socket
import tempfile
from typing import Any

import acme
import numpy as np
import pytest
import reverb
from acme import specs
from dm_env import specs as dm_specs

from agents.contract import Agent
from agents.impala import agent as impala
from agents.single_process import Pace, SingleProcessAgent, pace_of
from environments import dm
from r2d2 import agent as r2d2
from replay.tables import block_layout
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


def test_a_queue_paces_by_its_batches() -> None:
    agent = impala.make(_impala())
    assert pace_of(agent) == Pace(first=2 * 4 + 1, period=2 * 4)
    assert pace_of(impala.make(_impala(replay_fraction=0.5))) == Pace(first=4 + 1, period=4)


@pytest.mark.parametrize(("length", "period"), [(8, 2), (7, 3), (6, 4), (5, 1), (40, 10)])
def test_a_queue_of_overlapping_unrolls_paces_by_what_is_new(length: int, period: int) -> None:
    agent = impala.make(_impala(length=length, period=period, batch_size=3, queue_size=6))
    pace, block = pace_of(agent), block_layout(agent.tables).length
    for rows in range(1, 4 * length):
        # A block leaves when the row after it is known; an unroll when all its rows have left.
        left = (rows - 1) // block * block
        unrolls = sum(start + length <= left for start in range(0, rows, period))
        assert pace.learner_steps(rows) == unrolls // 3, rows


def test_other_tables_pace_by_their_ratio() -> None:
    """An item brings 8 rows; the paper replays 0.8 trained rows for each."""
    assert pace_of(_r2d2(samples_per_insert=2.0)).period == 4 * 8 / 2
    assert pace_of(_r2d2()).period == 4 * 16 / 0.8
    assert pace_of(_r2d2()).first == 20 * 8


@pytest.mark.parametrize("replay_fraction", [0.0, 0.5])
@pytest.mark.parametrize(("lstm_size", "burn_in"), [(0, 0), (4, 3)])
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
    agent.close()


def test_a_queue_is_asked_for_one_item_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reverb loses some of several on a busy machine, and the learner would wait for ever."""
    asked, make = {}, reverb.TrajectoryDataset

    def record(**given: Any) -> reverb.TrajectoryDataset:
        asked[given["table"]] = given["max_in_flight_samples_per_worker"]
        return make(**given)

    monkeypatch.setattr(reverb, "TrajectoryDataset", record)
    config = _impala(batch_size=6, queue_size=12, replay_fraction=0.5)
    agent = impala.IMPALA(acme.make_environment_spec(dm.make("catch")), config)
    agent.close()
    queue, copy = (table.name for table in impala.make(config).tables)
    assert asked == {queue: 1, copy: 3}


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
    agent.close()


def _played(actions: specs.Array, observations: Any = None) -> specs.EnvironmentSpec:
    number = specs.Array((), np.float32)
    seen = specs.Array((4,), np.float32) if observations is None else observations
    return specs.EnvironmentSpec(seen, actions, number, number)


SMALL_R2D2 = r2d2.Config(torso="mlp", frame_stack=1)
BOUNDED = specs.BoundedArray((2,), np.float64, -1, 1)
CHOICE = specs.DiscreteArray(3)


@pytest.mark.parametrize(
    ("spec", "config", "sentence"),
    [
        (_played(BOUNDED), SMALL_R2D2, "needs discrete actions, but .* are 2 numbers from -1 to 1"),
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
        agent.close()
    learned.close()


def test_nobody_else_reaches_its_replay_and_no_folder_stays(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    agent = impala.IMPALA(acme.make_environment_spec(dm.make("catch")), _impala())
    with pytest.raises(TimeoutError):
        socket.create_connection(("localhost", agent._process._server.port), timeout=0.5)
    agent.close()
    assert list(tmp_path.iterdir()) == []
