"""Counts, limits, progress and the end of a run."""

import errno
import json
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import reverb

from environments import scores
from launch.graph import coordinator, logs, process, rejoining
from launch.graph.coordinator import Coordinator
from run_folder import disk
from run_folder.episodes import Ended
from run_folder.layout import RunFolder
from tests.rows import rows
from tests.run_folder.saving import table_info

BEGUN = dict(actor_steps=0, episodes=0, walltime=0.0)


class Replay:
    """Stands for a Reverb client."""

    def __init__(self) -> None:
        self.busy = False

    def server_info(self, timeout: int) -> dict[str, Any]:
        if self.busy:
            raise reverb.errors.DeadlineExceededError("busy")
        return {"r2d2": table_info(5, 40), "queue": table_info(2, 1, max_times_sampled=1)}


class Clock:
    """Time that passes only where a node waits; the wall's clock is set back all the while."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path  # of the run
        self.now = 1_000.0
        self.waited = 0
        self.on_wait: Callable[[], None] = lambda: None
        self.at: dict[int, Callable[[], None]] = {}  # what happens at a second

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return -self.now

    def wait_for_stop(self, seconds: float = 0.0) -> bool:
        self.now += seconds
        self.waited += 1
        self.on_wait()
        self.at.get(self.waited, lambda: None)()
        return False


@pytest.fixture
def clock(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(tmp_path)
    monkeypatch.setattr(coordinator, "time", clock)
    monkeypatch.setattr(process, "wait_for_stop", clock.wait_for_stop)
    monkeypatch.setattr(process, "enter", lambda *_: None)
    return clock


def _make(
    run_dir: pathlib.Path,
    counts: dict[str, float] | None = None,
    learned: dict[str, Sequence[int]] | None = None,
    *,
    tasks: Sequence[str] = ("catch",),
    max_actor_steps: int | None = None,
    max_learner_steps: int | None = None,
    seconds: float | None = None,
    **until: Any,
) -> Coordinator:
    (run_dir / "nodes").mkdir(parents=True, exist_ok=True)
    return Coordinator(
        str(run_dir),
        tasks,
        4,
        counts or dict(BEGUN),
        learned or {"r2d2": (0, 0)},
        limits=dict(actor_steps=max_actor_steps, learner_steps=max_learner_steps, walltime=seconds),
        replays=[Replay(), Replay()],
        **until,
    )


def _progress(run_dir: pathlib.Path) -> dict[str, Any]:
    progress: dict[str, Any] = json.loads((run_dir / "nodes" / "progress.json").read_text())
    return progress


def _end(node: Coordinator, run_dir: pathlib.Path, *agents: str) -> dict[str, Any]:
    """Has learners save and the run end; returns the progress that is left."""
    for agent in agents or ("r2d2",):
        node.report_saved(agent)
    node.run()
    return _progress(run_dir)


def _rows(run_dir: pathlib.Path, log: str) -> list[dict[str, str]]:
    return rows(run_dir / "logs" / f"{log}.csv")


def _act(node: Coordinator, steps: int, *ended: Ended) -> None:
    node.report_steps([0], steps, ended, 0)


def test_counts_add_up_over_nodes_and_go_on_from_a_resumed_run(clock: Clock) -> None:
    begun = dict(actor_steps=100, episodes=3, walltime=60.0)
    node = _make(clock.path, begun, {"r2d2": (7, 50)})
    fresh = dict(learner_steps=7, trained_steps=50, environments_lost=0)
    assert node.get_counts() == begun | fresh
    node.report_steps([0], 10, [(0, 0, 1.0, 5, 10)], 0)
    node.report_steps([0], 20, [(1, 0, 0.0, 5, 20), (2, 0, 1.0, 6, 20)], 2)
    node.report_learner("r2d2", 9, 80, {})
    clock.now += 2.5
    counted = dict(actor_steps=130, learner_steps=9, episodes=6, trained_steps=80)
    assert node.get_counts() == counted | dict(walltime=62.5, environments_lost=2)


def test_actors_begin_a_new_run_at_0_and_later_where_the_run_is(clock: Clock) -> None:
    node = _make(clock.path)
    assert node.steps_before([0, 1]) == 0
    node.report_steps([0, 1], 40, [], 0)
    assert node.steps_before([0, 1]) == 40  # they were started again
    assert node.steps_before([2]) == 0  # it is a little late
    resumed = _make(clock.path / "resumed", dict(BEGUN, actor_steps=1_000))
    assert resumed.steps_before([0, 1]) == 1_000


def test_a_step_limit_stops_everyone(clock: Clock) -> None:
    node = _make(clock.path, max_actor_steps=1_000)
    assert not node.report_steps([0], 999, [], 0)
    assert not node.report_learner("r2d2", 1, 1, {})
    assert node.report_steps([0], 1, [], 0)
    assert node.report_learner("r2d2", 2, 2, {})
    assert node.should_stop()


def _ended_by_request(node: Coordinator) -> None:
    node.stop("enough")


def _ended_by_actors(node: Coordinator) -> None:
    assert node.report_steps([1], 500, [(1, 0, 0.0, 5, 500)], 0)


def _ended_by_learners(node: Coordinator) -> None:
    assert not node.report_learner("r2d2", 50, 1, {})
    assert node.report_learner("impala", 51, 1, {})


@pytest.mark.parametrize("end", [_ended_by_request, _ended_by_actors, _ended_by_learners])
def test_what_is_reported_after_the_end_was_decided_counts_no_more(
    end: Callable[[Coordinator], None], clock: Clock
) -> None:
    node = _make(
        clock.path,
        learned={"r2d2": (0, 0), "impala": (0, 0)},
        max_actor_steps=1_000,
        max_learner_steps=50,
    )
    node.report_steps([0], 600, [(0, 0, 1.0, 5, 600)], 0)
    end(node)
    saved = node.get_counts()  # a learner's last checkpoint
    assert node.report_steps([0], 40, [(0, 0, 1.0, 5, 40)], 1)
    assert node.get_counts() == saved
    assert _end(node, clock.path, "r2d2", "impala")["state"] == "finished"
    assert float(_rows(clock.path, "actor")[-1]["actor_steps"]) == saved["actor_steps"]
    assert len(_rows(clock.path, "episodes")) == saved["episodes"]


def test_a_run_ends_when_it_has_lasted_so_long_with_earlier_launches_whoever_acts(
    clock: Clock,
) -> None:
    node = _make(clock.path, BEGUN | dict(walltime=5.0), seconds=12.0)
    stopped = []
    clock.on_wait = lambda: stopped.append(node.should_stop())
    clock.at = {9: lambda: node.report_saved("r2d2")}
    node.run()
    assert stopped == [False] * 7 + [True] * 3  # 12 s after the seventh second; then it waits
    ended = _progress(clock.path)
    assert ended["reason"] == "--max_minutes=0.2 was reached"
    assert ended["limits"]["walltime"] == 12.0
    # What the last checkpoint is told has reached the limit too, or a resumed run would go on.
    assert ended["counts"]["walltime"] >= 12.0
    assert _make(clock.path / "resumed", BEGUN | dict(walltime=12.0), seconds=12.0).should_stop()


def test_a_run_ends_at_the_return_that_is_wanted(clock: Clock) -> None:
    node = _make(clock.path, max_actor_steps=100, until_return=0.5, until_evaluations=2)

    def evaluate(mean_return: float) -> bool:
        node.report_evaluation("r2d2", dict(episode_return=mean_return, learner_steps=7))
        return node.should_stop()

    assert [evaluate(value) for value in (0.5, 0.4, 0.5, 0.5)] == [False] * 4  # the last one twice
    node._write_progress()
    assert _progress(clock.path)["goal"]["in_a_row"] == 1
    assert evaluate(0.75)
    assert node.seconds_to_save() == math.inf
    node.report_steps([0], 100, [], 0)
    evaluate(0.0)  # the evaluator had not heard yet
    ended = _end(node, clock.path)
    assert ended["reason"].startswith("the evaluator's mean return was 0.75 at update 7, at least")
    assert ended["goal"]["is_reached"]


def test_a_limit_that_a_resumed_run_has_reached_ends_it_at_once(clock: Clock) -> None:
    assert _make(clock.path, BEGUN | dict(actor_steps=1_000), max_actor_steps=1_000).should_stop()
    assert not _make(clock.path, BEGUN | dict(actor_steps=999), max_actor_steps=1_000).should_stop()


def test_a_run_ends_when_every_learner_has_saved(clock: Clock) -> None:
    node = _make(clock.path, learned={"r2d2": (0, 0), "popart": (0, 0)})
    states: list[str] = []

    def look() -> None:
        if (clock.path / "nodes" / "progress.json").exists():
            states.append(_progress(clock.path)["state"])

    clock.on_wait = look
    clock.at = {3: lambda: node.report_saved("r2d2"), 5: lambda: node.report_saved("popart")}
    node.run()
    assert states == ["running", "running", "running", "running", "finished"]
    assert _progress(clock.path)["reason"] == "every learner has reached its limit"


def test_the_first_reason_stays(clock: Clock) -> None:
    node = _make(clock.path)
    RunFolder(clock.path).stop.touch()
    stopped = []

    def end() -> None:
        node.stop("something else")
        node.report_saved("r2d2")

    clock.on_wait, clock.at = lambda: stopped.append(node.should_stop()), {3: end}
    node.run()
    assert stopped == [False, True, True, True]
    assert _progress(clock.path)["reason"] == "it was asked to stop"
    assert _progress(clock.path)["state"] == "finished"


def test_the_time_to_save_is_short_once_somebody_waits(clock: Clock) -> None:
    node = _make(clock.path, max_actor_steps=100)
    node.report_steps([0], 100, [], 0)
    clock.now += 100
    assert node.seconds_to_save() == math.inf  # at its own limit a run has all that it needs
    node.stop("enough")
    assert node.seconds_to_save() == coordinator.SAVE_SECONDS
    clock.now += 2
    node.stop("again")
    assert node.seconds_to_save() == coordinator.SAVE_SECONDS - 2


def test_logs_hold_means_of_a_period_and_every_episode(clock: Clock) -> None:
    node = _make(clock.path)

    def report() -> None:
        node.report_steps([0], 600, [(0, 0, 1.0, 9, 150), (3, 0, -1.0, 11, 600)], 0)
        node.report_learner("r2d2", 4, 1_200, {"loss": 0.5, "parameter_lag": 3.0})

    clock.at = {2: report, 12: lambda: _act(node, 600), 25: lambda: node.report_saved("r2d2")}
    node.run()
    first, second = _rows(clock.path, "actor")  # at 25 no newer
    assert (first["actor_steps"], second["actor_steps"]) == ("600", "1200")
    assert (first["learner_steps"], second["learner_steps"]) == ("4", "4")
    assert (float(first["walltime"]), float(second["walltime"])) == (10, 20)
    assert (float(first["episode_return"]), float(first["episode_length"])) == (0, 10)
    assert math.isnan(float(second["episode_return"]))  # none ended
    assert first["replay_size"] == "14"  # both tables of both shards
    assert [float(row["replays_per_observation"]) for row in (first, second)] == [2, 1]
    assert float(first["actor_steps_per_second"]) == pytest.approx(600 / 9)
    assert (clock.path / "logs" / "episodes.csv").read_text().splitlines() == [
        "actor_steps,walltime,actor,task,episode_return,episode_length",
        "150,0.5,0,catch,1.0,9",  # a quarter of the report of two seconds
        "600,2.0,3,catch,-1.0,11",
    ]


@pytest.mark.parametrize("limit", ["max_actor_steps", "max_learner_steps"])
def test_a_run_of_seconds_has_a_row_for_each_hundredth_of_its_limit(
    limit: str, clock: Clock
) -> None:
    limits: dict[str, Any] = {limit: 20_000}
    node = _make(clock.path, **limits)

    def make_everything() -> None:
        """Reports all that two actors and a learner do within one second."""
        for i in range(100):
            clock.now += 0.01
            for actor in (0, 1):
                node.report_steps(
                    [actor], 100, [(actor, 0, float(i), 50, made) for made in (50, 100)], 0
                )
            node.report_learner("r2d2", 200 * (i + 1), 0, {})
        node.report_saved("r2d2")

    clock.on_wait = make_everything
    node.run()
    ended = _rows(clock.path, "episodes")
    assert len(_rows(clock.path, "actor")) >= 100
    assert [int(row["actor_steps"]) for row in ended] == list(range(50, 20_001, 50))
    times = [float(row["walltime"]) for row in ended]
    assert sorted(times) == times
    assert len(set(times)) > 100
    assert times[-1] == pytest.approx(2.0)


def test_every_episode_that_is_counted_is_in_the_log_however_soon_all_is_killed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint holds what a learner is told, and a run goes on from that or from progress."""
    node = _make(clock.path)
    for length in (5, 6, 7):
        node.report_steps([0], 20, [(0, 0, 1.0, length, length), (1, 0, 0.0, length, 20)], 0)
        assert node.get_counts()["episodes"] == len(_rows(clock.path, "episodes"))
    node.report_steps([0], 20, [(0, 0, 1.0, 8, 8)], 0)
    monkeypatch.setattr(process, "wait_for_stop", lambda *_: True)  # torn down
    node.run()
    assert len(_rows(clock.path, "episodes")) == _progress(clock.path)["counts"]["episodes"] == 7


