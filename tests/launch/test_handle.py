"""Runs from Python: in a process in which TensorFlow has run, and from scripts without a guard."""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import recurrent_replay as rr
from analysis.playing import files, saved_model
from analysis.report import pages
from environments import suites
from launch import handle
from r2d2.agent import R2D2, Config
from run_folder import launches, run_lock
from run_folder.settings import SettingsError
from tests.launch.runs import Watched
from tests.patience import wait_for
from tests.run_folder import saved_runs

pytestmark = [pytest.mark.launchpad, pytest.mark.repository]

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL: dict[str, Any] = dict(
    num_actors=4, evaluation_episodes=0, r2d2={"lstm_size": 8, "min_replay_size": 20}
)


class Folder(Watched):
    """A run, as its folder tells of it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def wait_until_learning_beyond(self, updates: int) -> None:
        """Waits until more has been learned; the run has no limit that it could reach."""
        wait_for(lambda: self.count("learner_steps") > updates, self.progress)


class Trained:
    """A run that has ended by its limit, and what was printed meanwhile."""

    def __init__(self, path: pathlib.Path) -> None:
        assert tf.executing_eagerly()
        assert int(tf.constant(1) + 1) == 2  # from here on, no process can be forked
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.run = rr.train("r2d2", "catch", path, max_actor_steps=600, **SMALL)
        self.printed = out.getvalue()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp("runs") / "catch")


def test_it_has_trained_as_the_command_would(trained: Trained) -> None:
    run = trained.run
    assert "Starting 4 processes: r2d2 on catch ..." in trained.printed
    assert "The run has ended: 600 actor steps were reached." in trained.printed
    assert (run.settings.num_actors, run.settings.configs["r2d2"].lstm_size) == (4, 8)
    launch, *_ = launches.read(run.path)
    flags = "--num_actors=4 --evaluation_episodes=0 --r2d2.lstm_size=8 --r2d2.min_replay_size=20"
    assert launch.command.endswith(f"--run_dir={run.path} --max_actor_steps=600 {flags}")
    assert not run.is_running
    assert repr(run).startswith(f"Run('{run.path}': r2d2 on catch, ")


def test_what_it_returned_is_a_table(trained: Trained) -> None:
    run = trained.run
    before = len(files.read_all(run.path))
    evaluated = run.evaluate(episodes=5, epsilon=0.5, seed=3)
    (task,) = evaluated.returns
    assert task == "catch"
    assert evaluated.mean == evaluated.returns["catch"].mean()
    low, high = evaluated.interval
    assert low <= evaluated.mean <= high
    assert len(files.read_all(run.path)) == before + 1
    table = run.returns
    played = table["evaluation"] != ""
    np.testing.assert_array_equal(table["episode_return"][played][-5:], evaluated.returns["catch"])
    assert set(table["actor"][played]) == {-1}
    assert set(table["actor"][~played]) == {0, 1, 2, 3}
    assert set(table["episode_return"][~played]) == {-1.0, 1.0}
    assert (np.diff(table["actor_steps"][~played]) >= 0).all()
    assert {len(column) for column in table.values()} == {len(played)}


def test_the_table_is_of_pandas_where_that_is_installed(
    trained: Trained, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pandas.py").write_text("class DataFrame(dict):\n    pass\n")
    columns = set(trained.run.returns)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)  # to be put back
    monkeypatch.delitem(sys.modules, "pandas")
    table = trained.run.returns
    assert (type(table).__name__, set(table)) == ("DataFrame", columns)


def test_it_is_looked_at_and_taken_elsewhere(trained: Trained, tmp_path: pathlib.Path) -> None:
    run = rr.open(str(trained.run.path))
    assert run.report() == run.path / "report" / "index.html"
    assert (run.export(tmp_path / "policy") / "saved_model.pb").exists()
    (film,) = run.film()
    assert film.parent == run.path / "videos"
    small = rr.open(run.export(tmp_path / "small", as_run=True))
    assert small.evaluate(episodes=2).returns.keys() == {"catch"}
    policy = run.policy()
    action, _ = policy.step(np.zeros((10, 5), np.uint8), policy.initial_state())
    assert action in (0, 1, 2)


def test_what_it_learned_learns_on_in_this_process_and_back(
    trained: Trained, tmp_path: pathlib.Path
) -> None:
    run = rr.open(shutil.copytree(trained.run.path, tmp_path / "copy"))
    before = run.policy()._module.saved
    learner = run.learner(4)
    updates = learner.learner.learner_steps
    assert updates > 0
    for a, b in zip(learner.get_variables(["policy"])[0][:-1], before, strict=False):
        np.testing.assert_array_equal(a, b.numpy())
    learner.learn(suites.make("catch", 4, seed=0), 600)
    learned = learner.learner.learner_steps
    assert learned > updates
    assert run.adopt(learner) == learned
    assert run.adopt(learner) == learned + 1  # as another process may have gone on meanwhile
    assert run.evaluate(episodes=1).returns
    again = run.learner()
    for a, b in zip(*(x.get_variables(["policy"])[0][:-1] for x in (learner, again)), strict=True):
        np.testing.assert_array_equal(a, b)
    with contextlib.redirect_stdout(io.StringIO()):
        run.resume(max_actor_steps=1_000)
    assert run.learner().learner.learner_steps > learned + 1
    other = R2D2.of(
        suites.make("catch", 1, seed=0), Config(torso="mlp", frame_stack=1, lstm_size=9)
    )
    with pytest.raises(SettingsError, match="learner in this process is not of the sizes that"):
        run.adopt(other)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (lambda run: run.learner(checkpoint=3), "holds no step 3 of r2d2"),
        (lambda run: run.evaluate(episodes=0), "episodes must be a whole number from 1 on, got 0"),
        (lambda run: run.evaluate(agent="impala"), "--agent=impala did not learn in"),
        (lambda run: run.policy(checkpoint=3), "holds no step 3 of r2d2"),
        (lambda run: run.policy(seed=0.5), "seed must be a whole number from 0 on, got 0.5"),
        (lambda run: rr.open([run.path]), "run_dir must be a path, such as .*, got \\["),  # type: ignore[arg-type]
        (lambda run: rr.train("r2d2", "catch", 3), "run_dir must be a path, such as .*, got 3"),  # type: ignore[arg-type]
        (lambda run: run.policy(checkpoint="best"), "holds no best parameters of r2d2"),
        (
            lambda run: run.evaluate(checkpoint="newest"),
            "for the newest, or \"best\", .* got 'newest'",
        ),
        (lambda run: run.learner(checkpoint="best"), "but does not learn on, got 'best'"),
        (lambda run: run.policy(epsilon=2), "--epsilon must be between 0 and 1, got 2"),
        (lambda run: run.export(run.path), "folder must be a new one, got '/"),
        (lambda run: run.export(as_run=True), "as_run writes a run folder: name it with folder"),
        (lambda run: run.report(run.path / "config.json"), "config.json cannot be written"),
        (lambda run: rr.open(run.path / "logs"), "holds no run: there is no"),
    ],
)
def test_what_cannot_be_done_is_the_commands_sentence(
    trained: Trained, what: Any, said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        what(trained.run)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (dict(max_actor_step=7), "^Unknown .*max_actor_step.* Did you mean: max_actor_steps ?"),
        (dict(r2d2={"lenght": 80}), r"^--r2d2.lenght is no field of .*--r2d2\.length\?"),
        (dict(r2d2=3), r"^--r2d2 is an agent, and takes its fields: --help=r2d2\.$"),
        (dict(run_dir=__file__), r"^--run_dir=/.*\.py is a file: name a folder\.$"),
        (dict(agent=None), r"^--agent must be given\.$"),
        (dict(seed="x"), "seed.*'x'"),
    ],
)
def test_a_refusal_is_raised_and_not_printed(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str], flags: dict[str, Any], said: str
) -> None:
    given: dict[str, Any] = dict(agent="r2d2", env="catch", run_dir=tmp_path / "run") | flags
    with pytest.raises(SettingsError, match=said):
        rr.train(**given)
    assert capfd.readouterr() == ("", "")
    assert not (tmp_path / "run").exists()


def test_what_was_taken_elsewhere_learns_on_meanwhile_and_is_stopped_by_another(
    trained: Trained, tmp_path: pathlib.Path
) -> None:
    learned = Folder(trained.run.path).manifest()["learner_step"]
    small = rr.open(trained.run.export(tmp_path / "small", as_run=True))
    folder = Folder(small.path)
    assert not folder.manifest()  # it has parameters alone
    run = small.resume(wait=False, max_actor_steps=10**8)
    assert run.is_running
    folder.wait_until_learning_beyond(learned)
    another = rr.open(run.path)
    assert repr(another).endswith("running)")
    another.stop()
    assert not another.is_running
    run.wait()
    assert small.learner().learner.learner_steps > learned


def test_one_that_has_not_begun_is_stopped(tmp_path: pathlib.Path) -> None:
    run = rr.train("r2d2", "catch", tmp_path / "run", wait=False, **SMALL)
    run.stop()
    assert not run.is_running
    run.wait()  # which raises nothing: it was asked


@pytest.fixture
def script(tmp_path: pathlib.Path) -> list[str]:
    """The command of somebody's script, which is beside a module with a task."""
    (tmp_path / "tasks_of_mine.py").write_text(
        "import gymnasium\n\ndef make():\n    return gymnasium.make('CartPole-v1')\n"
    )
    return [sys.executable, str(tmp_path / "script_of_mine.py")]


