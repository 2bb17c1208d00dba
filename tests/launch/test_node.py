"""A process of a job: which node it runs, when it ends, and with which code."""

import json
import os
import pathlib
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from absl import flags
from absl.testing import flagsaver

from courier import credentials
from launch import command_line, node
from launch.graph import process, rejoining
from launch.graph.servers import StoppedError
from launch.hosts import job
from launch.local import supervisor
from run_folder import disk, run_lock
from run_folder.settings import SettingsError
from tests.patience import PATIENCE
from tests.run_folder import saved_runs

STOP = threading.Event()
RAN: list[str] = []
MEANWHILE: list[Callable[[], None]] = []
END_WITH_RUN = node._end_with_run  # which would end this process too


class Manager:
    """Stands for Launchpad's, which would take over this process's signals."""

    def __init__(self, register_in_thread: bool) -> None:
        assert register_in_thread

    def stop_event(self) -> threading.Event:
        return STOP


def ends() -> None:
    RAN.append(os.environ.get("CUDA_VISIBLE_DEVICES", "any"))


def is_stopped() -> None:
    for call in MEANWHILE:
        call()
    STOP.set()
    raise StoppedError("Asked to end.")


def fails() -> None:
    raise ValueError("a crash")


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """A job of two pools; its run folder is ready."""
    pools = {"workerpool0": ["learner/0"], "workerpool1": ["actor/0", "actor/1", "actor/2"]}
    nodes: dict[str, list[Callable[[], None]]] = {
        "workerpool0": [ends],
        "workerpool1": [ends, is_stopped, fails],
    }
    for name, labels in pools.items():
        pool = tmp_path / "job" / name
        pool.mkdir(parents=True)
        facts = dict(kind="any", run_dir=str(tmp_path / "run"), labels=labels)
        (pool / job.POOL_FILE).write_text(json.dumps(facts))
        (pool / job.NODES_FILE).write_bytes(pickle.dumps(nodes[name]))
        (pool / job.SECRET_FILE).write_text("known to all")
    (tmp_path / "run" / "nodes").mkdir(parents=True)
    (tmp_path / "run" / "config.json").touch()
    monkeypatch.setattr(rejoining, "_rejoins", False)
    for name in ("_secret", "_tls"):
        monkeypatch.setattr(credentials, name, getattr(credentials, name))
    monkeypatch.setattr(node.worker_manager, "WorkerManager", Manager)
    monkeypatch.setattr(node, "_end_with_run", lambda run_dir, stop: None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    STOP.clear()
    RAN.clear()
    MEANWHILE.clear()
    with flagsaver.flagsaver():
        yield tmp_path / "job"
    flags.FLAGS.mark_as_parsed()  # for other tests


def _run(folder: pathlib.Path, pool: str, index: int, *flags_: str) -> int:
    """The exit code of a process that is told it is this node."""
    addresses = {"workerpool0": ["a:1"], "workerpool1": ["b:1", "b:2", "c:1"]}
    spec = {"cluster": addresses, "task": {"type": pool, "index": index}}
    os.environ["CLUSTER_SPEC"] = json.dumps(spec)
    flags.FLAGS.unparse_flags()
    try:
        node.main(command_line.parse_flags(["node", f"--job={folder}", *flags_]))
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0


def _finish(folder: pathlib.Path) -> None:
    progress = folder.parent / "run" / "nodes" / "progress.json"
    disk.write(progress, json.dumps({"state": "finished"}))


def test_the_node_that_is_named_runs_with_its_groups_environment(folder: pathlib.Path) -> None:
    assert _run(folder, "workerpool1", 0) == 0
    assert RAN == ["-1"]
    assert os.environ["no_grpc_proxy"] == "a,b,c"  # noqa: SIM112
    os.environ.pop("CUDA_VISIBLE_DEVICES")
    assert _run(folder, "workerpool0", 0) == 0
    assert RAN == ["-1", "any"]


def test_the_exit_code_says_whether_the_run_has_ended(folder: pathlib.Path) -> None:
    assert _run(folder, "workerpool1", 1) == process.TERMINATED
    MEANWHILE.append(lambda: _finish(folder))
    assert _run(folder, "workerpool1", 1) == 0


def test_it_knows_its_jobs_secret_and_the_files_of_tls(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tls = folder.parent / "tls"
    for name in ("certificate", "key", "authority"):
        assert _run(folder, "workerpool1", 0, f"--tls={tls}") == 2
        assert f"{tls}/{name}.pem cannot be read: No such file" in capsys.readouterr().err
        tls.mkdir(exist_ok=True)
        (tls / f"{name}.pem").write_text(name)
    assert _run(folder, "workerpool1", 0, f"--tls={tls}") == 0
    assert credentials.secret() == "known to all"
    assert credentials.tls() == (b"certificate", b"key", b"authority")


def test_a_job_without_a_secret_is_written_again(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "workerpool1" / job.SECRET_FILE).unlink()
    assert _run(folder, "workerpool1", 0) == 2
    assert "workerpool1/secret is not there: write the job again" in capsys.readouterr().err


def test_a_crash_is_not_hidden(folder: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="a crash"):
        _run(folder, "workerpool1", 2)


def test_a_node_that_remembers_rejoins_when_it_is_started_again(folder: pathlib.Path) -> None:
    rejoined = []
    for pool in ("workerpool1", "workerpool1", "workerpool0", "workerpool0"):
        assert _run(folder, pool, 0) == 0
        rejoined.append(rejoining._rejoins)
    assert rejoined == [False, False, False, True]
    assert len(RAN) == 4


def test_one_node_holds_the_run_folders_lock(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(node, "_LOCKS", "learner/0")
    taken: list[pathlib.Path] = []
    monkeypatch.setattr(run_lock, "take", taken.append)
    assert [_run(folder, pool, 0) for pool in ("workerpool1", "workerpool0")] == [0, 0]
    assert taken == [folder.parent / "run"]

    def refuse(run_dir: pathlib.Path) -> None:
        raise SettingsError(f"{run_dir} is being run by another.")

    monkeypatch.setattr(run_lock, "take", refuse)
    assert _run(folder, "workerpool0", 0) == 2
    assert "is being run by another" in capsys.readouterr().err
    assert len(RAN) == 2


def test_a_node_that_remembers_needs_the_run_folder(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "run" / "config.json").unlink()
    assert _run(folder, "workerpool1", 0) == 0
    assert _run(folder, "workerpool0", 0) == 2
    assert len(RAN) == 1
    assert "must be on a file system that all hosts share" in capsys.readouterr().err


def test_a_new_launch_lets_all_be_started(folder: pathlib.Path) -> None:
    run_dir = folder.parent / "run"
    assert not node.was_started(str(run_dir), "replay/1")
    assert not node.was_started(str(run_dir), "replay/0")
    assert node.was_started(str(run_dir), "replay/1")
    supervisor.begin(saved_runs.resolve(run_dir=str(run_dir)))
    assert not node.was_started(str(run_dir), "replay/1")


def test_nothing_is_started_in_a_run_that_has_ended(folder: pathlib.Path) -> None:
    _finish(folder)
    assert [_run(folder, "workerpool0", 0) for _ in range(2)] == [0, 0]
    assert RAN == []


def test_the_end_of_the_run_ends_the_process(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended = [], threading.Event()
    monkeypatch.setattr(node, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(node, "END_SECONDS", 0.0)
    monkeypatch.setattr(os, "kill", lambda pid, number: asked.append((pid, number)))
    monkeypatch.setattr(os, "_exit", lambda code: ended.set() if code == 0 else None)
    watch = threading.Thread(
        target=END_WITH_RUN, args=(str(folder.parent / "run"), threading.Event())
    )
    watch.start()
    progress = folder.parent / "run" / "nodes" / "progress.json"
    progress.write_text('{"state": "fini')  # as a bucket or a network's disk may show it
    time.sleep(0.05)
    assert not asked
    _finish(folder)
    assert ended.wait(PATIENCE)
    watch.join()
    assert asked == [(os.getpid(), signal.SIGTERM)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "--job must be given"), (["--job=nowhere"], "--job=nowhere holds no job")],
)
def test_what_cannot_be_run_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags.FLAGS.unparse_flags()
    with pytest.raises(SystemExit) as exit_:
        node.main(command_line.parse_flags(["node", *arguments]))
    assert exit_.value.code == 2
    assert said in capsys.readouterr().err