def test_a_resumed_run_logs_no_step_again(clock: Clock) -> None:
    node = _make(clock.path, dict(actor_steps=3_464, episodes=3, walltime=60.0))
    clock.at = {15: lambda: _act(node, 36), 35: lambda: node.report_saved("r2d2")}
    node.run()
    assert [row["actor_steps"] for row in _rows(clock.path, "actor")] == ["3500"]


def test_progress_holds_what_the_view_shows(clock: Clock) -> None:
    begun = BEGUN | dict(actor_steps=5_000, walltime=3_600.0)
    node = _make(clock.path, begun, {"r2d2": (10, 0)}, max_actor_steps=10_000)

    def step() -> None:
        node.report_steps([0], 50, [(0, 0, float(clock.waited), 3, 50)], 0)
        node.report_learner("r2d2", 10 + 2 * clock.waited, 30, {"loss": 0.5})
        node.report_evaluation("r2d2", {"episode_return": 0.75, "learner_steps": 11})

    clock.on_wait, clock.at = step, {5: lambda: node.report_saved("r2d2")}
    node.run()
    shown = _progress(clock.path)
    # The hour before the resume is no part of the rates.
    assert shown["rates"] == dict(actor_steps=50, learner_steps=2)
    assert shown["limits"] == dict(actor_steps=10_000, learner_steps=None, walltime=None)
    assert shown["goal"] is None
    assert shown["learners"] == {"r2d2": {"loss": 0.5, "learner_steps": 20}}
    assert (shown["returns"], shown["aggregates"]) == ({"catch": 3}, {})
    assert shown["evaluations"] == {"r2d2": {"episode_return": 0.75, "learner_steps": 11}}
    assert shown["replay_size"] == 14
    assert shown["filling"] == {"r2d2": [10, 80]}  # of both shards; the queue gives what it has


