"""The command line of launch.population: bad input is a sentence, good input a population."""

import errno
import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from environments import gym
from launch import population
from population import settings
from recurrent_replay import command
from run_folder import run_lock
from tests.launch import typed_populations
from tests.launch.typed_populations import APART, NEW, SWEEP, NoLoop, refused
from tests.population.populations import refuse
from tests.run_folder.holding import Holder

GRID = "--sweep=impala.correction=grid:vtrace,one_step,none"


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[NoLoop]]:
    yield typed_populations.instead_of_training(monkeypatch)
    run_lock.release()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], ["--agent and --env must be given."]),
        ([*NEW, "--env=os:abort"], ["'os:abort' ended its process, with code -6, when it was"]),
        (["--agent=impala,r2d2", "--env=catch"], ["one agent in a population, got impala,r2d2."]),
        (
            ["--agent=r2d2", "--env=catch"],
            ["of r2d2 the papers tune nothing", "--sweep=r2d2.learn"],
        ),
        ([*NEW, "--member=4"], ["--member must be from 0 to 3, got 4."]),
        ([*NEW, "--sweep=popart.learning_rate=log:1e-5:1"], ["must be impala.<field>=<range>"]),
        ([*NEW, "--sweep=impala.learning_rate"], ["must be impala.<field>=<range>, got 'impala.l"]),
        ([*NEW, SWEEP, SWEEP], ["--sweep names impala.learning_rate twice."]),
        (
            [*NEW, SWEEP, "--impala.learning_rate=1"],
            ["--impala.learning_rate is what --sweep draws"],
        ),
        ([*NEW, "--sweep=impala.c_bar=choice:2,3"], ["--impala.c_bar must be at most rho_bar"]),
        ([*NEW, "--impala.torso=dqn"], ["Member 00: --agent=impala cannot play --env=catch"]),
        ([*NEW, "--num_replay_shards=2"], ["Member 00: --num_replay_shards=2 needs as many actor"]),
        ([*NEW, GRID, APART], ["--members must be a multiple of 3", "correction, got 4."]),
        ([*NEW, "--resume_step=0"], ["--resume_step is for one run"]),
        *(
            (
                [*NEW, f"--{name}=2"],
                [f"--{name} is for one run", "by --max_actor_steps or --max_learner_steps."],
            )
            for name in ("max_minutes", "until_return", "until_evaluations")
        ),
        ([*NEW, "--num_actors=auto"], ["--num_actors=auto is for one run", "as --num_actors=32."]),
        (
            [*NEW, "--lp_launch_type=vertex_ai"],
            ["A population runs on this machine", "Google Cloud"],
        ),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    argv: list[str],
    said: list[str],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", None)
    err = refused(capsys, tmp_path, *argv, f"--run_dir={tmp_path / 'population'}")
    assert [part for part in said if part not in err] == [], err
    assert list(tmp_path.iterdir()) == []


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
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    for name, file in (("full", "config.json"), ("other", "population.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}")
    assert said in refused(capsys, tmp_path, *NEW, f"--run_dir={run_dir}")


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
    assert found.flags == dict(num_actors=3, max_actor_steps=9_000)
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


BEGAN = (*NEW, SWEEP, "--seed=3", "--num_actors=4", "--impala.length=8")


@pytest.fixture
def begun(tmp_path: pathlib.Path, stub: type[NoLoop]) -> pathlib.Path:
    """A population of four that has begun."""
    path = tmp_path / "population"
    assert typed_populations.run(*BEGAN, f"--run_dir={path}") == 0
    stub.trained.clear()
    run_lock.release()
    return path


def test_a_population_goes_on_as_it_was(begun: pathlib.Path, stub: type[NoLoop]) -> None:
    before = (begun / "population.json").read_text()
    begun = begun.rename(begun.with_name("moved"))
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == 0
    same = ("--agent=impala", "--env=catch", "--seed=3", "--members=4", "--evolve=all")
    assert typed_populations.run(f"--run_dir={begun}", "--resume", *same, "--preset=local") == 0
    first, second = stub.trained
    assert (first[1:], second[1:]) == (([0, 1, 2, 3], begun), ([0, 1, 2, 3], begun))
    assert first[0].to_json() == before
    assert second[0].flags == first[0].flags | dict(preset="local")


def test_a_population_goes_on_with_what_may_change(begun: pathlib.Path, stub: type[NoLoop]) -> None:
    argv = ("--max_actor_steps=5000", "--impala.baseline_cost=0.25", "--ready_episodes=7")
    assert typed_populations.run(f"--run_dir={begun}", "--resume", *argv, "--num_actors=5") == 0
    ((found, *_),) = stub.trained
    assert found.flags == dict(num_actors=5, max_actor_steps=5_000)
    assert found.overrides["impala"] == dict(length="8", baseline_cost="0.25")
    assert (found.ready_episodes, found.seed) == (7, 3)
    assert settings.load(begun) == found


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["--agent=popart"],
            "holds a population of --agent=impala; it cannot go on as --agent=pop",
        ),
        ([APART], "holds a population of --evolve=all; it cannot go on as --evolve=none."),
        (["--run_dir="], "--run_dir must be given."),
        (["--run_dir=nothing"], "nothing holds no population: there is no nothing/population.json"),
        ([SWEEP], "--sweep is for a population that begins; this one has begun."),
        (
            ["--preset=paper", "--impala.torso=mlp"],
            "of --preset=local; it cannot go on as --preset",
        ),
        (["--num_replay_shards=2"], "of --num_replay_shards=1; it cannot go on as"),
        (["--impala.learning_rate=1"], "--impala.learning_rate is what --sweep draws"),
        (["--annealing_frames=9000"], "--annealing_frames=9000 is for members that do not evolve"),
    ],
)
def test_what_would_be_another_population_is_refused_and_nothing_is_changed(
    argv: list[str], said: str, begun: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, begun, f"--run_dir={begun}", "--resume", *argv)


