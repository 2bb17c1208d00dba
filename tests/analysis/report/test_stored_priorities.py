"""Priorities are read from what Reverb itself writes."""

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import reverb

from analysis.report import stored_priorities
from run_folder import checkpoints

PRIORITIES = {"r2d2": [0.5, 0.0, 2.0], "popart": [1.0]}


def _server(folder: pathlib.Path) -> reverb.Server:
    return reverb.Server(
        [
            reverb.Table(
                name,
                sampler=reverb.selectors.Prioritized(0.9),
                remover=reverb.selectors.Fifo(),
                max_size=10,
                rate_limiter=reverb.rate_limiters.MinSize(1),
            )
            for name in PRIORITIES
        ],
        checkpointer=reverb.checkpointers.DefaultCheckpointer(str(folder)),
    )


def _save_shard(folder: pathlib.Path, staging: pathlib.Path) -> None:
    server = _server(staging)
    client = server.localhost_client()
    for table, priorities in PRIORITIES.items():
        for priority in priorities:
            client.insert([np.zeros(3)], {table: priority})
    assert len(list(client.sample("popart", num_samples=4))) == 4
    pathlib.Path(client.checkpoint()).rename(folder)
    server.stop()


def _publish(folder: pathlib.Path, replay: str | None) -> None:
    manifest: dict[str, Any] = {f.name: 0 for f in dataclasses.fields(checkpoints.Manifest)}
    prefix = "learner-r2d2/3"
    sizes = {f"{prefix}.index": 1, f"{prefix}.data": 1}
    (folder / prefix).parent.mkdir(exist_ok=True)
    for name in sizes:
        (folder / name).write_text("x")
    manifest |= dict(agent="r2d2", learner_step=3, learner=prefix, replay=replay, sizes=sizes)
    (folder / checkpoints.MANIFEST).write_text(json.dumps(manifest))


def test_every_item_of_every_shard_is_found(tmp_path: pathlib.Path) -> None:
    (tmp_path / "replay/3-1").mkdir(parents=True)
    for shard in ("0", "1"):
        _save_shard(tmp_path / "replay/3-1" / shard, tmp_path / f"staging-{shard}")
    _publish(tmp_path, "replay/3-1")
    found = stored_priorities.read(tmp_path)
    assert set(found) == set(PRIORITIES)
    for table, priorities in PRIORITIES.items():
        assert sorted(found[table].priority) == sorted(2 * priorities)
    assert found["r2d2"].times_sampled.tolist() == [0] * 6
    assert found["popart"].times_sampled.tolist() == [4, 4]


def test_where_no_replay_was_saved_there_is_nothing(tmp_path: pathlib.Path) -> None:
    assert stored_priorities.read(tmp_path) == {}
    _publish(tmp_path, None)
    assert stored_priorities.read(tmp_path) == {}


def test_what_is_gone_before_it_is_read_is_nothing(tmp_path: pathlib.Path) -> None:
    """The run goes on, and saves again, while it is reported."""
    _publish(tmp_path, "replay/3-1")
    (tmp_path / "replay/3-1/0").mkdir(parents=True)
    (tmp_path / "replay/3-1/0/items.tfrecord").write_bytes(b"cut short")
    assert stored_priorities.read(tmp_path) == {}
    _publish(tmp_path, "replay/gone")
    assert stored_priorities.read(tmp_path) == {}