def test_progress_that_cannot_be_written_for_long_ends_the_node(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its notices, such as of saves that fail, and the run itself would be seen by nobody."""
    node = _make(clock.path)
    began, full = clock.now, OSError(errno.ENOSPC, "No space left on device")
    write = disk.write

    def write_while_there_is_room(*args: Any, **options: Any) -> None:
        if clock.now - began > 100 or 5 < clock.now - began < 30:
            raise full
        write(*args, **options)

    monkeypatch.setattr(disk, "write", write_while_there_is_room)
    with pytest.raises(OSError, match="No space left") as error:
        node.run()
    assert error.value is full
    assert clock.now - began == 100 + logs.UNWRITTEN_SECONDS


def test_the_end_is_told_though_it_cannot_be_at_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody waits for it."""
    node, began, write = _make(clock.path), clock.now, disk.write

    def write_later(*args: Any, **options: Any) -> None:
        if clock.now - began < 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*args, **options)

    monkeypatch.setattr(disk, "write", write_later)
    assert _end(node, clock.path)["state"] == "finished"
    assert clock.now - began >= 9


def test_the_first_agents_counts_are_the_runs(clock: Clock) -> None:
    node = _make(clock.path, learned={"r2d2": (7, 50), "impala": (3, 9)})
    node.report_learner("impala", 4, 12, {"loss": 0.5})
    begun = {**BEGUN, "environments_lost": 0}
    assert node.get_counts() == begun | {"learner_steps": 7, "trained_steps": 50}
    node.report_learner("r2d2", 8, 60, {})
    assert node.get_counts() == begun | {"learner_steps": 8, "trained_steps": 60}
    node.report_evaluation("impala", {"episode_return": 0.75, "learner_steps": 4})
    shown = _end(node, clock.path, "r2d2", "impala")
    assert shown["learners"] == {
        "r2d2": {"learner_steps": 8},
        "impala": {"learner_steps": 4, "loss": 0.5},
    }
    assert shown["evaluations"] == {"impala": {"episode_return": 0.75, "learner_steps": 4}}


