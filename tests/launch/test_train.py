"""Bad input is refused with a sentence, before any process starts and with the folder untouched."""

import dataclasses
import pathlib
import shlex
from typing import get_args

import pytest
import tensorflow as tf

import recurrent_replay
from agents import fields
from agents.contract import Agent
from launch import sizing, train
from r2d2 import network
from run_folder import building, launches, settings
from tests.launch import typed

NEW = ("--agent=r2d2", "--env=catch")
AUTO = "--num_actors=auto"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[settings.Settings]:
    """The runs that would have been started."""
    return typed.instead_of_starting(monkeypatch)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["--agent=stac", "--env=catch,memory:recall"],
            ["--env must be one task for --agent=stac, got the 2 of 'catch,memory:recall'"],
        ),
        (["--env=catch"], ["--agent must be given"]),
        (["--agent=r2d2"], ["--env must be given"]),
        (["--run_dir="], ["--agent, --env and --run_dir must be given."]),
        ([*NEW, "--run_dir="], ["--run_dir must be given."]),
        (["--agent=r2d2", "--env=gym:gymnasiun:CartPole-v1"], ["did you mean gymnasium?"]),
        (["--agent=r2d2", "--env=os:abort"], ["'os:abort' ended its process, with code -6, when"]),
        (
            ["--agent=r2d2", "--env=gym:CartPole-v1", "--r2d2.frame_stack=4"],
            ["--agent=r2d2 cannot play --env=gym:CartPole-v1", "frame_stack must be 1", "got 4;"],
        ),
        (
            ["--agent=r2d2", "--env=control:cartpole/swingup"],
            ["--env=control:cartpole/swingup", "needs discrete actions"],
        ),
        (
            ["--agent=r2d2", "--env=catch,memory:recall"],
            ["--env=catch,memory:recall cannot be played", "'catch'", "'memory:recall'"],
        ),
        (
            ["--agent=r2d2", "--env=atari:pong,atari:breakout", "--full_action_space=false"],
            ["'atari:pong'", "'atari:breakout'", "18"],
        ),
        ([*NEW, "pong"], ["'pong'", "Only flags"]),
        (
            [*NEW, "--num_actors=100000", "--actors_per_node=1"],
            [
                "--num_actors=100000 and --actors_per_node=1 make 100,000 processes",
                "10,000 at most",
            ],
        ),
        ([*NEW, "--max_actor_steps=9223372036854775808"], ["--max_actor_steps", "775,807 or None"]),
        ([*NEW, "--max_minutes=0"], ["--max_minutes must be a number from 0.001 to", "got 0.0."]),
        ([*NEW, "--until_return=nan"], ["--until_return must be a number", "or inf or None, got"]),
        (
            [*NEW, "--until_return=18", "--evaluation_episodes=0"],
            ["--until_return=18 is reached in an evaluation", "add --evaluation_episodes=4"],
        ),
        ([*NEW, "--until_evaluations=0"], ["--until_evaluations must be a whole", "got 0."]),
        (
            [*NEW, "--until_evaluations=3"],
            ["--until_evaluations=3 counts evaluations that reach --until_return: add that"],
        ),
        ([*NEW, "--num_replay_shards=2"], ["=2 needs as many actor nodes", "make 1."]),
        ([*NEW, AUTO, "--job=job"], ["=auto measures this machine", "number, as --num_actors=32."]),
        ([*NEW, AUTO, "--lp_launch_type=vertex_ai"], ["=auto measures this machine"]),
        ([*NEW, AUTO, "--num_replay_shards=2"], ["for one replay, got --num_replay_shards=2: giv"]),
        ([*NEW, AUTO, "--agent=r2d2,impala"], ["one agent that acts, got --act_with=r2d2,impala:"]),
        (
            [*NEW, AUTO, "--actor_device=gpu"],
            ["=auto measures processors, got --actor_device=gpu: g"],
        ),
        ([*NEW, AUTO, "--actors_per_node=257"], ["finds 256 at most, got --actors_per_node=257:"]),
        ([*NEW, "--preset="], ["--preset must be one of local, paper, got ''."]),
        ([*NEW, "--act_with=\x1b[2J"], [r"--act_with=\x1b[2J names"]),
        ([*NEW, "--job="], ["--job must name a new folder, got ''."]),
        ([*NEW, "--job=/dev/null/job"], ["--job=/dev/null/job cannot be made: Not a directory."]),
        ([*NEW, "--gcp_dry_run"], ["--gcp_dry_run must come with --lp_launch_type=vertex_ai"]),
        (
            [*NEW, "--gcp_region=europe-west4", "--gcp_actor=n1-highmem-2"],
            ["--gcp_region and --gcp_actor must come with", "got --lp_launch_type=local_mp."],
        ),
        ([*NEW, "--seed", "--run_dir=run"], ["flag --seed=--run_dir="]),
        ([*NEW, "-r2d2.length=0"], ["--r2d2.length", "got 0."]),
        ([*NEW, "--lp_launch_type=local_mt"], ["local_mp or vertex_ai", "got local_mt"]),
        ([*NEW, "--lp_launch_type=vertex_ai"], ["--gcp_region must be", "''"]),
        ([*NEW, "--r2d2.period=200"], ["--r2d2.period", "length (64)", "200"]),
        ([*NEW, "--r2d2.learning_rate=fast"], ["--r2d2.learning_rate", "float", "'fast'"]),
        ([*NEW, "--r2d2.rescale=maybe"], ["--r2d2.rescale", "bool", "'maybe'"]),
        ([*NEW, "--r2d2.life_loss=often"], ["--r2d2.life_loss", "none, reset, roll", "'often'"]),
        ([*NEW, "--r2d2.lstm_size=65536"], ["--r2d2.hidden_sizes, lstm_size and head_size"]),
        ([*NEW, "--r2d2.hidden_sizes=8,x"], ["--r2d2.hidden_sizes", "'8,x'"]),
        ([*NEW, "--r2d2.torso=dqn"], ["cannot play --env=catch", "the mlp torso"]),
        (
            ["--agent=popart", "--env=gym:Pendulum-v1"],
            ["--agent=popart cannot play --env=gym:Pend", "1 number from -2 to 2"],
        ),
        (
            ["--agent=impala", "--env=catch", "--impala.pixel_control_cost=0.1"],
            ["cannot play --env=catch", "at least 32 x 32 pixels", "(10, 5)"],
        ),
        ([*NEW, "--r2d2.length"], ["--r2d2.length needs a value"]),
        ([*NEW, "--run_dir=/dev/null"], ["--run_dir=/dev/null cannot be made"]),
        ([*NEW, "--run_dir=/dev/null/run"], ["--run_dir=/dev/null/run cannot be made"]),
        ([*NEW, "--run_dir=a\0b"], ["got one with a null byte."]),
        ([*NEW, f"--run_dir={'x' * 256}"], ["A name has at most 255 bytes, got one of 256."]),
        ([*NEW, f"--run_dir={'y/' * 3_000}"], ["A path has at most 3,840 bytes"]),
        ([*NEW, "--run_dir=~nobody-here/run"], ["There is no home folder ~nobody-here"]),
        ([*NEW, "--run_dir=\udcff"], ["got bytes that are no text."]),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    argv: list[str],
    said: list[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    started: list[settings.Settings],
) -> None:
    monkeypatch.chdir(tmp_path)
    told = typed.refused(train.main, "--run_dir=run", *argv)
    assert [part for part in said if part not in told] == [], told
    assert list(tmp_path.iterdir()) == []
    assert not started


