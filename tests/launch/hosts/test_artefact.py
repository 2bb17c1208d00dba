"""A program as files: its pools, its pickled nodes, the project's sources and nothing else."""

import json
import os
import pathlib
import stat
from typing import Any

import pytest

from courier import credentials
from launch.graph.program import make_program
from launch.hosts import artefact, job
from run_folder import settings
from tests.run_folder import saved_runs


def _run(tmp_path: pathlib.Path, **given: Any) -> settings.Settings:
    values: dict[str, Any] = dict(run_dir=str(tmp_path / "run"), num_actors=4, actors_per_node=2)
    return saved_runs.resolve(**values | given)


def _shape(tmp_path: pathlib.Path, **given: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    pools = artefact.pools(make_program(_run(tmp_path, **given), {}))
    return [(pool.name, pool.kind, pool.labels) for pool in pools]


def test_nodes_share_pools_by_the_hosts_they_need(tmp_path: pathlib.Path) -> None:
    actors = ("coordinator/0", "actor/0", "actor/1", "evaluator/0")
    assert _shape(tmp_path) == [
        ("workerpool0", "replay", ("replay/0",)),
        ("workerpool1", "learner", ("learner/0",)),
        ("workerpool2", "actor", actors),
    ]
    assert _shape(tmp_path, num_replay_shards=2) == [
        ("workerpool0", "learner", ("learner/0",)),
        ("workerpool1", "replay", ("replay/0", "replay/1")),
        ("workerpool2", "actor", actors),
    ]


def test_the_first_pool_has_one_node_where_each_kind_has_several(tmp_path: pathlib.Path) -> None:
    several = dict(agent="r2d2,impala", num_replay_shards=2, evaluation_episodes=0)
    assert _shape(tmp_path, **several) == [
        ("workerpool0", "replay", ("replay/0",)),
        ("workerpool1", "replay", ("replay/1",)),
        ("workerpool2", "actor", ("coordinator/0", "actor/0", "actor/1")),
        ("workerpool3", "learner", ("learner/0", "learner/1")),
    ]


def test_only_the_projects_own_modules_and_tables_are_shipped(tmp_path: pathlib.Path) -> None:
    own = ("launch/node.py", "environments/data/atari57.csv", "r2d2/learner.py")
    others = (".venv/x.py", "runs/pong/logs/actor.csv", "tests/x.py", "launch/BUILD", "x.py")
    for name in (*own, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(file) for file in artefact.source_files(tmp_path)] == [
        "environments/data/atari57.csv",
        "launch/node.py",
        "r2d2/learner.py",
        "recurrent_replay.py",
    ]


def test_a_written_pools_nodes_find_addresses_in_the_environment(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "job"
    written = artefact.write(_run(tmp_path, num_replay_shards=2), {}, folder)
    sources = {str(file) for file in artefact.source_files()}
    assert {"launch/hosts/artefact.py", "environments/data/atari57.csv"} <= sources
    for pool in written:
        files = (folder / pool.name).rglob("*")
        shipped = {str(f.relative_to(folder / pool.name)) for f in files if f.is_file()}
        assert shipped == sources | {"job.pkl", "pool.json", "secret"}
    addresses = {
        "workerpool0": ["10.0.0.3:2222"],
        "workerpool1": ["10.0.0.1:2222", "10.0.0.2:2223"],
        "workerpool2": [f"10.0.0.{i}:2222" for i in range(4, 8)],
    }
    monkeypatch.setenv("CLUSTER_SPEC", json.dumps({"cluster": addresses}))
    read = job.read(folder)
    assert list(read) == [pool.name for pool in written]
    for pool in written:
        found = read[pool.name]
        assert (found.kind, found.labels) == (pool.kind, list(pool.labels))
        assert found.run_dir == str(tmp_path / "run")
        nodes = [found.node(index).__self__ for index in range(len(pool.nodes))]  # type: ignore[attr-defined]
        for label, node, address in zip(found.labels, nodes, addresses[pool.name], strict=True):
            own = [] if label.startswith(("actor", "evaluator")) else [address]  # servers have one
            assert [each.resolve() for each in node.addresses] == own


def test_a_job_is_its_writers_alone(tmp_path: pathlib.Path) -> None:
    """The umask does not matter: many systems let a user's group write."""
    before = os.umask(0o002)
    try:
        artefact.write(_run(tmp_path), {}, tmp_path / "job")
    finally:
        os.umask(before)
    for pool in job.read(tmp_path / "job").values():
        assert stat.S_IMODE(pool.path.stat().st_mode) == 0o700
        for name in ("job.pkl", "secret"):
            assert stat.S_IMODE((pool.path / name).stat().st_mode) == 0o600
        pool.check()
        assert pool.secret() == credentials.secret()


@pytest.mark.parametrize("name", ["job.pkl", "secret", "."])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_can_write_is_not_loaded(name: str, mode: int, tmp_path: pathlib.Path) -> None:
    artefact.write(_run(tmp_path), {}, tmp_path / "job")
    pool = job.read(tmp_path / "job")["workerpool0"]
    file = pool.path / name
    file.chmod(0o700 | mode)
    with pytest.raises(job.JobError, match=f"can be written by others .*: chmod go-w {file}"):
        pool.check()


def test_another_users_job_is_not_loaded(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artefact.write(_run(tmp_path), {}, tmp_path / "job")
    owner, reader = 12345, 23456
    status = os.stat_result((0o100600, 0, 0, 1, owner, owner, 0, 0, 0, 0))
    monkeypatch.setattr(pathlib.Path, "stat", lambda path, **_: status)
    monkeypatch.setattr(os, "geteuid", lambda: reader)
    pool = job.PoolFolder(tmp_path / "job" / "workerpool0", "replay", "/run", ["replay/0"])
    with pytest.raises(job.JobError, match="belongs to user 12345, and user 23456 does not load"):
        pool.check()
    monkeypatch.setattr(os, "geteuid", lambda: owner)
    pool.check()


def test_a_relative_run_folder_is_where_it_was_meant(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    artefact.write(_run(tmp_path, run_dir="runs/catch"), {}, tmp_path / "job")
    assert {pool.run_dir for pool in job.read(tmp_path / "job").values()} == {
        str(tmp_path / "runs/catch")
    }
    learner: Any = job.read(tmp_path / "job")["workerpool1"].node(0)
    assert learner.__self__._args[0].run_dir == str(tmp_path / "runs/catch")


def test_what_cannot_be_written_is_refused(tmp_path: pathlib.Path) -> None:
    run = _run(tmp_path)
    artefact.check(run, tmp_path / "job")
    (tmp_path / "job").mkdir()
    artefact.check(run, tmp_path / "job")
    (tmp_path / "job/file").touch()
    with pytest.raises(settings.SettingsError, match="exists already"):
        artefact.check(run, tmp_path / "job")
    with pytest.raises(settings.SettingsError, match="colocate_learners"):
        artefact.check(_run(tmp_path, colocate_learners=True), tmp_path / "new")
    with pytest.raises(job.JobError, match="holds no job: there is no"):
        job.read(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"kind": "actor", "run_dir": "x"}', '{"labels": 5}']
)
def test_a_damaged_pool_is_refused_by_its_name(tmp_path: pathlib.Path, text: str) -> None:
    file = tmp_path / job.POOL_NAMES[0] / job.POOL_FILE
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(job.JobError, match=r"pool\.json cannot be read: it must say kind, run_dir"):
        job.read(tmp_path)