def test_an_agents_largest_priority_is_1_until_its_learner_gave_one(clock: Clock) -> None:
    node = _make(clock.path, learned={"r2d2": (0, 0), "impala": (0, 0)})
    assert node.largest_priority("r2d2") == 1.0
    node.report_learner("r2d2", 1, 1, {"largest_priority": 2.5})
    assert (node.largest_priority("r2d2"), node.largest_priority("impala")) == (2.5, 1.0)


def test_several_tasks_have_a_log_of_their_own(clock: Clock) -> None:
    tasks = ("catch", "atari:pong", "atari:boxing")
    node = _make(clock.path, tasks=tasks)
    ended = [(0, 0, 1.0, 9, 60), (4, 1, -21.0, 800, 60), (1, 1, -19.0, 900, 60)]

    def end() -> None:
        node.report_learner("r2d2", 4, 120, {})
        node.report_saved("r2d2")

    clock.at = {
        5: lambda: _act(node, 60),
        12: lambda: _act(node, 60, *ended),
        22: lambda: _act(node, 60),
        25: end,
    }
    node.run()
    table = _rows(clock.path, "tasks")
    assert [row["actor_steps"] for row in table] == ["60", "120", "180"]
    assert [row["learner_steps"] for row in table] == ["0", "0", "4"]
    assert [float(row["walltime"]) for row in table] == [10, 20, 25]
    assert [row["return/atari:boxing"] for row in table] == ["nan"] * 3
    # A task's return stays where the next period brings no episode.
    assert [row["return/catch"] for row in table] == ["nan", "1.0", "1.0"]
    assert [row["return/atari:pong"] for row in table] == ["nan", "-20.0", "-20.0"]
    assert [row["normalised_tasks"] for row in table] == ["0", "1", "1"]
    normalised = scores.human_normalised("atari:pong", -20.0)
    assert float(table[1]["median_normalised"]) == pytest.approx(normalised)
    played = [row["task"] for row in _rows(clock.path, "episodes")]
    assert played == ["catch", "atari:pong", "atari:pong"]
    shown = _progress(clock.path)
    assert shown["aggregates"]["mean_capped"] == pytest.approx(normalised)
    assert list(shown["returns"]) == list(tasks)


