"""The shell around an update: it counts, serves, writes back, saves, and ends."""

import itertools
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from acme.utils import counting

from agents.learner import Learner
from replay.structures import Batch
from tensor_ops import xla
from tests.agents.adding import AddReward, Network, Priorities, batch_of, for_ever, make_learner
from tests.patience import PATIENCE


def test_a_step_learns_counts_and_writes_priorities_back() -> None:
    priorities, counter = Priorities(), counting.Counter()
    metrics: list[float] = []
    learner, update = make_learner(
        [batch_of(1.0), batch_of(2.0)],
        priorities=priorities,
        counter=counter,
        on_metrics=lambda m: metrics.append(float(m["weight"])),
    )
    learner.step()
    learner.step()
    assert learner.learner_steps == 2
    np.testing.assert_array_equal(update.network.weight, [9.0, 9.0])
    shards, keys = [1, 0], [7, 2**63 + 1]
    assert priorities.updates == [(shards, keys, [1, 2]), (shards, keys, [2, 4])]
    # Of each batch's three rows one is burn-in, and one of the second item's is padding.
    assert counter.get_counts() == {"steps": 2, "trained_steps": 6}
    assert metrics == [3.0, 9.0]


@pytest.mark.parametrize("ends", [False, True])
def test_where_there_is_a_gpu_priorities_are_written_after_the_next_update_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    monkeypatch.setattr(xla, "has_gpu", lambda: True)
    priorities = Priorities()
    batches = itertools.chain([batch_of(1.0), batch_of(2.0), batch_of(4.0)], _never())
    learner, update = make_learner(batches, priorities=priorities)
    for made in range(3):
        learner.step()
        assert learner.learner_steps == made + 1
        assert [written[2] for written in priorities.updates] == [[1, 2], [2, 4], [4, 8]][:made]
        assert learner.largest_priority == [0, 2, 4][made]
    if ends:
        learner.end()
    else:
        assert not learner.try_step(timeout=0.01)
    shards, keys = [1, 0], [7, 2**63 + 1]
    assert priorities.updates == [(shards, keys, [p, 2 * p]) for p in (1, 2, 4)]
    assert learner.largest_priority == 8.0
    np.testing.assert_array_equal(update.network.weight, [21.0, 21.0])


def _never() -> Iterator[Batch]:
    threading.Event().wait()
    yield batch_of(0.0)


@pytest.mark.parametrize("how", ["restore", "read_checkpoint"])
def test_priorities_of_updates_that_are_undone_are_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, how: str
) -> None:
    monkeypatch.setattr(xla, "has_gpu", lambda: True)
    priorities = Priorities()
    learner, _ = make_learner(for_ever(), priorities=priorities)
    state, prefix = learner.save(), learner.write_checkpoint(str(tmp_path / "0"))
    learner.step()
    getattr(learner, how)({"restore": state, "read_checkpoint": prefix}[how])
    learner.end()
    assert not priorities.updates


def test_waiting_for_a_batch_can_be_given_up() -> None:
    arrives = threading.Event()

    def late() -> Iterator[Batch]:
        arrives.wait()
        yield batch_of(1.0)

    learner, _ = make_learner(late())
    assert not learner.try_step(timeout=0.01)
    assert learner.learner_steps == 0
    arrives.set()
    assert learner.try_step(timeout=PATIENCE)
    assert learner.learner_steps == 1


@pytest.mark.parametrize(
    ("call", "weight"),
    [
        (lambda learner: learner.skip(timeout=PATIENCE), 15.0),  # 3 and 12: 6 was skipped
        (lambda learner: learner.warm_up(batch_of(5.0)), 9.0),
    ],
    ids=["skip", "warm_up"],
)
def test_a_skipped_batch_or_a_warm_up_teaches_nothing_and_is_not_counted(
    call: Callable[[Learner], Any], weight: float
) -> None:
    priorities, counter = Priorities(), counting.Counter()
    metrics: list[Any] = []
    learner, update = make_learner(
        [batch_of(1.0), batch_of(2.0), batch_of(4.0)],
        priorities=priorities,
        counter=counter,
        on_metrics=metrics.append,
    )
    assert learner.try_step(timeout=PATIENCE)
    before = learner.save(), counter.get_counts()
    call(learner)
    np.testing.assert_equal((learner.save(), counter.get_counts()), before)
    assert len(metrics) == len(priorities.updates) == 1
    assert learner.largest_priority == 2.0
    learner.step()
    np.testing.assert_array_equal(update.network.weight, [weight, weight])


def _breaks() -> Iterator[Batch]:
    yield batch_of(1.0)
    raise OSError("the replay server is gone")


@pytest.mark.parametrize(
    ("batches", "cause"), [(_breaks(), OSError), (iter([batch_of(1.0)]), EOFError)]
)
def test_a_stream_that_breaks_off_is_an_error(
    batches: Iterator[Batch], cause: type[Exception]
) -> None:
    learner, _ = make_learner(batches)
    learner.step()
    for _ in range(2):  # whoever asks again hears it again
        with pytest.raises(RuntimeError, match="stream of batches broke off") as error:
            learner.try_step(timeout=PATIENCE)
        assert isinstance(error.value.__cause__, cause)


