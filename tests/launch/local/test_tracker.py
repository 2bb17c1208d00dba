"""Weights & Biases in its offline mode, by the real package: what it keeps to send."""

import json
import pathlib
from typing import Any

import pytest

from launch.local import tracker
from launch.local.tracker import Tracker
from run_folder.settings import Settings, SettingsError
from tests.patience import wait_for
from tests.run_folder import saved_runs


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A run that is to be reported, with two logs."""
    for name, value in (("MODE", "offline"), ("ERROR_REPORTING", "false"), ("DIR", None)):
        if value is None:
            monkeypatch.delenv(f"WANDB_{name}", raising=False)
        else:
            monkeypatch.setenv(f"WANDB_{name}", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = saved_runs.settings_of(tmp_path / "pong", "r2d2", "catch", wandb="my-project")
    found.folder.logs.mkdir(parents=True)
    found.folder.log("actor").write_text(
        "actor_steps,learner_steps,walltime,episode_return\n10,1,0.5,nan\n"
    )
    found.folder.log("episodes").write_text("actor_steps,task\n10,catch\n")
    return found


def _append(run: Settings, label: str, text: str) -> None:
    with run.folder.log(label).open("a") as file:
        file.write(text)


def _records(path: pathlib.Path) -> list[Any]:
    """The records that wandb's own process has kept, once it has kept them all."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal import datastore

    records: Any = wandb_internal_pb2  # which is typed or not, as it is installed or not

    def find() -> list[Any]:
        store, found = datastore.DataStore(), []
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            found.append(records.Record.FromString(data))
        ends = any(record.WhichOneof("record_type") == "exit" for record in found)
        return found if ends else []

    return wait_for(find)


def _kept(run: Settings) -> list[list[dict[str, Any]]]:
    """The rows of each part of the run, in order, as wandb would send them; and its settings."""
    parts = []
    for path in sorted((run.path / "wandb").glob("offline-run-*/*.wandb")):
        rows = []
        for record in _records(path):
            if record.WhichOneof("record_type") == "run":
                config = {
                    item.key: json.loads(item.value_json) for item in record.run.config.update
                }
                rows.append(dict(config, name=record.run.display_name, id=record.run.run_id))
            elif record.WhichOneof("record_type") == "history":
                items = {
                    item.key or item.nested_key[0]: json.loads(item.value_json)
                    for item in record.history.item
                }
                rows.append({key: x for key, x in items.items() if not key.startswith("_")})
        parts.append(rows)
    return parts


def test_a_runs_rows_are_reported_once_each_and_a_resumed_run_is_the_same_one(
    run: Settings,
) -> None:
    pytest.importorskip("wandb", reason="`make setup-wandb` installs it.")
    with Tracker(run) as tracked:
        tracked.update()
        _append(run, "actor", "20,2,1.5,0.25\n30,3,2.5,")
        tracked.update()
        _append(run, "actor", "0.5\n")
    run.folder.log("learner-r2d2").write_text("learner_steps,actor_steps,loss\n4,40,0.125\n")
    with Tracker(run):
        _append(run, "actor", "50,5,3.5,0.75\n")
    first, second = _kept(run)
    (begun, *rows), (again, *later) = first, second
    assert (begun["name"], begun["agent"], begun["num_actors"]) == ("pong", "r2d2", 32)
    assert (again["id"], again["name"]) == (begun["id"], "pong")
    assert rows == [
        dict(actor_steps=10, learner_steps=1, walltime=0.5),
        {"actor_steps": 20, "learner_steps": 2, "walltime": 1.5, "actor/episode_return": 0.25},
        {"actor_steps": 30, "learner_steps": 3, "walltime": 2.5, "actor/episode_return": 0.5},
    ]
    assert later == [
        {"actor_steps": 50, "learner_steps": 5, "walltime": 3.5, "actor/episode_return": 0.75}
    ]


def test_a_log_that_went_back_goes_on_from_there(run: Settings) -> None:
    tracked = Tracker(run)
    log = run.folder.log("actor")
    assert [row["actor_steps"] for row in tracked._new_rows(log)] == [10]
    log.write_text("actor_steps\n5\n")
    assert list(tracked._new_rows(log)) == []
    _append(run, "actor", "7\n")
    assert list(tracked._new_rows(log)) == [{"actor_steps": 7}]


def test_a_report_that_fails_ends_no_run(run: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    class Gone:
        def log(self, row: dict[str, float]) -> None:
            raise RuntimeError("its process was killed")

    tracked = Tracker(run)
    tracked._there = Gone()
    for _ in range(2):
        tracked.update()
    tracked.__exit__()
    said = "Weights & Biases hears no more of this run: RuntimeError: its process was killed\n"
    assert capsys.readouterr().out == said


def test_what_cannot_be_is_a_sentence(run: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="--wandb=my-project is for a run on this machine"):
        tracker.check(run, here=False)
    monkeypatch.setattr(tracker.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(tracker, "addition", "make setup-{}".format)
    with pytest.raises(SettingsError, match="not installed: run `make setup-wandb`"):
        tracker.check(run, here=True)
