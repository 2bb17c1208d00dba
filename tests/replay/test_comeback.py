"""Replay servers that are killed and come back on their ports: writers and the reader go on."""

import pathlib
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import portpicker
import pytest
import reverb

from replay import dataset, tables
from replay.insistence import ASK_SECONDS, Watch
from replay.priorities import PriorityUpdater
from replay.writer import SequenceWriter, WriterStopped
from tests.patience import wait_for
from tests.replay.shard_process import BLOCKS, TABLE, ShardProcess
from tests.replay.streams import CORE_STATE, environment_spec, step_types, stream


class Clients:
    """A writer for each of two shards, and one learner that reads both, all in threads."""

    def __init__(self, addresses: list[str]) -> None:
        self.replays = [reverb.Client(address) for address in addresses]
        self.rows, self.batches = [0, 0], 0
        self.errors: list[Exception] = []
        self._stop = threading.Event()
        self._threads = [
            *(threading.Thread(target=self._guard, args=(self._write, shard)) for shard in (0, 1)),
            threading.Thread(target=self._guard, args=(self._learn, addresses), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def go_on(self, batches: int = 20, rows: int = 30) -> bool:
        """Whether the learner has so many more batches, and each writer rows, in time."""
        before, learned = list(self.rows), self.batches

        def find() -> bool:
            written = min(now - then for now, then in zip(self.rows, before, strict=True))
            went_on = written >= rows and self.batches >= learned + batches
            return went_on or bool(self.errors)

        wait_for(find, lambda: (self.rows, self.batches))
        return not self.errors

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads[:2]:
            thread.join()

    def _guard(self, target: Callable[..., None], *args: object) -> None:
        try:
            target(*args)
        except WriterStopped:
            pass
        except Exception as error:
            self.errors.append(error)

    def _write(self, shard: int) -> None:
        number = np.arange(1)
        writer = SequenceWriter(
            self.replays[shard],
            [TABLE],
            blocks=BLOCKS,
            actors=number,
            tasks=number,
            agent=0,
            should_stop=self._stop.is_set,
        )
        types = np.asarray([step_types([9] * 10, 100)], np.uint8)
        rows = stream(np.random.default_rng(shard), types)
        while not self._stop.is_set():
            row = rows[self.rows[shard] % len(rows)]
            writer.append(
                row.step,
                core_state=row.core_state,
                values=row.values,
                learner_step=row.learner_step,
            )
            self.rows[shard] += 1

    def _learn(self, addresses: list[str]) -> None:
        batches = dataset.make_dataset(
            addresses, [TABLE], environment_spec(), CORE_STATE, BLOCKS, [4]
        )
        updater = PriorityUpdater(self.replays, TABLE.name)
        for batch in batches:
            updater.update(batch.shard.numpy(), batch.key.numpy(), np.ones(4))
            self.batches += 1
            if self._stop.is_set():
                return


@pytest.fixture
def ports() -> list[int]:
    return [portpicker.pick_unused_port() for _ in range(2)]


@pytest.fixture
def shards(ports: list[int], tmp_path: pathlib.Path) -> Iterator[list[ShardProcess]]:
    """Two servers; whoever replaces one in the list leaves the new one to be ended."""
    shards = [ShardProcess(port, tmp_path / str(i)) for i, port in enumerate(ports)]
    yield shards
    for shard in shards:
        shard.kill()


def test_writers_and_the_reader_go_on_when_killed_servers_are_back(
    shards: list[ShardProcess], ports: list[int], tmp_path: pathlib.Path
) -> None:
    """One comes back with what it had saved, the other, which never saved, comes back empty."""
    clients = Clients([f"localhost:{port}" for port in ports])  # before there is a server
    assert tables.num_items(clients.replays) >= 0  # as soon as there is one
    assert clients.go_on(), clients.errors
    saved = clients.replays[0].checkpoint()
    held = clients.replays[0].server_info()[TABLE.name].current_size
    for shard in shards:
        shard.kill()
    time.sleep(1.0)
    assert not clients.errors
    before = list(clients.rows), clients.batches

    for i, replay in enumerate((saved, "")):
        shards[i] = ShardProcess(ports[i], tmp_path / str(i), replay)
    assert clients.go_on(), clients.errors
    for i in (0, 1):
        assert clients.rows[i] > before[0][i]
    info = clients.replays[0].server_info()[TABLE.name]
    assert info.rate_limiter_info.insert_stats.completed > held
    clients.stop()
    assert not clients.errors


def test_who_waits_for_a_server_that_is_away_says_so_now_and_then(
    ports: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now, sleep=lambda _: None)
    monkeypatch.setattr("replay.insistence.time", clock)
    watch = Watch([reverb.Client(f"localhost:{ports[0]}")])
    watch.wait()
    watch.wait()
    assert capsys.readouterr().out == ""
    now = ASK_SECONDS
    watch.wait()
    watch.wait()
    (said,) = capsys.readouterr().out.splitlines()
    assert said.startswith(f"Replay at localhost:{ports[0]} does not answer (")
    watch.over()
    watch.wait()
    assert capsys.readouterr().out == ""
