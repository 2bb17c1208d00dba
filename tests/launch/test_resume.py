"""A saved run goes on, if told so without what is damaged; else it is refused and untouched."""

import errno
import json
import pathlib
import re
import shlex
import shutil
from typing import Any

import pytest
import tensorflow as tf

import recurrent_replay
from environments import gym
from launch import sizing, train
from launch.local import supervisor
from run_folder import checkpoints, disk, launches, replay_files, settings
from tests.launch import typed
from tests.run_folder import saved_runs
from tests.run_folder.saving import saved_in

NEW = ("--agent=r2d2", "--env=catch")


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[settings.Settings]:
    """The runs that would have been started."""
    return typed.instead_of_starting(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run folder as a run of r2d2 on catch leaves it, replay of 12 items included."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    saved_runs.save(folder)
    replay = folder / "checkpoints" / "replay" / "7-1" / "0"
    replay.mkdir(parents=True)
    (replay / replay_files.DONE).touch()
    with tf.io.TFRecordWriter(str(replay / "chunks.tfrecord"), "ZLIB") as chunks:
        for i in range(12):
            chunks.write(bytes([i]) * 100)
    manifest = saved_in(folder / "checkpoints")
    sizes = {f"replay/7-1/0/{path.name}": path.stat().st_size for path in replay.iterdir()}
    of_replay = dict(replay="replay/7-1", replay_items=12, sizes=manifest.sizes | sizes)
    _edit(folder / "checkpoints" / checkpoints.MANIFEST, **of_replay)
    return folder


@pytest.fixture
def saved(whole: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of that folder."""
    return shutil.copytree(whole, tmp_path / "run")


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
    assert launch.command == f"{recurrent_replay.command('train')} {shlex.join(argv)}"
    assert (launch.actor_steps, launch.walltime) == (700, 7.5)


def test_a_number_of_actors_that_was_found_is_not_measured_again(
    saved: pathlib.Path, monkeypatch: pytest.MonkeyPatch, started: list[settings.Settings]
) -> None:
    recorded = settings.load(saved)
    monkeypatch.setattr(sizing, "find", None)
    argv = (f"--run_dir={saved}", "--resume", "--num_actors=auto")
    assert typed.run(train.main, *argv) == 0
    assert (started[0].num_actors, started[0].actors_per_node) == (
        recorded.num_actors,
        recorded.actors_per_node,
    )


def _edit(path: pathlib.Path, **changes: Any) -> None:
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


def _of_another_agent(folder: pathlib.Path) -> None:
    path = folder / "checkpoints" / checkpoints.MANIFEST
    path.write_text(path.read_text().replace("r2d2", "r2d2_plus"))
    learners = folder / "checkpoints" / "learner-r2d2"
    learners.rename(learners.with_name("learner-r2d2_plus"))


_REPLAY_FILE = "checkpoints/replay/7-1/0/chunks.tfrecord"
_DAMAGE = {
    "nothing": lambda f: None,
    "manifest no JSON": lambda f: (f / "checkpoints/manifest.json").write_text("{"),
    "another agent's": _of_another_agent,
    "manifest of one shard less": lambda f: _edit(
        f / "config.json", num_replay_shards=2, actors_per_node=16
    ),
    "limit reached": lambda f: _edit(f / "config.json", max_learner_steps=7),
    "learner truncated": lambda f: _truncate(_learner_files(f, "data")),
    "learner's first byte": lambda f: _flip(_learner_files(f, "data"), 0),
    "learner's index": lambda f: _flip(_learner_files(f, "index"), 40),
    "manifest missing": lambda f: (f / "checkpoints/manifest.json").unlink(),
    "replay's bit": lambda f: _flip(f / _REPLAY_FILE, 20),
    "replay truncated": lambda f: _truncate(f / _REPLAY_FILE),
    "replay missing": lambda f: (f / _REPLAY_FILE).unlink(),
    "manifest a folder": _folder_in_place_of_manifest,
    "config missing": lambda f: (f / "config.json").unlink(),
}


@pytest.mark.parametrize(
    ("damage", "argv", "said"),
    [
        ("nothing", [], "holds a run already: add --resume"),
        ("nothing", ["--agent=r2d2", "--env=catch"], "holds a run already: add --resume"),
        ("nothing", ["--resume", "--agent=r2d2_plus"], "--agent=r2d2; it cannot go on as"),
        ("nothing", ["--resume", "--env=memory:recall"], "cannot go on as --env=memory:recall"),
        ("nothing", ["--resume", "--preset=paper"], "cannot go on as --preset=paper"),
        ("nothing", ["--resume", "--num_replay_shards=2"], "cannot go on as --num_replay_shards=2"),
        (
            "nothing",
            ["--resume", "--max_actor_steps=700"],
            "reached --max_actor_steps=700: it has made 700 actor steps and 7 updates in 0.125 "
            "minutes. To go on, raise that: --resume --max_actor_steps=1400.",
        ),
        ("limit reached", ["--resume"], "--resume --max_learner_steps=14."),
        ("limit reached", ["--resume", "--resume_step=7"], "--resume --max_learner_steps=14."),
        (
            "nothing",
            ["--resume", "--max_minutes=0.125"],
            "reached --max_minutes=0.125: .* raise that: --resume --max_minutes=1.",
        ),
        (
            "limit reached",
            ["--resume", "--max_minutes=0.01"],
            "learner_steps=7 and --max_minutes=0.01: .*--max_learner_steps=14 --max_minutes=1.",
        ),
        (
            "nothing",
            ["--resume", "--until_return=1", "--evaluation_episodes=0"],
            "--until_return=1 is reached in an evaluation, and --evaluation_episodes=0 never",
        ),
        ("limit reached", ["--resume", "--max_learner_steps=3"], " --max_learner_steps=8."),
        ("nothing", ["--resume", "--r2d2.lstm_size=32"], "--r2d2.lstm_size=32 was given; the"),
        ("nothing", ["--resume", "--r2d2.hidden_sizes=8"], "other sizes.*has --r2d2.hidden_sizes="),
        ("nothing", ["--resume", "--r2d2.replay_size=500"], "--r2d2.replay_size=500: its replay"),
        ("nothing", ["--resume", "--r2d2.length=48"], "--r2d2.length=48: its replay"),
        ("nothing", ["--resume", "--r2d2.forget_bias=1"], "--r2d2.forget_bias must stay 4.0, with"),
        ("nothing", ["--resume", "--r2d2_plus.length=8"], "sets a field of 'r2d2_plus'"),
        ("another agent's", ["--resume"], "a checkpoint of 'r2d2_plus'; 'r2d2' cannot go on"),
        (
            "manifest of one shard less",
            ["--resume"],
            "replay/7-1 must have 2 shards, which end.*--resume_without_replay takes the learner",
        ),
        ("learner's first byte", ["--resume"], "learner-r2d2/7 is corrupt"),
        ("learner's index", ["--resume"], "learner-r2d2/7 is corrupt"),
        (
            "manifest missing",
            ["--resume"],
            "manifest.json is missing, although learners of r2d2.*--resume, --resume_step=7 an",
        ),
        (
            "manifest no JSON",
            ["--resume"],
            "manifest.json is corrupt.*With --resume, --resume_step=7 an earlier one that",
        ),
        ("nothing", ["--resume", "--resume_step=8"], "holds no step 8 of r2d2; there are 7."),
        ("nothing", ["--resume", f"--resume_step={10**300}"], "000 is not an integer in the range"),
        ("learner truncated", ["--resume", "--resume_step=7"], "The checkpoint is corrupt"),
        (
            "learner truncated",
            ["--resume"],
            "The checkpoint is corrupt.*No learner that was kept is whole.",
        ),
        (
            "replay's bit",
            ["--resume"],
            "replay/7-1/0/chunks.tfrecord: .*With --resume, --resume_without_replay takes",
        ),
        ("nothing", ["--resume_step=7", *NEW], "--resume_step says how a run goes on: add --res"),
        ("nothing", ["--resume_without_replay", *NEW], "replay says how a run goes on: add --res"),
        ("manifest a folder", ["--resume"], "manifest.json cannot be read: Is a directory."),
        ("config missing", ["--resume"], "holds no run"),
        ("config missing", ["--agent=r2d2", "--env=catch"], "holds a run already"),
    ],
)
def test_a_run_that_cannot_go_on_is_refused(
    damage: str, argv: list[str], said: str, saved: pathlib.Path, started: list[settings.Settings]
) -> None:
    _DAMAGE[damage](saved)
    before = typed.contents(saved)
    told = typed.refused(train.main, f"--run_dir={saved}", *argv)
    assert re.search(said, told), told
    assert typed.contents(saved) == before
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
    damage: str, flag: str, saved: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _DAMAGE[damage](saved)
    begun: list[checkpoints.Manifests] = []

    def run(_: settings.Settings, manifests: checkpoints.Manifests, *others: object) -> int:
        begun.append(manifests)
        return 0

    monkeypatch.setattr(supervisor, "run", run)
    assert typed.run(train.main, f"--run_dir={saved}", "--resume", flag) == 0
    (manifest,) = begun[0].values()
    assert (manifest.learner_step, manifest.actor_steps, manifest.walltime) == (7, 700, 7.5)
    assert (manifest.replay, manifest.replay_items) == (None, 0)
    (launch,) = launches.read(saved)
    assert (launch.actor_steps, launch.walltime) == (700, 7.5)


_POWER_CUTS = [  # files of a run that was saved at updates 7, 9 and 11, and what is offered
    ({"11.data": "empty"}, ["--resume_step=9"]),
    ({"11.index": "empty", "9.data": "zeros"}, ["--resume_step=7"]),
    ({"9.index": "zeros", "manifest.json": "empty"}, ["--resume_step=11"]),
    ({"manifest.json": "zeros", "manifest-11.json": "zeros"}, ["--resume_step=9"]),
    ({"7.data": "zeros", "9.data": "gone", "11.data": "empty"}, []),
]


@pytest.mark.parametrize(("damage", "offered"), _POWER_CUTS)
def test_only_what_checks_out_is_offered(
    damage: dict[str, str],
    offered: list[str],
    tmp_path: pathlib.Path,
    started: list[settings.Settings],
) -> None:
    folder = tmp_path / "run"
    saved_runs.save(folder, steps=(7, 9, 11))
    for name, kind in damage.items():
        (path,) = (folder / "checkpoints").rglob(f"{name}*")
        size = path.stat().st_size
        path.unlink()
        if kind != "gone":
            path.write_bytes(bytes(size if kind == "zeros" else 0))
    for flags in (["--resume"], ["--resume", "--resume_without_replay"]):
        said = typed.refused(train.main, f"--run_dir={folder}", *flags)
        assert re.findall(r"--resume_\w+(?:=\d+)?", said) == offered
    for flag in offered:
        assert typed.run(train.main, f"--run_dir={folder}", "--resume", flag) == 0
    assert len(started) == len(offered)


@pytest.mark.parametrize("argv", [["--resume"], list(NEW)])
def test_a_folder_that_cannot_be_written_is_refused_and_loses_nothing(
    argv: list[str],
    saved: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    started: list[settings.Settings],
) -> None:
    folder = saved if "--resume" in argv else saved.parent / "new"
    before = typed.contents(folder)

    def fail(path: pathlib.Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(disk, "write", fail)
    said = typed.refused(train.main, f"--run_dir={folder}", *argv)
    assert said.startswith(str(folder))
    assert said.endswith(" cannot be written: No space left on device.")
    assert {n: c for n, c in typed.contents(folder).items() if not n.endswith("lock")} == before
    assert not started


def test_what_is_played_is_tried_in_a_process_of_its_own_before_it_is_made_here(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IMPALA's Config is another one where actions are vectors, which only making it tells."""
    monkeypatch.setattr(gym, "_known", known := dict[str, object]())
    saved_runs.save(tmp_path / "run", "impala")
    _edit(tmp_path / "run" / "config.json", env="os:abort")
    assert typed.run(train.main, f"--run_dir={tmp_path / 'run'}", "--resume") == 2
    assert known["os:abort"] == "'os:abort' ended its process, with code -6, when it was tried."
