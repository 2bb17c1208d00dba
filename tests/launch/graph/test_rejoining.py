"""A node begins as its job says, and is started again with what its run has saved since."""

import pathlib
from typing import Any

import pytest
import reverb

from launch.graph import process, program, rejoining
from launch.graph.rejoining import Origin
from run_folder import checkpoints, saver, settings
from run_folder.checkpoints import Manifest
from tests.run_folder import saved_runs
from tests.run_folder.saving import COUNTS, Place, save_all

SMALL = {"lstm_size": "8", "min_replay_size": "1", "samples_per_insert": "none"}


def _run(folder: pathlib.Path, agent: str = "r2d2") -> settings.Settings:
    run = saved_runs.resolve(agent, SMALL, run_dir=str(folder), num_replay_shards=2)
    run.folder.checkpoints.mkdir(exist_ok=True)
    return run


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes this process's node one that was started before."""
    monkeypatch.setattr(rejoining, "_rejoins", False)
    return rejoining.rejoin


def _begins_with(
    origin: Origin, run: settings.Settings
) -> tuple[list[Manifest | None], str | None]:
    """Each learner's checkpoint, and the shards' replay."""
    return [origin.of_learner(run, name) for name in run.agents], origin.of_replay(run)


def test_each_learner_goes_on_from_its_own_newest_checkpoint(
    tmp_path: pathlib.Path, again: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path, "r2d2,impala")
    origin, place = Origin.of(run, {}), Place(run.folder.checkpoints)
    of_r2d2 = save_all(place.saver, 3, COUNTS)
    of_impala = place.new_saver(None, "impala").save(7, COUNTS)
    assert _begins_with(origin, run) == ([None, None], None)
    assert capsys.readouterr().out == ""
    again()
    found, replay = _begins_with(origin, run)
    assert [manifest and manifest.learner for manifest in found] == [
        "learner-r2d2/3",
        "learner-impala/7",
    ]
    assert (of_r2d2.replay, of_impala.replay) == (replay, None)
    assert capsys.readouterr().out.splitlines() == [
        "Started again: the learner of r2d2 goes on from update 3.",
        "Started again: the learner of impala goes on from update 7.",
        f"Started again: replay goes on from {replay}.",
    ]


def test_what_was_never_saved_begins_anew(
    tmp_path: pathlib.Path, again: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    origin = Origin.of(run, {})
    again()
    assert _begins_with(origin, run) == ([None], None)
    said = "Started again: replay was not saved yet, is empty."
    assert said in capsys.readouterr().out


def test_a_newer_checkpoint_that_the_job_left_behind_stays_behind(
    tmp_path: pathlib.Path, again: Any
) -> None:
    """A job written with --resume_step leaves the old manifest in place until the next save."""
    run, place = _run(tmp_path), Place(tmp_path / "checkpoints")
    earlier = checkpoints.without_replay(place.saver.save(3, COUNTS))
    save_all(place.saver, 9, COUNTS)
    origin = Origin.of(run, {"r2d2": earlier})
    again()
    assert _begins_with(origin, run) == ([earlier], None)
    saved = place.new_saver(earlier).save(4, COUNTS)
    found, replay = _begins_with(origin, run)
    assert found == [checkpoints.parse(run.folder.checkpoints)]
    assert (found[0] and found[0].learner_step, replay) == (saved.learner_step, None)


def test_a_manifest_that_cannot_be_read_is_none_that_was_not_there(
    tmp_path: pathlib.Path, again: Any
) -> None:
    run = _run(tmp_path)
    origin = Origin.of(run, {})
    again()
    (run.folder.checkpoints / checkpoints.MANIFEST).mkdir()
    with pytest.raises(OSError, match="manifest"):
        origin.of_replay(run)


def test_a_shard_comes_back_with_its_own_part_of_the_newest_replay(
    tmp_path: pathlib.Path, again: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "enter", lambda *_: None)
    run = _run(tmp_path)
    origin = Origin.of(run, {})

    def serve() -> list[reverb.Server]:
        tables = [[reverb.Table.queue("queue", max_size=10)] for _ in range(2)]
        return [
            reverb.Server(made, checkpointer=program.replay_checkpointer(run, origin, shard))
            for shard, made in enumerate(tables)
        ]

    def held(servers: list[reverb.Server]) -> list[int]:
        infos = [server.localhost_client().server_info() for server in servers]
        return [info["queue"].current_size for info in infos]

    servers = serve()
    clients = [server.localhost_client() for server in servers]

    def write(prefix: str) -> str:
        for ending in ("index", "data"):
            pathlib.Path(f"{prefix}.{ending}").touch()
        return prefix

    writer = saver.Saver(run.folder.checkpoints, "r2d2", write, clients, 1, None)
    for shard, count in enumerate((1, 3)):
        for value in range(count):
            clients[shard].insert([float(value)], {"queue": 1.0})
    save_all(writer, 1, COUNTS)
    for client in clients:
        client.insert([9.0], {"queue": 1.0})
    assert held(servers) == [2, 4]
    for server in servers:
        server.stop()

    again()
    servers = serve()
    assert held(servers) == [1, 3]
    for server in servers:
        server.stop()


@pytest.mark.parametrize("left", ["", "\0\0", "{"])
def test_a_coordinator_whose_progress_a_power_cut_took_begins_as_its_job_did(
    left: str, tmp_path: pathlib.Path, again: Any
) -> None:
    progress, log = tmp_path / "nodes" / "progress.json", tmp_path / "logs" / "actor.csv"
    for file, text in ((progress, left), (log, f"actor_steps\n100\n200\n{left}")):
        file.parent.mkdir()
        file.write_text(text)

    def last() -> Any:
        return rejoining.last_progress(tmp_path, ("actor",), {"actor_steps": 100.0})

    assert last() is None
    assert log.read_text() == f"actor_steps\n100\n200\n{left}"
    again()
    assert last() is None
    assert log.read_text() == "actor_steps\n100\n"
