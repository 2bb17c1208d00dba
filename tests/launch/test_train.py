"""Bad input is refused with a sentence, before any process starts and with the folder untouched."""

import errno
import json
import pathlib
import shlex
import subprocess
import sys
from typing import Any

import pytest
import tensorflow as tf

from agents.learner import Learner
from launch import train
from launch.local import supervisor
from r2d2 import agent as r2d2
from run_folder import building, catalogue, checkpoints, launches, settings, snapshots, whole_files
from tests.launch import typed

NEW = ("--agent=r2d2", "--env=catch")


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[settings.Settings]:
    """The runs that would have been started."""
    runs: list[settings.Settings] = []

    def run(settings: settings.Settings, manifests: checkpoints.Manifests) -> int:
        runs.append(settings)
        return 0

    monkeypatch.setattr(supervisor, "run", run)
    return runs


def _contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--agent=r2d3", "--env=catch"], ["'r2d3'", "Did you mean 'r2d2'?"]),
        (["--agent=stac", "--env=catch"], ["--agent=stac is not built yet"]),
        (["--agent=stacx", "--env=catch"], ["--agent=stacx is not built yet"]),
        (["--agent=zzz", "--env=catch"], ["'zzz'", "there are r2d2, r2d2_plus"]),
        (["--env=catch"], ["--agent must be given"]),
        (["--agent=r2d2"], ["--env must be given"]),
        (["--agent=r2d2", "--env=katch"], ["'katch'", "did you mean catch?"]),
        (["--agent=r2d2", "--env=atari:pung"], ["'atari:pung'", "atari:pong"]),
        (["--agent=r2d2", "--env=atary:pong"], ["'atary:pong'", "atari:pong"]),
        (["--agent=r2d2", "--env=memory:recal"], ["'memory:recal'", "memory:recall"]),
        (["--agent=r2d2", "--env=gym:CartPole-v9"], ["CartPole-v9"]),
        (["--agent=r2d2", "--env=dmlab:rooms_watermazes"], ["did you mean dmlab:rooms_watermaze?"]),
        (
            ["--agent=r2d2", "--env=control:cartpole/swingup"],
            ["'control:cartpole", "not built yet"],
        ),
        (["--agent=r2d2", "--env=catch,katch"], ["'katch'", "did you mean catch?"]),
        (["--agent=r2d2", "--env=atari57", "--num_actors=9"], ["at least 57 actors", "actors=9"]),
        (
            ["--agent=r2d2", "--env=catch,memory:recall"],
            ["--env=catch,memory:recall cannot be played", "'catch'", "'memory:recall'"],
        ),
        (
            ["--agent=r2d2", "--env=atari:pong,atari:breakout", "--full_action_space=false"],
            ["'atari:pong'", "'atari:breakout'", "18"],
        ),
        ([*NEW, "--num_actor=3"], ["'num_actor'", "num_actors"]),
        ([*NEW, "--frobnicate"], ["'frobnicate'"]),
        ([*NEW, "pong"], ["'pong'", "Only flags"]),
        ([*NEW, "--num_actors=0"], ["--num_actors must be a whole number from 1", "got 0."]),
        ([*NEW, "--num_actors=2147483648"], ["--num_actors", "to 100,000, got 2147483648."]),
        (
            [*NEW, "--num_actors=100000", "--actors_per_node=1"],
            [
                "--num_actors=100000 and --actors_per_node=1 make 100,000 processes",
                "10,000 at most",
            ],
        ),
        ([*NEW, "--max_actor_steps=9223372036854775808"], ["--max_actor_steps", "775,807 or None"]),
        ([*NEW, f"--max_learner_steps=1{'0' * 400}"], ["--max_learner_steps must be"]),
        ([*NEW, f"--seed=1{'0' * 20}"], ["--seed=1000", "775807]"]),
        ([*NEW, f"--evaluation_episodes=1{'0' * 20}"], ["--evaluation_episodes", "to 10,000"]),
        ([*NEW, "--evaluation_minutes=inf"], ["--evaluation_minutes", "to 527,040, got inf."]),
        ([*NEW, "--num_actors=abc"], ["--num_actors=abc"]),
        ([*NEW, "--actors_per_node=-1"], ["--actors_per_node", "-1"]),
        ([*NEW, "--num_replay_shards=0"], ["--num_replay_shards must be a whole number from 1"]),
        ([*NEW, "--num_replay_shards=2"], ["=2 needs as many actor nodes", "make 1."]),
        ([*NEW, "--max_actor_steps=0"], ["--max_actor_steps", "0"]),
        ([*NEW, "--seed=x"], ["--seed=x"]),
        ([*NEW, "--seed=-1"], ["--seed=-1"]),
        ([*NEW, "--checkpoint_minutes=0"], ["--checkpoint_minutes must be a number from 0.001"]),
        ([*NEW, "--evaluation_minutes=nan"], ["--evaluation_minutes", "nan"]),
        ([*NEW, "--evaluation_episodes=-2"], ["--evaluation_episodes", "-2"]),
        ([*NEW, "--preset="], ["--preset must be one of local, paper, got ''."]),
        ([*NEW, "--act_with="], ["--act_with= names ''"]),
        ([*NEW, "--job="], ["--job must name a new folder, got ''."]),
        ([*NEW, "--job=a\0b"], ["--job=", "null byte"]),
        ([*NEW, f"--job={'x' * 256}"], ["at most 255 bytes, got one of 256."]),
        ([*NEW, "--job=/dev/null/job"], ["--job=/dev/null/job cannot be made: Not a directory."]),
        ([*NEW, "--job=~nobody-here/job"], ["There is no home folder ~nobody-here"]),
        ([*NEW, "--gcp_dry_run"], ["--gcp_dry_run must come with --lp_launch_type=vertex_ai"]),
        (
            [*NEW, "--gcp_region=europe-west4", "--gcp_actor=n1-highmem-2"],
            ["--gcp_region and --gcp_actor must come with", "got --lp_launch_type=local_mp."],
        ),
        ([*NEW, "--noresume=3"], ["--noresume=3 does not take an argument"]),
        ([*NEW, "--resume=maybe"], ["--resume=maybe"]),
        ([*NEW, "--flagfile=missing"], ["'missing'"]),
        ([*NEW, "--seed"], ["flag --seed=--run_dir="]),
        ([*NEW, "--r2d2.=3"], ["'r2d2.'"]),
        ([*NEW, "--=3"], ["'--=3'"]),
        ([*NEW, "-r2d2.length=0"], ["--r2d2.length", "got 0."]),
        ([*NEW, "--preset=huge"], ["--preset", "'huge'", "local, paper"]),
        ([*NEW, "--lp_launch_type=local_mt"], ["local_mp or vertex_ai", "got local_mt"]),
        ([*NEW, "--lp_launch_type=vertex_ai"], ["--gcp_region must be", "''"]),
        ([*NEW, "--r2d2.burn_in=-1"], ["--r2d2.burn_in", "-1"]),
        ([*NEW, "--r2d2.period=200"], ["--r2d2.period", "length (16)", "200"]),
        ([*NEW, "--r2d2.learning_rate=fast"], ["--r2d2.learning_rate", "float", "'fast'"]),
        ([*NEW, "--r2d2.learning_rate=nan"], ["--r2d2.learning_rate", "nan"]),
        ([*NEW, "--r2d2.lstm_size=1.5"], ["--r2d2.lstm_size", "int", "'1.5'"]),
        ([*NEW, "--r2d2.rescale=maybe"], ["--r2d2.rescale", "bool", "'maybe'"]),
        ([*NEW, "--r2d2.life_loss=often"], ["--r2d2.life_loss", "none, reset, roll", "'often'"]),
        ([*NEW, "--r2d2.frame_stack=100000000"], ["--r2d2.frame_stack", "from 1 to 256"]),
        ([*NEW, "--r2d2.lstm_size=100000000"], ["--r2d2.lstm_size", "to 65,536"]),
        ([*NEW, "--r2d2.lstm_size=65536"], ["--r2d2.hidden_sizes, lstm_size and head_size"]),
        ([*NEW, "--r2d2.head_size=2147483648"], ["--r2d2.head_size", "to 65,536"]),
        ([*NEW, "--r2d2.hidden_sizes=100000000"], ["--r2d2.hidden_sizes", "65,536"]),
        ([*NEW, "--r2d2.learning_rate=inf"], ["--r2d2.learning_rate", "got inf."]),
        ([*NEW, "--r2d2.samples_per_insert=1e-30"], ["--r2d2.samples_per_insert", "0.0001"]),
        ([*NEW, "--r2d2.frame_stack=0"], ["--r2d2.frame_stack", "0"]),
        ([*NEW, "--r2d2.hidden_sizes=8,x"], ["--r2d2.hidden_sizes", "'8,x'"]),
        ([*NEW, "--r2d2.lerning_rate=1"], ["--r2d2.lerning_rate", "'learning_rate'"]),
        ([*NEW, "--preset=paper"], ["cannot play --env=catch", "the mlp torso"]),
        ([*NEW, "--r2d2.torso=dqn"], ["cannot play --env=catch", "the mlp torso"]),
        (
            ["--agent=impala", "--env=catch", "--impala.policy_lag=100000000"],
            ["--impala.policy_lag must be a whole number from 0 to 1,000"],
        ),
        (
            ["--agent=impala", "--env=catch", "--impala.pixel_control_cost=0.1"],
            ["cannot play --env=catch", "at least 32 x 32 pixels", "(10, 5)"],
        ),
        ([*NEW, "--r2d2.length"], ["--r2d2.length needs a value"]),
        ([*NEW, "--r2d2_plus.length=8"], ["--r2d2_plus.length", "this run's agents are r2d2."]),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    argv: list[str],
    said: list[str],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    started: list[settings.Settings],
) -> None:
    folder = tmp_path / "run"
    assert typed.run(train.main, *argv, f"--run_dir={folder}") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [part for part in said if part not in err] == [], err
    assert "Traceback" not in err
    assert not folder.exists()
    assert not started


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--agent=r2d2", "--env=katch", "--run_dir=RUN"], 2, "did you mean catch?"),
        (
            ["--agent=r2d2", "--env=catch", "--run_dir=RUN", "--bad=1"],
            2,
            "Unknown command line flag",
        ),
    ],
)
def test_a_process_ends_with_code_2(
    argv: list[str], code: int, said: str, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "run"
    command = [arg.replace("RUN", str(folder)) for arg in argv]
    result = subprocess.run(
        [sys.executable, "-m", "launch.train", *command], capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (code, "")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert not folder.exists()


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_run_needs_a_folder(resume: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert typed.run(train.main, *NEW, *resume) == 2
    assert "--run_dir must be given" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_refused(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    for run_dir in (tmp_path / "file", tmp_path / "file" / "run"):
        assert typed.run(train.main, *NEW, f"--run_dir={run_dir}") == 2
        assert f"--run_dir={run_dir} cannot be made" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run_dir", "said"),
    [
        ("", "--run_dir must be given."),
        ("a\0b", "got one with a null byte."),
        (f"runs/{'x' * 256}", "A name has at most 255 bytes, got one of 256."),
        ("y/" * 3_000, "A path has at most 3,840 bytes"),
        ("~nobody-here/run", "There is no home folder ~nobody-here"),
        ("\udcff", "got bytes that are no text."),
    ],
)
def test_a_name_that_no_folder_has_is_refused(
    run_dir: str, said: str, capsys: pytest.CaptureFixture[str], started: list[settings.Settings]
) -> None:
    assert typed.run(train.main, *NEW, f"--run_dir={run_dir}") == 2
    assert said in capsys.readouterr().err
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


def test_a_job_may_be_in_the_home_folder(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert typed.run(train.main, *NEW, "--run_dir=run", "--job=~/job") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job", "run"]
    assert (tmp_path / "job" / "workerpool0").is_dir()


def test_a_network_that_memory_does_not_hold_is_refused(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def exhaust(*_: object) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")

    monkeypatch.setattr(r2d2, "_make_network", exhaust)
    assert typed.run(train.main, *NEW, f"--run_dir={tmp_path / 'run'}") == 2
    assert "--agent=r2d2 has more parameters with these settings" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_good_input_starts_a_run(tmp_path: pathlib.Path, started: list[settings.Settings]) -> None:
    argv = (*NEW, "--num_actors=3", "--r2d2.length=24", f"--run_dir={tmp_path / 'a' / 'run'}")
    assert typed.run(train.main, *argv) == 0
    (run,) = started
    assert (run.num_actors, run.configs["r2d2"].length, run.preset) == (3, 24, "local")
    assert run.path.is_dir()
    (launch,) = launches.read(run.path)
    assert launch.command == shlex.join(["python", "-m", "launch.train", *argv])
    assert (launch.actor_steps, launch.walltime) == (0, 0.0)


@pytest.fixture
def saved(tmp_path: pathlib.Path) -> pathlib.Path:
    """A run folder as a run of r2d2 on catch leaves it, replay of 12 items included."""
    folder = tmp_path / "run"
    given = dict.fromkeys(settings.Settings.__dataclass_fields__)
    given |= dict(agent="r2d2", env="catch", run_dir=str(folder), preset="local")
    del given["configs"]
    run = settings.resolve(given, {"r2d2": {"lstm_size": "8", "head_size": "8"}})
    (folder / "checkpoints" / "learner-r2d2").mkdir(parents=True)
    (folder / "config.json").write_text(run.to_json())
    update = catalogue.make("r2d2", run.configs["r2d2"]).make_update(building.environment_spec(run))
    Learner(update, iter(())).write_checkpoint(str(folder / "checkpoints/learner-r2d2/7"))
    replay = folder / "checkpoints" / "replay" / "7-1"
    replay.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(replay / "chunks.tfrecord"), "ZLIB") as chunks:
        for i in range(12):
            chunks.write(bytes([i]) * 100)
    files = [p for p in (folder / "checkpoints").rglob("*") if p.is_file()]
    manifest = checkpoints.Manifest(
        agent="r2d2",
        learner_step=7,
        learner="learner-r2d2/7",
        replay="replay/7-1",
        replay_items=12,
        replay_saved_at=1.0,
        replay_seconds=0.1,
        actor_steps=100,
        episodes=10,
        trained_steps=50,
        walltime=60.0,
        sizes={str(p.relative_to(folder / "checkpoints")): p.stat().st_size for p in files},
    )
    checkpoints.write(folder / "checkpoints", checkpoints.MANIFEST, manifest)
    snapshots.keep(folder / "checkpoints", manifest)
    return folder


def test_a_saved_run_goes_on_with_what_may_change(
    saved: pathlib.Path, started: list[settings.Settings]
) -> None:
    argv = (f"--run_dir={saved}", "--resume", "--num_actors=5", "--r2d2.learning_rate=0.01")
    assert typed.run(train.main, *argv) == 0
    (run,) = started
    assert (run.agent, run.env, run.num_actors) == ("r2d2", "catch", 5)
    config = run.configs["r2d2"]
    assert (config.learning_rate, config.lstm_size) == (0.01, 8)
    (launch,) = launches.read(saved)  # the run that was saved is older than the file
    assert launch.command == shlex.join(["python", "-m", "launch.train", *argv])
    assert (launch.actor_steps, launch.walltime) == (100, 60.0)


def _edit_manifest(folder: pathlib.Path, **changes: Any) -> None:
    path = folder / "checkpoints" / checkpoints.MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _edit_config(folder: pathlib.Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _folder_in_place_of_manifest(folder: pathlib.Path) -> None:
    (folder / "checkpoints" / checkpoints.MANIFEST).unlink()
    (folder / "checkpoints" / checkpoints.MANIFEST).mkdir()


def _flip(path: pathlib.Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def _learner_files(folder: pathlib.Path, suffix: str) -> pathlib.Path:
    (file,) = (folder / "checkpoints" / "learner-r2d2").glob(f"7.{suffix}*")
    return file


def _truncate(path: pathlib.Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


_REPLAY_FILE = "checkpoints/replay/7-1/chunks.tfrecord"
_DAMAGE = {
    "nothing": lambda f: None,
    "manifest no JSON": lambda f: (f / "checkpoints/manifest.json").write_text("{"),
    "manifest a list": lambda f: (f / "checkpoints/manifest.json").write_text("[]"),
    "manifest field unknown": lambda f: _edit_manifest(f, sizze=1),
    "another agent's": lambda f: _edit_manifest(f, agent="r2d2_plus"),
    "learner truncated": lambda f: _truncate(_learner_files(f, "data")),
    "learner missing": lambda f: _learner_files(f, "index").unlink(),
    "learner's first byte": lambda f: _flip(_learner_files(f, "data"), 0),
    "learner's last byte": lambda f: _flip(_learner_files(f, "data"), -1),
    "learner's index": lambda f: _flip(_learner_files(f, "index"), 40),
    "manifest missing": lambda f: (f / "checkpoints/manifest.json").unlink(),
    "replay's bit": lambda f: _flip(f / _REPLAY_FILE, 20),
    "replay truncated": lambda f: _truncate(f / _REPLAY_FILE),
    "replay missing": lambda f: (f / _REPLAY_FILE).unlink(),
    "config no JSON": lambda f: (f / "config.json").write_text("{"),
    "manifest a folder": _folder_in_place_of_manifest,
    "manifest without sizes": lambda f: _edit_manifest(f, sizes=None),
    "manifest leaves its folder": lambda f: _edit_manifest(f, learner="../../7"),
    "config without configs": lambda f: _edit_config(f, configs=None),
    "config of half an actor": lambda f: _edit_config(f, num_actors=2.5),
    "config of no agent": lambda f: (f / "config.json").write_text('{"agent": "r2d3"}'),
    "config missing": lambda f: (f / "config.json").unlink(),
}


@pytest.mark.parametrize(
    ("damage", "argv", "said"),
    [
        ("nothing", ["--agent=r2d2", "--env=catch"], "holds a run already: add --resume"),
        ("nothing", ["--resume", "--agent=r2d2_plus"], "--agent=r2d2; it cannot go on as"),
        ("nothing", ["--resume", "--env=memory:recall"], "cannot go on as --env=memory:recall"),
        ("nothing", ["--resume", "--preset=paper"], "cannot go on as --preset=paper"),
        ("nothing", ["--resume", "--num_replay_shards=2"], "cannot go on as --num_replay_shards=2"),
        ("nothing", ["--resume", "--r2d2.lstm_size=32"], "a network of other sizes"),
        ("nothing", ["--resume", "--r2d2.hidden_sizes=8"], "a network of other sizes"),
        ("nothing", ["--resume", "--r2d2.replay_size=500"], "--r2d2.replay_size=500: its replay"),
        ("nothing", ["--resume", "--r2d2.length=32"], "--r2d2.length=32: its replay"),
        ("nothing", ["--resume", "--r2d2.burn_in=-1"], "--r2d2.burn_in must be"),
        ("nothing", ["--resume", "--r2d2_plus.length=8"], "sets a field of 'r2d2_plus'"),
        ("nothing", ["--resume", "--num_actors=0"], "--num_actors must be a whole number from 1"),
        ("manifest no JSON", ["--resume"], "manifest.json is corrupt"),
        ("manifest a list", ["--resume"], "manifest.json is corrupt"),
        ("manifest field unknown", ["--resume"], "sizze"),
        ("another agent's", ["--resume"], "a checkpoint of 'r2d2_plus'; 'r2d2' cannot go on"),
        ("learner truncated", ["--resume"], "The checkpoint is corrupt"),
        ("learner missing", ["--resume"], "7.index is missing"),
        ("learner's first byte", ["--resume"], "learner-r2d2/7 is corrupt"),
        ("learner's last byte", ["--resume"], "learner-r2d2/7 is corrupt"),
        ("learner's index", ["--resume"], "learner-r2d2/7 is corrupt"),
        ("manifest missing", ["--resume"], "manifest.json is missing, although learners of r2d2"),
        ("manifest missing", ["--resume"], "With --resume, --resume_step=7 an earlier one that"),
        ("manifest no JSON", ["--resume"], "With --resume, --resume_step=7 an earlier one that"),
        ("nothing", ["--resume", "--resume_step=8"], "holds no step 8 of r2d2; there are 7."),
        ("learner truncated", ["--resume", "--resume_step=7"], "The checkpoint is corrupt"),
        ("learner truncated", ["--resume"], "With --resume, --resume_without_replay takes"),
        ("replay's bit", ["--resume"], "replay/7-1/chunks.tfrecord: "),
        ("replay's bit", ["--resume"], "With --resume, --resume_without_replay takes"),
        ("nothing", ["--resume_step=7", *NEW], "--resume_step says how a run goes on: add --res"),
        ("nothing", ["--resume_without_replay", *NEW], "replay says how a run goes on: add --res"),
        ("replay truncated", ["--resume"], "bytes, and was written with "),
        ("replay missing", ["--resume"], "chunks.tfrecord is missing"),
        ("config no JSON", ["--resume"], "config.json cannot be read"),
        ("manifest a folder", ["--resume"], "manifest.json cannot be read: Is a directory."),
        ("manifest without sizes", ["--resume"], "manifest.json is corrupt: sizes must be"),
        ("manifest leaves its folder", ["--resume"], "a path inside the checkpoint folder"),
        ("config without configs", ["--resume"], "config.json cannot be read: configs must be"),
        ("config of half an actor", ["--resume"], "num_actors must be a whole number, got 2.5."),
        ("config of no agent", ["--resume"], "config.json cannot be read"),
        ("config missing", ["--resume"], "holds no run"),
        ("config missing", ["--agent=r2d2", "--env=catch"], "holds a run already"),
    ],
)
def test_a_run_that_cannot_go_on_is_refused(
    damage: str,
    argv: list[str],
    said: str,
    saved: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    started: list[settings.Settings],
) -> None:
    _DAMAGE[damage](saved)
    before = _contents(saved)
    assert typed.run(train.main, f"--run_dir={saved}", *argv) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert _contents(saved) == before
    assert not started


@pytest.mark.parametrize(
    ("damage", "flag"),
    [
        ("nothing", "--resume_without_replay"),
        ("replay missing", "--resume_without_replay"),
        ("replay's bit", "--resume_without_replay"),
        ("manifest missing", "--resume_step=7"),
        ("manifest no JSON", "--resume_step=7"),
        ("replay truncated", "--resume_step=7"),
    ],
)
def test_what_is_damaged_can_be_left_behind(
    damage: str,
    flag: str,
    saved: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _DAMAGE[damage](saved)
    begun: list[checkpoints.Manifests] = []

    def run(run: settings.Settings, manifests: checkpoints.Manifests) -> int:
        begun.append(manifests)
        return 0

    monkeypatch.setattr(supervisor, "run", run)
    assert typed.run(train.main, f"--run_dir={saved}", "--resume", flag) == 0
    (manifest,) = begun[0].values()
    assert (manifest.learner_step, manifest.actor_steps, manifest.walltime) == (7, 100, 60.0)
    assert (manifest.replay, manifest.replay_items) == (None, 0)
    (launch,) = launches.read(saved)
    assert (launch.actor_steps, launch.walltime) == (100, 60.0)


@pytest.mark.parametrize("argv", [["--resume"], list(NEW)])
def test_a_folder_that_cannot_be_written_is_refused_and_loses_nothing(
    argv: list[str],
    saved: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    started: list[settings.Settings],
) -> None:
    folder = saved if "--resume" in argv else saved.parent / "new"
    before = _contents(folder)

    def fail(path: pathlib.Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(whole_files, "write", fail)
    assert typed.run(train.main, f"--run_dir={folder}", *argv) == 2
    err = capsys.readouterr().err
    assert err.startswith(str(folder))
    assert err.endswith(" cannot be written: No space left on device.\n")
    assert {n: c for n, c in _contents(folder).items() if not n.endswith("lock")} == before
    assert not started