def _write(script: list[str], text: str) -> dict[str, Any]:
    """Writes the script; returns how it is run: from elsewhere, with the project on its path."""
    pathlib.Path(script[1]).write_text(f"import recurrent_replay as rr\n{text}")
    return dict(cwd="/", env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True)


def test_a_script_without_a_guard_trains_and_its_run_ends_in_order_with_it(
    script: list[str], tmp_path: pathlib.Path
) -> None:
    folder = Folder(tmp_path / "run")
    how = _write(
        script,
        "from absl import flags\n"
        "from tasks_of_mine import make\n"
        "flags.DEFINE_string('agent', '', 'Of the script, which has flags of its own.')\n"
        f"rr.train('r2d2', make, {str(folder.path)!r}, **{SMALL!r})\n",
    )
    with subprocess.Popen(script, stdout=subprocess.DEVNULL, **how) as started:
        try:
            folder.wait_until_learning_beyond(0)
        finally:
            started.kill()
    wait_for(lambda: not run_lock.is_held(folder.path), folder.progress)
    assert folder.progress()["state"] == "finished"
    assert folder.manifest()["learner_step"] > 0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            "rr.train('r2d2', make, 'run')",
            "SettingsError: recurrent_replay.train was called by a module that a run imports. Put",
        ),
        ("if __name__ == '__main__': rr.train('r2d2', make, 'run', r2d2={'length': 0})", "length"),
    ],
)
def test_a_scripts_own_function_takes_a_guard(script: list[str], call: str, said: str) -> None:
    how = _write(
        script, f"from tasks_of_mine import make as task\ndef make(): return task()\n{call}\n"
    )
    ended = subprocess.run(script, capture_output=True, check=False, **how)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("run_folder.texts.SettingsError: ")
    assert said in last


def test_what_it_writes_may_be_in_the_home_folder(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    run = handle.Run(tmp_path / "run")
    monkeypatch.setattr(run, "_player", lambda **_: None)
    monkeypatch.setattr(saved_model, "write", lambda player, folder: folder)
    monkeypatch.setattr(pages, "write", lambda folders, output: output)
    assert run.export("~/policy") == tmp_path / "policy"
    assert run.report("~/page") == tmp_path / "page"
    with pytest.raises(SettingsError, match="output must be a path, such as 'runs/pong', got 7"):
        run.report(7)  # type: ignore[arg-type]


def test_a_run_stays_the_one_that_was_opened_wherever_a_script_goes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved_runs.save(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    run = rr.open("run")
    monkeypatch.chdir("/")
    assert run.path == tmp_path / "run"
    assert run.settings.env == "catch"
