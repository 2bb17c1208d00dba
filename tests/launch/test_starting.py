"""A run spreads its replay and its learners over several nodes where that can be."""

import dataclasses
import pathlib
from typing import Any

import pytest

from launch import starting
from run_folder import building, run_lock, settings
from tests.launch import typed
from tests.run_folder import saved_runs


@pytest.mark.parametrize(
    ("agent", "overrides", "shards", "nodes", "said"),
    [
        ("r2d2", {}, 3, 2, "--num_replay_shards=3 needs as many actor nodes.* make 2"),
        ("r2d2", {"batch_size": "32"}, 3, 4, "--agent=r2d2: .* multiple of 3; got .* 32"),
        ("r2d2", {"batch_size": "2"}, 4, 4, "multiple of 4; got a batch size of 2"),
        (
            "r2d2",
            {"batch_size": "4", "replay_size": "3", "min_replay_size": "1"},
            4,
            4,
            "Table 'r2d2' holds 3 items: too few for 4 shards",
        ),
        ("impala", {"replay_fraction": "0.25"}, 4, 4, "'impala' must .* multiple of 4; got .* 6"),
        (
            "impala",
            {"batch_size": "8", "queue_size": "12"},
            4,
            4,
            r"more than a batch and one item \(3\) in each shard.* max_size 12 for 4",
        ),
    ],
)
def test_what_the_shards_could_not_give_is_refused(
    agent: str, overrides: dict[str, str], shards: int, nodes: int, said: str
) -> None:
    run = saved_runs.resolve(
        agent, overrides, num_replay_shards=shards, num_actors=nodes, actors_per_node=1
    )
    with pytest.raises(settings.SettingsError, match=said):
        starting.check_shares(run)


@pytest.mark.parametrize(
    ("agent", "overrides", "given", "said"),
    [
        (
            "r2d2",
            {"batch_size": "9"},
            {},
            "--learners_per_agent=2 must divide what a batch of r2d2 takes from table 'r2d2', "
            "9 items, as 3, 9 would.",
        ),
        (
            "impala",
            {"replay_fraction": "0.125"},
            dict(learners_per_agent=4),
            "table 'impala', 7 items, as 7 would.",
        ),
        (
            "r2d2",
            {},
            dict(num_replay_shards=3),
            "Of --learners_per_agent=2 and --num_replay_shards=3 one must divide the other",
        ),
        (
            "r2d2",
            {},
            dict(colocate_learners=True),
            "--learners_per_agent=2 gives each learner a process of its own",
        ),
    ],
)
def test_what_several_learners_cannot_share_is_refused(
    agent: str, overrides: dict[str, str], given: dict[str, Any], said: str
) -> None:
    given = dict(learners_per_agent=2, num_actors=8, actors_per_node=1) | given
    with pytest.raises(settings.SettingsError, match=said):
        starting.check_shares(saved_runs.resolve(agent, overrides, **given))


def test_until_it_has_saved_a_run_that_went_back_goes_on_from_there_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved_runs.save(tmp_path / "run", steps=(3, 7))
    found: list[dict[str, int]] = []

    def supervise(settings: Any, manifests: Any, server: Any, go_on: Any, *_: Any) -> int:
        found.append({name: m.learner_step for name, m in manifests.items()})
        found.append({name: m.learner_step for name, m in go_on().items()})
        manifest = run.folder.checkpoints / "manifest.json"
        manifest.write_text(manifest.read_text() + "\n")  # it has saved
        found.append({name: m.learner_step for name, m in go_on().items()})
        return 0

    monkeypatch.setattr(starting.fork_server, "ForkServer", typed.NoServer)
    monkeypatch.setattr(starting.supervisor, "run", supervise)
    monkeypatch.setattr(starting.rewinding, "rewind", lambda *_: None)
    monkeypatch.setattr(starting, "_begin", lambda *_: None)
    back = starting.Resumption({}, {}, step=3, with_replay=True)
    assert starting._run_here(run, back, None) == 0
    assert found == [{"r2d2": 3}, {"r2d2": 3}, {"r2d2": 7}]


def test_an_agent_that_cannot_be_several_has_one_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    make_agent = building.make_agent
    monkeypatch.setattr(
        building,
        "make_agent",
        lambda run, name: dataclasses.replace(make_agent(run, name), can_be_several=False),
    )
    starting.check_shares(saved_runs.resolve())
    with pytest.raises(settings.SettingsError, match="does not say that it can be several"):
        starting.check_shares(saved_runs.resolve(learners_per_agent=2))


def test_a_run_that_another_launch_began_and_ended_meanwhile_is_not_replaced(
    tmp_path: pathlib.Path,
) -> None:
    run = saved_runs.save(tmp_path / "run")
    before = typed.contents(run.path)
    with pytest.raises(settings.SettingsError, match="holds a run already: add --resume"):
        starting._begin(run, {}, None)
    run_lock.release()
    run.folder.lock.unlink()
    assert typed.contents(run.path) == before
