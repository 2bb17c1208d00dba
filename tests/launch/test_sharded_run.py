"""A run of two replay nodes and two learners: it learns, loses a learner, stops, and goes on."""

import math
import pathlib
import signal

import pytest
import reverb

from launch.graph import process, program
from run_folder import saver, settings
from run_folder.layout import RunFolder
from tests.launch.runs import Run, all_gone

pytestmark = pytest.mark.launchpad

TWO_OF_EACH = (
    *("--num_replay_shards=2", "--learners_per_agent=2"),
    *("--num_actors=8", "--actors_per_node=4"),
)


def _saved_items(run_dir: pathlib.Path, replay: str) -> list[int]:
    """Items of each shard, as servers that begin with what was saved count them."""
    run = settings.load(run_dir)
    found = []
    for shard in range(run.num_replay_shards):
        checkpointer = saver.replay_checkpointer(run_dir / "checkpoints", replay, shard)
        server = reverb.Server(program.make_tables(run, shard), checkpointer=checkpointer)
        info = server.localhost_client().server_info()
        found.append(info["r2d2"].current_size)
        server.stop()
    return found


def _first_size(run: Run) -> float:
    """How many items a launch's replay holds when they are counted first."""
    sizes = list[float]()

    def is_counted() -> bool:
        sizes.append(run.progress().get("replay_size", math.nan))
        return not math.isnan(sizes[-1])

    run.wait_until(is_counted)
    return sizes[-1]


def test_a_run_of_two_shards_and_two_learners_goes_on_with_all_its_items(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "enter", lambda *_: None)
    small = ("--agent=r2d2", "--env=catch", "--evaluation_episodes=0", *TWO_OF_EACH)
    with Run(tmp_path / "run", *small) as run:
        run.wait_until(lambda: run.count("learner_steps") > 5)
        code, _, err = run.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    before = run.manifest()
    saved = _saved_items(run.path, before["replay"])
    assert min(saved) >= 100  # half of the least that is learned from
    assert sum(saved) >= before["replay_items"]  # actors may write on until all is saved
    RunFolder(run.path).progress.unlink()  # of the launch that has ended

    with Run(run.path, "--resume") as run:
        assert _first_size(run) >= before["replay_items"]
        run.wait_until(lambda: run.count("learner_steps") > before["learner_step"] + 5)
        learners = [run.node(f"learner/{rank}") for rank in (0, 1)]
        learners[1].kill()  # without whom the other makes no update
        assert all_gone(learners)
        # Counts are told late; once the crash is filed, nobody is left to tell those of before.
        run.wait_until(RunFolder(run.path).crashes.exists)
        steps = run.count("learner_steps")
        run.wait_until(lambda: run.count("learner_steps") > steps + 5)
        code, out, err = run.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    assert "learner/1 was killed by SIGKILL. The run goes on from what was saved" in out
    assert run.manifest()["replay_items"] >= before["replay_items"]
