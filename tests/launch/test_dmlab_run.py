"""A whole run on DeepMind Lab: engines are killed, training and evaluation go on."""

import functools
import pathlib
import signal

import psutil
import pytest

from tests.launch.runs import Run

pytestmark = [pytest.mark.launchpad, pytest.mark.slow]

FAKES = pathlib.Path(__file__).parents[1] / "environments" / "dmlab" / "fakes"
LEVEL = "dmlab:rooms_collect_good_objects"
FLAGS = (
    "--agent=r2d2",
    f"--env={LEVEL}_train",
    "--num_actors=2",
    "--evaluation_episodes=1",
    "--evaluation_minutes=0.02",
    "--r2d2.lstm_size=8",
    "--r2d2.head_size=8",
    "--r2d2.batch_size=2",
    "--r2d2.min_replay_size=4",
)
LOST = 2
UPDATES = 5


def _engines(run: Run) -> list[psutil.Process]:
    """The engines of the actors, who play the level of the training."""
    return [child for child in run.node("actor/0").children() if _is_engine(child)]


def _is_engine(process: psutil.Process) -> bool:
    try:
        return "environments.dmlab.process" in process.cmdline()
    except psutil.NoSuchProcess:  # it has ended meanwhile
        return False


def _has_lost(run: Run, engines: int) -> bool:
    return run.count("environments_lost") == engines


def test_killed_engines_are_replaced_and_training_goes_on(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    # Engines that are killed with the actor that would tidy up leave their files behind.
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with Run(tmp_path / "run", *FLAGS) as run:
        run.wait_until_learning()
        for number in range(1, LOST + 1):
            run.wait_until(lambda: len(_engines(run)) == 2)
            _engines(run)[0].send_signal(signal.SIGKILL)
            run.wait_until(functools.partial(_has_lost, run, number))
        assert list(temporary.glob("recurrent-replay-*/dmlab-*"))
        steps, updates = run.count("actor_steps"), run.count("learner_steps")
        run.wait_until(lambda: run.count("actor_steps") > steps + 100)
        run.wait_until(lambda: run.count("learner_steps") > updates + UPDATES)
        run.wait_until(lambda: bool(run.rows("evaluator")))
        code, _, err = run.end(signal.SIGTERM)
    assert code == 0, err
    assert list(temporary.iterdir()) == []
    assert run.rows("actor")[-1]["environments_lost"] == str(LOST)
    assert "was killed by SIGKILL" in (run.path / "nodes" / "actor" / "0").read_text()
