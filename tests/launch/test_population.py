"""What is typed after launch.population: bad input is a sentence, before any process or file."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from population import settings
from recurrent_replay import command
from run_folder import run_lock
from tests.launch import typed, typed_populations
from tests.launch.typed_populations import APART, NEW, SWEEP, NoLoop

GRID = "--sweep=impala.correction=grid:vtrace,one_step,none"


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[NoLoop]]:
    yield typed_populations.instead_of_training(monkeypatch)
    run_lock.release()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], ["--agent and --env must be given."]),
        (["--agent=impela", "--env=catch"], ["'impela'", "Did you mean 'impala'?"]),
        (["--agent=impala", "--env=katch"], ["'katch'", "did you mean catch?"]),
        (
            [*NEW, "--env=os:abort", "--hang_seconds=1e9"],
            ["--hang_seconds must be a number from 5"],
        ),
        ([*NEW, "--env=os:abort"], ["'os:abort' ended its process, with code -6, when it was"]),
        (["--agent=impala,r2d2", "--env=catch"], ["one agent in a population, got impala,r2d2."]),
        (
            ["--agent=r2d2", "--env=catch"],
            ["of r2d2 the papers tune nothing", "--sweep=r2d2.learn"],
        ),
        ([*NEW, "--members=1"], ["--members must be a whole number from 2 to 1,000, got 1."]),
        ([*NEW, "--member=4"], ["--member must be from 0 to 3, got 4."]),
        ([*NEW, "--member=-1"], ["--member must be from 0 to 3, got -1."]),
        ([*NEW, "--memberz=4"], ["'memberz'", "members"]),
        ([*NEW, "--sweep=impala.lerning_rate=log:1:2"], ["'lerning_rate'", "'learning_rate'"]),
        ([*NEW, "--sweep=popart.learning_rate=log:1e-5:1"], ["must be impala.<field>=<range>"]),
        ([*NEW, "--sweep=impala.learning_rate"], ["must be impala.<field>=<range>, got 'impala.l"]),
        ([*NEW, SWEEP, SWEEP], ["--sweep names impala.learning_rate twice."]),
        (
            [*NEW, SWEEP, "--impala.learning_rate=1"],
            ["--impala.learning_rate is what --sweep draws"],
        ),
        ([*NEW, "--sweep=impala.c_bar=choice:2,3"], ["--impala.c_bar must be at most rho_bar"]),
        ([*NEW, "--impala.lerning_rate=1"], ["--impala.lerning_rate", "--impala.learning_rate?"]),
        ([*NEW, "--num_actors=0"], ["--num_actors must be a whole number from 1", "got 0."]),
        ([*NEW, "--impala.torso=dqn"], ["Member 00: --agent=impala cannot play --env=catch"]),
        ([*NEW, "--num_replay_shards=2"], ["Member 00: --num_replay_shards=2 needs as many actor"]),
        ([*NEW, GRID, "--members=3"], ["--sweep=correction=grid:", "--evolve=none"]),
        ([*NEW, GRID, APART], ["--members must be a multiple of 3", "correction, got 4."]),
        ([*NEW, "--annealing_frames=9000"], ["--annealing_frames=9000", "--evolve=none."]),
        ([*NEW, "--job=job"], ["--job is for one run"]),
        ([*NEW, "--resume_step=0"], ["--resume_step is for one run"]),
        ([*NEW, "--resume_without_replay"], ["--resume_without_replay is for one run"]),
        (
            [*NEW, "--lp_launch_type=vertex_ai"],
            ["A population runs on this machine", "Google Cloud"],
        ),
        ([*NEW, "--gcp_dry_run"], ["A population runs on this machine"]),
        ([*NEW, "pong"], ["'pong'", "Only flags"]),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    argv: list[str],
    said: list[str],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stub: type[NoLoop],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", None)
    assert typed_populations.run(*argv, f"--run_dir={tmp_path / 'population'}") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [part for part in said if part not in err] == [], err
    assert len(err.splitlines()) == 1 or "FATAL" in err  # absl's sentences have a heading
    assert list(tmp_path.iterdir()) == []
    assert not stub.trained


@pytest.mark.parametrize(
    ("run_dir", "said"),
    [
        ("", "--run_dir must be given."),
        ("gs://bucket/population", "A population runs on this machine"),
        ("file/population", "file/population cannot be made: Not a directory."),
        ("full", "full holds something already: name another folder."),
        ("other", "other holds a population already: add --resume to go on, or name another"),
    ],
)
def test_a_place_that_is_none_is_refused(
    run_dir: str,
    said: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stub: type[NoLoop],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    for name, file in (("full", "config.json"), ("other", "population.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}")
    before = typed.contents(tmp_path)
    assert typed_populations.run(*NEW, f"--run_dir={run_dir}") == 2
    assert said in capsys.readouterr().err
    assert typed.contents(tmp_path) == before
    assert not stub.trained


def test_names_flags_and_ranges_need_no_tensorflow(tmp_path: pathlib.Path) -> None:
    """What is mistyped is then answered within a second."""
    asked: list[list[str]] = [
        ["--agent=impela", "--env=catch"],
        [*NEW, "--sweep=impala.learning_rate=log:1:1"],
        [*NEW, "--member=9"],
        ["--resume"],
    ]
    heavy = ("tensorflow", "reverb", "launchpad", "acme", "sonnet", "matplotlib")
    program = (
        "import runpy, sys\n"
        "try: runpy.run_module('launch.population', run_name='__main__', alter_sys=True)\n"
        f"finally: print([name for name in {heavy} if name in sys.modules])"
    )
    for argv in asked:
        command = [sys.executable, "-c", program, *argv, f"--run_dir={tmp_path / 'population'}"]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout) == (2, "[]\n"), ended.stderr
        assert len(ended.stderr.splitlines()) in (1, 2)  # absl's sentences have a heading
    assert list(tmp_path.iterdir()) == []


def test_good_input_begins_a_population(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], stub: type[NoLoop]
) -> None:
    path = tmp_path / "runs" / "population"
    path.mkdir(parents=True)
    (path / "population.json.new").touch()  # another host begins it, too
    stub.finished = True
    more = ("--num_actors=3", "--seed=7", "--turn_steps=500", "--max_actor_steps=9000")
    assert typed_populations.run(*NEW, *more, f"--run_dir={path}") == 0
    ((found, members, folder),) = stub.trained
    assert (folder, members) == (path, [0, 1, 2, 3])
    assert (found.agent, found.env, found.seed, found.members) == ("impala", "catch", 7, 4)
    assert found.sweep == settings.default_sweep("impala", "catch")
    assert (found.turn_steps, found.ready_episodes, found.evolve) == (500, 5_000, "all")
    assert found.flags == dict(num_actors=3, max_actor_steps=9_000, agent="impala", env="catch")
    assert settings.load(path) == found
    assert f"process {os.getpid()} " in (path / "lock").read_text()
    out = capsys.readouterr().out
    assert out.startswith(f"Training 4 x impala on catch, {path}; drawn: entropy_cost=log:5e-5:")
    # It would end at once where no limit was raised.
    resume = f"{command('population')} --run_dir={path} --resume --max_actor_steps=18000"
    assert f"Resume:   {resume}\n" in out


R2D2 = ("--agent=r2d2", "--env=catch", "--members=2")
RATE = "--sweep=learning_rate=log:1e-5:1e-3"


@pytest.mark.parametrize(
    ("argv", "sweep", "overrides"),
    [
        # Learning rates that evolve do not fall by themselves.
        ([*NEW, SWEEP], ["learning_rate"], {"": dict(annealing_frames="none")}),
        ([*NEW, SWEEP, APART], ["learning_rate"], {}),
        (
            [*NEW, SWEEP, APART, "--impala.annealing_frames=9"],
            *(["learning_rate"], {"impala": dict(annealing_frames="9")}),
        ),
        ([*R2D2, RATE], ["learning_rate"], {}),  # it has no such field
        ([*NEW, SWEEP, GRID, APART, "--members=6"], ["learning_rate", "correction"], {}),
    ],
)
def test_rates_fall_where_they_do_not_evolve(
    argv: list[str],
    sweep: list[str],
    overrides: dict[str, Any],
    tmp_path: pathlib.Path,
    stub: type[NoLoop],
) -> None:
    assert typed_populations.run(*argv, f"--run_dir={tmp_path / 'population'}") == 0
    ((found, *_),) = stub.trained
    assert (list(found.sweep), found.overrides) == (sweep, overrides)
