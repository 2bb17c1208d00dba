"""An actor's node plays what its crew says: whose environments, whose epsilons, whose items.

When an environment is broken, it ends or goes on without that task, as an evaluator does.
"""

import errno
import inspect
import pathlib
import threading
import types
from collections.abc import Sequence
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import pytest
import reverb
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper

from agents.environment_loop import Episode, VectorEnvironmentLoop
from agents.finite import NotFiniteError
from environments import suites
from environments.copies import dead_simulators
from environments.copies.dead_simulators import CannotPlayError
from launch.graph import actor_node, evaluator_node, process, program
from launch.graph.coordinator import Coordinator
from replay.structures import Header
from run_folder import best, building, disk, settings
from run_folder.episodes import Ended
from run_folder.settings import Crew
from tests.agents.recording import Source
from tests.run_folder import saved_runs

TASKS = ("catch", "catch:large_rewards")
SMALL = {"lstm_size": "8", "length": "4", "queue_size": "10000"}
ENOUGH = 60  # episodes


class Played:
    """A coordinator's stand-in, which ends a run after some episodes or an evaluation."""

    def __init__(self, *, before: int = 0, goes_on: bool = True) -> None:
        self.coordinator: Any = mock.create_autospec(Coordinator, instance=True)
        self.coordinator.steps_before.return_value = before
        self.coordinator.leave_out.return_value = goes_on
        self.coordinator.report_steps.side_effect = self._report
        self.coordinator.should_stop.side_effect = lambda: self.coordinator.report_evaluation.called
        self.coordinator.get_counts.return_value = {"actor_steps": 0, "walltime": 0.0}
        self.reports: list[int] = []  # steps
        self.ended: list[Ended] = []
        self.lost = 0

    def told(self, what: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of a method."""
        return [call.args for call in getattr(self.coordinator, what).call_args_list]

    def _report(self, _: object, steps: int, episodes: Sequence[Ended], lost: int) -> bool:
        assert all(0 < made <= steps for *_, made in episodes)
        self.reports.append(steps)
        self.ended += episodes
        self.lost += lost
        return len(self.ended) >= ENOUGH


@pytest.fixture(autouse=True)
def _in_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_simulators, "on_new_kind", dead_simulators.on_new_kind)
    monkeypatch.setattr(dead_simulators, "_told", set())
    monkeypatch.setattr(process, "enter", lambda *_: None)
    monkeypatch.setattr(process, "stop_event", threading.Event)
    monkeypatch.setattr(process, "wait_for_stop", lambda seconds: False)
    monkeypatch.setattr(process, "REPORT_SECONDS", 0.05)


def _run(
    run_dir: str = "/run", tasks: Sequence[str] = TASKS, **changes: Any
) -> tuple[settings.Settings, Source]:
    """A small run, and a learner of it whose parameters stay as they are."""
    given = dict(changes, env=",".join(tasks), run_dir=run_dir)
    run = saved_runs.resolve("impala", SMALL, num_actors=10, actors_per_node=4, **given)
    network = building.make_agents(run)["impala"].make_network(building.environment_spec(run))
    return run, Source([variable.numpy() for variable in network.variables])


def _act(
    run: settings.Settings, crew: Crew, source: Source, played: Played
) -> tuple[reverb.Server, reverb.Client]:
    """Acts until the coordinator ends it; returns what was written to."""
    server = reverb.Server(program.make_tables(run, 0))
    client = reverb.Client(f"localhost:{server.port}")
    actor_node.ActorNode(run, crew, source, client, played.coordinator).run()
    return server, client


def test_actors_play_and_report_and_write_their_own_tasks() -> None:
    run, source = _run()
    crew = run.crews()[1]  # the last of one task and the first of the other
    assert (crew.actors, crew.tasks) == ((8, 1, 3, 5), (0, 1, 1, 1))
    played = Played()
    _server, client = _act(run, crew, source, played)
    task_of = dict(zip(crew.actors, crew.tasks, strict=True))
    assert {index for index, *_ in played.ended} == set(crew.actors)
    for index, task, episode_return, length, _ in played.ended:
        assert (task, abs(episode_return)) == (task_of[index], (1, 1_000)[task])
        assert length == 9
    assert sum(played.reports) >= 9 * len(played.ended)
    assert played.lost == 0

    written = set()
    for sample in client.sample(
        "impala",
        num_samples=client.server_info()["impala"].current_size,
        emit_timesteps=False,
        unpack_as_table_signature=True,
    ):
        header = Header(*np.ravel(sample.data.header))
        written.add((int(header.actor), int(header.task)))
    assert written == set(task_of.items())


def test_on_a_gpu_an_actor_has_a_part_of_its_memory_and_says_that_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits, titles = dict[str, float](), list[str]()

    def limit(gpu: str, parts: list[tf.config.LogicalDeviceConfiguration]) -> None:
        (part,) = parts
        limits[gpu] = part.memory_limit

    monkeypatch.setattr(process, "enter", lambda run_dir, title: titles.append(title))
    monkeypatch.setattr(tf.config, "set_logical_device_configuration", limit)
    run, source = _run(actor_device="gpu")
    client, coordinator = reverb.Client("localhost:1"), Played().coordinator
    with pytest.raises(RuntimeError, match="TensorFlow sees no GPU in an actor node"):
        actor_node.ActorNode(run, run.crews()[1], source, client, coordinator)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    actor_node.ActorNode(run, run.crews()[1], source, client, coordinator)
    assert titles == ["actor 8", "actor 8 (on a GPU)"]
    assert limits == {"GPU:0": 1_024}


def test_a_report_is_so_short_that_a_limit_is_not_passed_by_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundredth of it for all actors together, however fast they are, and a step."""
    monkeypatch.setattr(process, "REPORT_SECONDS", 10.0)
    run, source = _run(max_actor_steps=10_000)
    crew, played = run.crews()[1], Played()
    _act(run, crew, source, played)
    assert len(played.reports) >= 9 * ENOUGH / 43
    assert max(played.reports) < 10_000 / 100 * 4 / 10 + len(crew.actors)


def test_actors_that_begin_again_draw_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    run, source = _run()
    seeds, make_each = list[int](), suites.make_each

    def seeded(names: Sequence[str], *, seed: int, **kwargs: Any) -> VectorEnv:
        seeds.append(seed)
        return make_each(names, seed=seed, **kwargs)

    monkeypatch.setattr(suites, "make_each", seeded)
    last = []
    for before in (0, 0, 7_000):
        _act(run, run.crews()[0], source, Played(before=before))
        last.append(seeds[-1])  # those before are of specs
    assert last[0] == last[1] != last[2]


class Broken(VectorWrapper):
    """The environment of row 2 pays what is not a number, with its fifth step."""

    _step = 0

    def step(self, actions: np.ndarray) -> tuple[Any, ...]:
        observations, rewards, *rest = self.env.step(actions)
        self._step += 1
        if self._step == 5:
            rewards[2] = np.nan
        return observations, rewards, *rest


@pytest.fixture
def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    make_each = suites.make_each

    def broken(*args: Any, **kwargs: Any) -> VectorEnv:
        return Broken(make_each(*args, **kwargs))

    monkeypatch.setattr(suites, "make_each", broken)


@pytest.mark.usefixtures("_broken")
def test_an_actor_that_is_paid_what_is_not_a_number_ends_before_that_is_stored() -> None:
    run, source = _run()
    server = reverb.Server(program.make_tables(run, 0))
    client = reverb.Client(f"localhost:{server.port}")
    node = actor_node.ActorNode(run, run.crews()[1], source, client, Played().coordinator)
    sentence = "^catch:large_rewards, environment 3 of 4, gave the reward nan: rewards must be"
    with pytest.raises(NotFiniteError, match=sentence):
        node.run()
    assert client.server_info()["impala"].current_size <= 4  # of the first rows, if any


@pytest.mark.usefixtures("_broken")
def test_so_does_an_evaluator(tmp_path: pathlib.Path) -> None:
    run, source = _run(str(tmp_path), evaluation_minutes=1e-3, evaluation_episodes=2)
    node = evaluator_node.EvaluatorNode(run, "impala", source, Played().coordinator)
    sentence = "^catch:large_rewards, environment 3 of 4, gave the reward nan: rewards must be"
    with pytest.raises(NotFiniteError, match=sentence):
        node.run()


class Corridor(gymnasium.Env):
    """One step long."""

    observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.ones(2, np.float32), 1.0, True, False, {}


class Blocked(Corridor):
    """Cannot be played once it is known."""

    is_known = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.is_known:
            raise OSError("the level cannot be loaded")
        return super().reset(seed=seed, options=options)


class Picky(Corridor):
    """Raises in its seventh step, which is none of a trial's."""

    steps = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == 7:
            raise ValueError("this move is not legal")
        return np.ones(2, np.float32), 1.0, False, False, {}


CORRIDOR, BLOCKED, PICKY = (f"{__name__}:{name}" for name in ("Corridor", "Blocked", "Picky"))
WHY = (
    f"3 environments of {BLOCKED!r} in a row were lost before a step was made. The last one raised "
    f"OSError: the level cannot be loaded ({__file__}:"
    f"{inspect.getsourcelines(Blocked.reset)[1] + 2}, in reset)"
)


def _blocked(
    monkeypatch: pytest.MonkeyPatch, *tasks: str, **changes: Any
) -> tuple[settings.Settings, Source]:
    run, source = _run(tasks=tasks, **changes)
    monkeypatch.setattr(Blocked, "is_known", True)
    return run, source


def test_actors_leave_out_a_task_that_cannot_be_played(monkeypatch: pytest.MonkeyPatch) -> None:
    run, source = _blocked(monkeypatch, CORRIDOR, BLOCKED)
    crew, played = run.crews()[1], Played()
    assert (crew.actors, crew.tasks) == ((8, 1, 3, 5), (0, 1, 1, 1))
    _act(run, crew, source, played)
    assert played.told("leave_out") == [(BLOCKED, [1, 3, 5], WHY)]
    assert {(actor, task) for actor, task, *_ in played.ended} == {(8, 0)}


def test_actors_who_have_nothing_to_play_wait_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    run, source = _blocked(monkeypatch, CORRIDOR, BLOCKED)
    crew, played = run.crews()[2], Played()
    assert set(crew.tasks) == {1}
    asked = iter([False, True])
    stop = types.SimpleNamespace(is_set=lambda: next(asked))
    monkeypatch.setattr(process, "stop_event", lambda: stop)
    _act(run, crew, source, played)
    assert played.told("leave_out") == [(BLOCKED, sorted(crew.actors), WHY)]
    assert not sum(played.reports)
    assert next(asked, None) is None


def test_actors_end_where_there_is_nothing_else_to_play(monkeypatch: pytest.MonkeyPatch) -> None:
    run, source = _blocked(monkeypatch, BLOCKED)
    with pytest.raises(CannotPlayError, match="the level cannot be loaded"):
        _act(run, run.crews()[0], source, Played(goes_on=False))


def test_what_an_environment_raises_is_told_and_where_nothing_else_comes_given_up() -> None:
    run, source = _run(tasks=[PICKY])
    played = Played(goes_on=False)
    with pytest.raises(CannotPlayError, match="first 20 episodes were all lost"):
        _act(run, run.crews()[0], source, played)
    [(notice, _)] = played.told("notice")
    assert notice.startswith(
        f"One of the environments of {PICKY!r} raised ValueError: this move is not legal "
        f"({__file__}:"
    )
    assert not played.ended


def test_an_evaluator_leaves_it_out_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    changes = dict(run_dir=str(tmp_path), evaluation_minutes=1e-3, evaluation_episodes=2)
    run, source = _blocked(monkeypatch, CORRIDOR, BLOCKED, **changes)
    played = Played()
    evaluator_node.EvaluatorNode(run, "impala", source, played.coordinator).run()
    *_, (last, *_) = played.told("notice")
    assert last == f"{BLOCKED} is left out of evaluations: {WHY}"
    [(_, result)] = played.told("report_evaluation")
    assert result["episodes"] == 2
    assert result[f"return/{CORRIDOR}"] == 1
    assert np.isnan(result[f"return/{BLOCKED}"])
    assert best.read(run.folder.checkpoints, "impala") is None  # a mean over fewer tasks


def test_an_evaluator_ends_where_it_was_the_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    changes = dict(run_dir=str(tmp_path), evaluation_minutes=1e-3, evaluation_episodes=2)
    run, source = _blocked(monkeypatch, BLOCKED, **changes)
    with pytest.raises(CannotPlayError, match="the level cannot be loaded"):
        evaluator_node.EvaluatorNode(run, "impala", source, Played().coordinator).run()


class Improving(Source):
    """A learner whose parameters grow by one with each fetch, which is an update."""

    def get_variables(self, names: list[str]) -> list[list[Any]]:
        [[*parameters, step]] = super().get_variables(names)
        return [[*(value + step for value in parameters), step]]


class Evaluated:
    """Evaluations of a run, whose episodes are played, and then return what a test says."""

    def __init__(self, path: pathlib.Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
        often = dict(evaluation_minutes=1e-3, evaluation_episodes=2)
        self.run, source = _run(str(path), TASKS[:1], **often)
        self.source = Improving(source.parameters)
        self.notices: list[str] = []
        self._monkeypatch = monkeypatch
        self._run_episodes = VectorEnvironmentLoop.run_episodes

    def evaluate(self, *returns: float) -> list[int]:
        """A launch with so many evaluations; gives the updates that their rows are of."""
        left, played = list(returns), Played()
        told = played.coordinator.report_evaluation
        played.coordinator.should_stop.side_effect = lambda: told.call_count == len(returns)

        def run_episodes(loop: VectorEnvironmentLoop, should_stop: Any) -> list[Episode]:
            episodes, mean = self._run_episodes(loop, should_stop), left.pop(0)
            return [
                episode._replace(episode_return=mean + i - 0.5)
                for i, episode in enumerate(episodes)
            ]

        self._monkeypatch.setattr(VectorEnvironmentLoop, "run_episodes", run_episodes)
        evaluator_node.EvaluatorNode(self.run, "impala", self.source, played.coordinator).run()
        self.notices += [sentence for sentence, *_ in played.told("notice")]
        return [result["learner_steps"] for _, result in played.told("report_evaluation")]

    def check_kept(self, step: int, score: float) -> None:
        """Fails unless just the parameters of this update are kept."""
        found = best.read(self.run.folder.checkpoints, "impala")
        assert found is not None
        assert (found.learner_step, found.score) == (step, score)
        for value, at_zero in zip(found.parameters, self.source.parameters, strict=True):
            np.testing.assert_array_equal(value, at_zero + np.int64(step).astype(np.float32))


@pytest.fixture
def evaluated(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    return Evaluated(tmp_path, monkeypatch)


def test_just_the_parameters_of_the_best_evaluation_are_kept(evaluated: Evaluated) -> None:
    # A whole evaluation is of one update, although actors would fetch anew within its episodes.
    assert evaluated.evaluate(1.0, 3.0, 3.0, np.nan, 2.0) == [1, 2, 3, 4, 5]
    evaluated.check_kept(2, 3.0)
    assert evaluated.evaluate(2.5, 3.0) == [6, 7]  # of a run that was resumed
    evaluated.check_kept(2, 3.0)
    assert evaluated.evaluate(2.5, 4.0, 3.5) == [8, 9, 10]
    evaluated.check_kept(9, 4.0)
    assert not evaluated.notices


def test_they_go_into_a_bucket_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = "ram://bucket/run"  # TensorFlow's own, in this process
    Evaluated(bucket, monkeypatch).evaluate(1.0)
    assert tf.io.gfile.listdir(f"{bucket}/checkpoints") == ["best-impala.npz"]


def test_a_full_disk_and_a_damaged_file_end_no_evaluator(
    evaluated: Evaluated, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated.evaluate(1.0)

    def full(path: pathlib.Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(disk, "write", full)
        evaluated.evaluate(5.0)
    evaluated.check_kept(1, 1.0)
    path = evaluated.run.folder.checkpoints / best.file_name("impala")
    assert evaluated.notices == [
        "The best parameters so far, of update 2, could not be kept: "
        f"{path}: No space left on device."
    ]
    evaluated.evaluate(2.0)
    evaluated.check_kept(3, 2.0)
    path.write_bytes(path.read_bytes()[:-1_000])
    evaluated.evaluate(0.0)
    evaluated.check_kept(4, 0.0)
    assert evaluated.notices[1].startswith(f"The best parameters {path} are corrupt: ")
    assert evaluated.notices[1].endswith(" The next evaluation's take their place.")