def test_a_busy_replay_does_not_stop_the_logs(clock: Clock) -> None:
    node = _make(clock.path)
    node._replays[1].busy = True
    node.report_steps([0], 8, [], 0)
    assert math.isnan(_end(node, clock.path)["replay_size"])
    assert [row["replay_size"] for row in _rows(clock.path, "actor")] == ["nan"]
    assert not (clock.path / "logs" / "tasks.csv").exists()  # of one task


def test_a_run_goes_on_without_a_task_while_somebody_plays_another(clock: Clock) -> None:
    node = _make(clock.path, tasks=("a", "b"))
    assert node.leave_out("b", [1, 3], "it is dark")
    assert node.leave_out("b", [3], "it is dark")  # after a restart
    assert node.leave_out("a", [0], "no display")
    assert not node.leave_out("a", [2], "no display")
    assert not _make(clock.path / "one").leave_out("catch", [0], "it is dark")  # its only task
    progress = _end(node, clock.path)
    assert progress["left_out"] == {"a": 2, "b": 2}
    assert progress["notices"] == [
        "b is left out by actors 1, 3, who cannot play it: it is dark",
        "b is left out by actors 3, who cannot play it: it is dark",
        "a is left out by actors 0, who cannot play it: no display",
    ]


def test_actors_that_play_again_are_left_out_no_more(clock: Clock) -> None:
    node = _make(clock.path, tasks=("a", "b"))
    node.leave_out("b", [1, 3], "it is dark")
    node.report_steps([0, 1], 5, [], 0)
    progress = _end(node, clock.path)
    assert progress["left_out"] == {"b": 1}
    assert progress["acting"] == [2, 3]


