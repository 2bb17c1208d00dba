"""CLUSTER_SPEC as it is written is what is read; what is wrong with it is said in a sentence."""

import json
import pathlib
from typing import Any

import pytest

from launch import cluster
from launch.hosts import cluster_spec, job
from launch.hosts.job import JobError
from tests.launch import typed

POOLS = {
    "workerpool0": ["learner/0"],
    "workerpool1": ["replay/0", "replay/1"],
    "workerpool2": ["coordinator/0", "actor/0"],
}
HOSTS = ["a", "b", "c", "b", "b"]


def _write(**changed: Any) -> dict[str, Any]:
    return cluster_spec.write(**{**dict(pools=POOLS, hosts=HOSTS, port=2222, rank=0), **changed})


def test_every_process_has_a_port_of_its_own_on_its_host() -> None:
    assert _write()["cluster"] == {
        "workerpool0": ["a:2222"],
        "workerpool1": ["b:2222", "c:2222"],
        "workerpool2": ["b:2223", "b:2224"],
    }
    assert _write(port=65533)["cluster"]["workerpool2"] == ["b:65534", "b:65535"]  # the last


@pytest.mark.parametrize(
    ("rank", "pool", "index", "address"),
    [
        (0, "workerpool0", 0, "a:2222"),
        (1, "workerpool1", 0, "b:2222"),
        (2, "workerpool1", 1, "c:2222"),
        (4, "workerpool2", 1, "b:2224"),
    ],
)
def test_a_process_reads_the_place_that_was_written_for_its_rank(
    rank: int, pool: str, index: int, address: str
) -> None:
    written = _write(rank=rank)
    place = cluster_spec.read({"CLUSTER_SPEC": json.dumps(written)}, POOLS)
    assert (place.pool, place.index, place.address) == (pool, index, address)
    assert place.addresses == written["cluster"]


def test_a_host_may_hold_its_own_pool_alone() -> None:
    pools = {"workerpool1": POOLS["workerpool1"]}
    place = cluster_spec.read({"CLUSTER_SPEC": json.dumps(_write(rank=2))}, pools)
    assert (place.pool, place.index) == ("workerpool1", 1)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (dict(hosts=["a", "b"]), r"5 processes \(learner/0, .*actor/0\).* got 2"),
        (dict(hosts=["a", "b", "", "d", "e"]), "got 4"),
        (dict(hosts=[*HOSTS, "f"]), "got 6"),
        (dict(rank=5), "between 0 and 4, got 5"),
        (dict(rank=-1), "between 0 and 4, got -1"),
        (dict(port=0), "--port=0"),
        (dict(port=65534), "--port=65534 leads to ports up to 65536"),
    ],
)
def test_what_cannot_be_written_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError, match=said):
        _write(**changed)


def _said(text: str | None) -> str:
    environment = {} if text is None else {"CLUSTER_SPEC": text}
    with pytest.raises(JobError) as error:
        cluster_spec.read(environment, POOLS)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "-m launch.cluster writes it"),
        ("", "-m launch.cluster writes it"),
        ("{nonsense", "got {nonsense: JSONDecodeError('Expecting property name"),
        ("[" * 100_000, "got [[["),
        ("9" * 5_000, "got 999"),
        ("null", "got null: "),
        ('{"cluster": {}}', "KeyError('task')"),
        ('{"cluster": {}, "task": "worker"}', "got "),
        ("\udcff", "got "),
    ],
)
def test_what_is_wrong_in_the_environment_is_quoted(text: str | None, said: str) -> None:
    assert said in _said(text)
    assert len(_said(text)) < 900


@pytest.mark.parametrize(
    ("path", "values", "said"),
    [
        (("task", "type"), ["workerpool7", 7], "but there is workerpool0, "),
        (("task", "index"), [-1, 1, 10**30], "of workerpool0, but the job's nodes are 1, from 0: "),
        (("task", "index"), ["", "a", "0.0", None, [0], {}], "CLUSTER_SPEC must be "),
        (("cluster",), [[], "a:1", None, 1], "CLUSTER_SPEC must be "),
        (("cluster", "workerpool0"), [["a:1", "z:2"]], "2 addresses of workerpool0, but the job's"),
        (("cluster", "workerpool0"), [[]], "0 addresses of workerpool0, but the job's nodes there"),
        (("cluster", "workerpool0", 0), [7, None, []], "CLUSTER_SPEC must be "),
        (
            ("cluster", "workerpool0", 0),
            ["a", "a:", ":1", "a:0", "a:65536", "a:-1", "a:x", "a b:1"],
            " is no address with a port from 1 to 65535",
        ),
        (("cluster", "workerpool0", 0), ["b:2222"], "'b:2222' is the address of two nodes"),
    ],
)
def test_a_place_that_is_none_of_the_jobs_is_named(
    path: tuple[str | int, ...], values: list[Any], said: str
) -> None:
    for value in values:
        written: Any = _write()
        *way, last = path
        part = written
        for name in way:
            part = part[name]
        part[last] = value
        assert said in _said(json.dumps(written)), value


def test_a_pool_of_the_job_that_is_missing_is_named() -> None:
    written = _write()
    del written["cluster"]["workerpool2"]
    assert "0 addresses of workerpool2, but the job's nodes there" in _said(json.dumps(written))


def test_a_schedulers_index_may_be_text() -> None:
    written = _write()
    written["task"] |= {"index": "0", "trial": ""}
    assert cluster_spec.read({"CLUSTER_SPEC": json.dumps(written)}, POOLS).index == 0


def test_a_job_in_the_home_folder_is_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    pool = tmp_path / "job" / job.POOL_NAMES[0]
    pool.mkdir(parents=True)
    facts = dict(kind="actor", run_dir="run", labels=["actor/0"])
    (pool / job.POOL_FILE).write_text(json.dumps(facts))
    assert typed.run(cluster.main, "--job=~/job", "--hosts=x") == 0
    assert capsys.readouterr().out.split() == ["0", "actor/0", "x:2222"]