def test_variables_are_never_of_two_steps() -> None:
    learner, _ = make_learner(for_ever())
    seen: list[tuple[float, int]] = []
    done = threading.Event()

    def fetch() -> None:
        while not done.is_set():
            ((weight, at),) = learner.get_variables(["policy"])
            seen.append((float(weight[0]), int(at)))

    thread = threading.Thread(target=fetch)
    thread.start()
    steps = 0
    while steps < 100 or not seen:
        learner.step()
        steps += 1
    done.set()
    thread.join()
    assert {weight - 3.0 * step for weight, step in seen} == {0.0}


def test_only_the_policy_is_served() -> None:
    learner, _ = make_learner(for_ever())
    with pytest.raises(ValueError, match="serves the variables \"policy\", not 'critic'"):
        learner.get_variables(["critic"])
    assert len(learner.get_variables(["policy", "policy"])) == 2


def test_save_and_restore_undo_steps() -> None:
    learner, update = make_learner(for_ever())
    learner.step()
    state = learner.save()
    learner.step()
    learner.get_variables(["policy"])
    learner.restore(state)
    assert (learner.learner_steps, float(update.moment)) == (1, 1.0)
    ((weight, at),) = learner.get_variables(["policy"])
    assert (weight.tolist(), int(at)) == ([3.0, 3.0], 1)


def test_a_checkpoint_holds_all_that_learning_depends_on(tmp_path: pathlib.Path) -> None:
    prefix = str(tmp_path / "5")
    learner, _ = make_learner(for_ever())
    learner.step()
    learner.step()
    assert learner.write_checkpoint(prefix) == prefix

    again, update = make_learner(for_ever())
    again.get_variables(["policy"])
    again.read_checkpoint(prefix)
    assert (again.learner_steps, float(update.moment)) == (2, 2.0)
    ((weight, at),) = again.get_variables(["policy"])
    assert (weight.tolist(), int(at)) == ([6.0, 6.0], 2)
    learner.step()
    again.step()
    np.testing.assert_array_equal(
        again.get_variables(["policy"])[0][0], learner.get_variables(["policy"])[0][0]
    )


class Wider(AddReward):
    """Another size."""

    def __init__(self) -> None:
        super().__init__()
        self.network.weight = tf.Variable([0.0, 0.0, 0.0], name="weight")


class Other(AddReward):
    """Another agent, with a variable more."""

    def __init__(self) -> None:
        super().__init__()
        self.statistics = tf.Variable(0.0)


class Fewer(tf.Module):
    """Another agent, with a variable less."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Network()


@pytest.mark.parametrize("other", [Wider, Other, Fewer])
def test_another_agents_checkpoint_is_refused(
    tmp_path: pathlib.Path, other: type[tf.Module]
) -> None:
    learner, _ = make_learner(for_ever())
    learner.write_checkpoint(str(tmp_path / "0"))
    with pytest.raises((ValueError, AssertionError)):
        make_learner(for_ever(), other())[0].read_checkpoint(str(tmp_path / "0"))


class Slow(AddReward):
    """Takes as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __call__(self, batch: Batch) -> tuple[tf.Tensor | None, Mapping[str, tf.Tensor]]:
        result = super().__call__(batch)
        self.begun.set()
        assert self.may_end.wait(timeout=PATIENCE)
        return result


@pytest.mark.parametrize("warms_up", [True, False])
def test_variables_are_served_while_an_update_is_made(warms_up: bool) -> None:
    learner, update = make_learner(for_ever(), Slow())
    if not warms_up:
        learner.get_variables(["policy"])  # a warm-up sees to it itself
    call = (lambda: learner.warm_up(batch_of(1.0))) if warms_up else learner.step
    thread = threading.Thread(target=call)
    thread.start()
    assert update.begun.wait(timeout=PATIENCE)
    assert update.network.weight.numpy().tolist() == [3.0, 3.0]
    ((weight, at),) = learner.get_variables(["policy"])
    assert (weight.tolist(), int(at)) == ([0.0, 0.0], 0)
    update.may_end.set()
    thread.join()
    ((weight, at),) = learner.get_variables(["policy"])
    assert (weight.tolist(), int(at)) == (([0.0, 0.0], 0) if warms_up else ([3.0, 3.0], 1))


ROOT = Path(__file__).resolve().parents[2]

# What is registered first is called last. Nothing here is closed.
SAYS_WHAT_IS_LEFT = """
import atexit, threading, time
from agents import batches
batches._END_SECONDS = 300.0  # on a busy machine a batch may be long on its way
atexit.register(lambda: print("left:", *threading.enumerate()[1:]))
"""
A_BATCH_IS_ON_ITS_WAY = """
from agents.batches import Fetched

def slow():
    while True:
        yield "a batch"
        time.sleep(1.0)

assert Fetched(slow()).next(60.0).batch == "a batch"
"""
A_LEARNER_WAITS_FOR_REPLAY = """
from environments import dm
from agents.impala.agent import IMPALA, Config
import acme

environment = dm.make("catch")
config = Config(torso="mlp", hidden_sizes=(8,), lstm_size=4, frame_stack=1, length=4, batch_size=2)
agent = IMPALA(acme.make_environment_spec(environment), config)
acme.EnvironmentLoop(environment, agent).run(num_episodes=2)
assert agent.learner.learner_steps
"""


@pytest.mark.parametrize("script", [A_BATCH_IS_ON_ITS_WAY, A_LEARNER_WAITS_FOR_REPLAY])
def test_a_script_ends_with_its_threads(script: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IS_LEFT + script],
        cwd=ROOT,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (run.returncode, run.stdout.strip(), run.stderr) == (0, "left:", "")