def test_of_a_kind_of_notice_the_first_is_kept(clock: Clock) -> None:
    node = _make(clock.path)
    for sentence, kind in [("a", "x"), ("b", "x"), ("c", ""), ("d", "y"), ("e", ""), ("f", "y")]:
        node.notice(sentence, kind)
    assert _end(node, clock.path)["notices"] == ["a", "c", "d", "e"]


def test_progress_holds_the_newest_of_many_notices(clock: Clock) -> None:
    node = _make(clock.path)
    for i in range(logs.MAX_NOTICES + 7):
        node.notice(f"notice {i}")
    progress = _end(node, clock.path)
    assert progress["noticed"] == logs.MAX_NOTICES + 7
    assert progress["notices"] == [f"notice {i + 7}" for i in range(logs.MAX_NOTICES)]


def test_one_that_is_started_again_goes_on_from_what_it_wrote(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: dict[str, Sequence[int]] = {"r2d2": (0, 0), "impala": (0, 0)}
    node = _make(clock.path, learned=learned)
    node.report_steps([0], 100, [(0, 0, 1.0, 5, 100)], 2)
    node.report_learner("r2d2", 30, 300, {"largest_priority": 4.0})
    node.report_learner("impala", 20, 200, {})
    node.report_evaluation("r2d2", dict(episode_return=0.5))
    node.report_saved("impala")
    clock.now += 7.0
    node._write_progress()
    node._writing.take_row(node.get_counts())
    node._writing.write_rows()
    written = node.get_counts()
    node.report_steps([0], 10, [(0, 0, -1.0, 5, 10)], 0)
    node._writing.take_row(node.get_counts())
    node._writing.write_rows()  # and dies

    monkeypatch.setattr(rejoining, "_rejoins", True)
    clock.now += 60.0
    node = _make(clock.path, learned=learned, max_actor_steps=150)
    assert node.get_counts() == written
    assert [row["actor_steps"] for row in _rows(clock.path, "actor")] == ["100"]
    assert [row["actor_steps"] for row in _rows(clock.path, "episodes")] == ["100"]
    assert node.largest_priority("r2d2") == 4.0
    node._write_progress()
    progress = _progress(clock.path)
    assert progress["learners"]["impala"] == dict(learner_steps=20)
    assert progress["evaluations"] == {"r2d2": dict(episode_return=0.5)}

    assert not node.report_learner("r2d2", 10, 100, {})  # which went back to its checkpoint
    assert node.get_counts()["learner_steps"] == 10
    node._write_progress()
    assert _progress(clock.path)["rates"]["learner_steps"] == 0.0
    assert node.report_steps([0], 50, [], 0)
    node.report_saved("r2d2")
    assert progress["state"] == "running"
    node.report_saved("impala")  # a learner that has ended says so until the run has
    node._write_progress()
    assert _progress(clock.path)["state"] == "finished"