def test_a_run_may_be_in_the_home_folder(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, started: list[settings.Settings]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert typed.run(train.main, *NEW, "--run_dir=~/runs/catch") == 0
    (run,) = started
    assert run.run_dir == str(tmp_path / "runs" / "catch")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_network_that_memory_does_not_hold_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhaust(*_: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")

    monkeypatch.setattr(network, "make_network", exhaust)
    said = typed.refused(train.main, *NEW, f"--run_dir={tmp_path / 'run'}")
    assert "--agent=r2d2 has more parameters with these settings" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("env", "code"), [("gym:Pendulum-v1", 2), ("catch", 0)])
def test_agents_share_a_stream_if_they_mean_the_same_by_its_actions(
    env: str,
    code: int,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ("--agent=impala,stac", f"--env={env}")
    assert typed.run(train.main, *argv, f"--run_dir={tmp_path / 'alike'}") == 0
    make = building.make_agent

    def make_otherwise(run: settings.Settings, name: str) -> Agent:
        agent = make(run, name)
        return dataclasses.replace(agent, environment_action=None) if name == "stac" else agent

    monkeypatch.setattr(building, "make_agent", make_otherwise)
    assert typed.run(train.main, *argv, f"--run_dir={tmp_path / 'otherwise'}") == code
    said = "--agent=impala,stac: these agents do not mean the same by the vectors"
    assert (said in capsys.readouterr().err) == bool(code)
    assert (tmp_path / "otherwise").exists() != bool(code)


def test_good_input_starts_a_run(tmp_path: pathlib.Path, started: list[settings.Settings]) -> None:
    argv = [*NEW, "--agent=r2d2,impala", "--num_actors=3", "--r2d2.length=48"]
    argv += ["--annealing_frames=9000", f"--run_dir={tmp_path / 'a' / 'run'}"]
    assert typed.run(train.main, *argv) == 0
    (run,) = started
    assert (run.num_actors, run.configs["r2d2"].length, run.preset) == (3, 48, "local")
    assert run.configs["impala"].annealing_frames == 9_000
    assert run.path.is_dir()
    (launch,) = launches.read(run.path)
    assert launch.command == f"{recurrent_replay.command('train')} {shlex.join(argv)}"
    assert (launch.actor_steps, launch.walltime) == (0, 0.0)


@pytest.mark.parametrize("per_node", [None, 4])
def test_a_number_of_actors_that_is_found_is_said_and_recorded(
    per_node: int | None,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    started: list[settings.Settings],
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = []

    def find(run: settings.Settings, per_node: int | None) -> tuple[settings.Settings, str]:
        assert not run.path.exists()
        asked.append(per_node)
        return dataclasses.replace(run, num_actors=12, actors_per_node=4), "num_actors=12: so."

    monkeypatch.setattr(sizing, "find", find)
    given = [f"--actors_per_node={per_node}"] if per_node else []
    argv = [*NEW, AUTO, *given, f"--run_dir={tmp_path / 'run'}"]
    assert typed.run(train.main, *argv) == 0
    (run,) = started
    assert asked == [per_node]
    assert (run.num_actors, run.actors_per_node) == (12, 4)
    assert settings.load(run.path) == run
    out = capsys.readouterr().out
    assert out.startswith("Measuring how many environments play best: r2d2 on catch ...\n")
    assert "\nnum_actors=12: so.\n" in out


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, field in fields.declared(settings.Settings).items()
        if {field.annotation, *get_args(field.annotation)} & {int, float}
    ],
)
def test_a_number_out_of_its_range_is_refused_before_an_environment_is_tried(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train.trial, "try_each", None)
    argv = ("--agent=r2d2", "--env=gym:CartPole-v1", f"--run_dir={tmp_path / 'run'}")
    numbers = () if name == "until_return" else ("-1", str(10**400), "inf")  # any is a return
    for value in (*numbers, "nan"):
        assert f"--{name}" in typed.refused(train.main, *argv, f"--{name}={value}")