def test_one_process_at_a_time_trains_a_population(
    begun: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Holder(begun):
        for more in ("--ready_episodes=9", "--member=1"):
            err = refused(capsys, begun, f"--run_dir={begun}", "--resume", more)
            assert f"{begun} is being trained by another process" in err


def test_hosts_train_members_beside_each_other(
    begun: pathlib.Path, capsys: pytest.CaptureFixture[str], stub: type[NoLoop]
) -> None:
    host = begun / "hosts" / "01"
    host.mkdir(parents=True)
    with Holder(host):
        for more, code in (
            ("--member=0", 0),
            ("--member=1", 2),
            ("--member=3", 0),
            ("--resume", 2),
        ):
            assert typed_populations.run(f"--run_dir={begun}", "--resume", more) == code
            if code:
                assert f"{host} is being trained by another process" in capsys.readouterr().err
    assert [members for _, members, _ in stub.trained] == [[0], [3]]
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == 0


@pytest.mark.parametrize(("well", "code"), [(True, 0), (False, 1)])
def test_the_best_is_named_in_the_end(
    well: bool,
    code: int,
    begun: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    stub: type[NoLoop],
) -> None:
    stub.well, stub.values = well, {0: float("nan"), 1: -0.5, 2: 0.25, 3: 0.1}
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == code
    out = capsys.readouterr().out
    assert "Best: member 02, with 0.25." in out
    assert f"Evaluate: {command('evaluate')} --run_dir={begun}/members/02 --episodes=30" in out
    assert f"Report:   {command('report')} --run_dir={begun}" in out


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (settings.SettingsError("Member 01: it is refused."), 2, "Member 01: it is refused.\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_ends_a_population_is_told(
    raised: BaseException,
    code: int,
    said: str,
    begun: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    stub: type[NoLoop],
) -> None:
    stub.raises = raised
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == code
    assert capsys.readouterr().err == said
    with Holder(begun):  # the lock was given back
        pass


def test_hosts_that_come_later_join_by_the_same_command(
    begun: pathlib.Path, stub: type[NoLoop], capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed_populations.run(*BEGAN, f"--run_dir={begun}", "--member=2") == 0
    ((found, members, _),) = stub.trained
    assert (found, members) == (settings.load(begun), [2])
    assert (begun / "hosts" / "02" / "lock").exists()
    stub.trained.clear()
    other = (*NEW, "--sweep=impala.entropy_cost=log:1e-4:1e-2", f"--run_dir={begun}", "--member=2")
    assert "holds a population of --sweep=" in refused(capsys, begun, *other)


def test_a_terminal_that_is_gone_ends_nothing(
    begun: pathlib.Path, monkeypatch: pytest.MonkeyPatch, stub: type[NoLoop]
) -> None:
    stub.values = {0: 1.0}
    monkeypatch.setattr(population, "print", refuse(errno.EIO), raising=False)
    assert typed_populations.run(f"--run_dir={begun}", "--resume") == 0
    assert len(stub.trained) == 1


def test_what_is_played_is_tried_before_a_population_is_read_in_full(
    begun: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """IMPALA's ranges may depend on its actions, which only making it tells."""
    monkeypatch.setattr(gym, "_known", known := dict[str, object]())
    file = begun / "population.json"
    recorded = json.loads(file.read_text())
    file.write_text(json.dumps(recorded | dict(env="os:abort")))
    refused(capsys, begun, f"--run_dir={begun}", "--resume")
    assert known["os:abort"] == "'os:abort' ended its process, with code -6, when it was tried."
    recorded["flags"]["hang_seconds"] = "long"
    file.write_text(json.dumps(recorded))
    said = refused(capsys, begun, f"--run_dir={begun}", "--resume")
    assert f"{file} cannot be read: hang_seconds must be a number from 5 to" in said
