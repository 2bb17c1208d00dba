"""A run folder of parameters alone: it plays as the run does, and a run goes on from it."""

import dataclasses
import errno
import pathlib
import shutil
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from analysis.playing import evaluation, files, small_run
from run_folder import best, building, resuming, run_lock, settings
from run_folder.layout import RunFolder
from run_folder.settings import Settings, SettingsError
from tests.run_folder import saved_runs


def _evaluated(
    run: Settings, agent: str, step: int, memory_steps: int | None = None
) -> evaluation.Player:
    player = evaluation.load(run, agent, checkpoint=step, memory_steps=memory_steps)
    file = files.File(run.path, player.played)
    file.append("catch", evaluation.play(player, "catch", 3))
    return player


@pytest.fixture(params=["r2d2", "impala"])
def small(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> tuple[Settings, Settings]:
    """A run on catch of two saved updates, and the first of them as a small run."""
    saved_runs.save(tmp_path / "run", request.param, steps=(3, 7))
    (tmp_path / "run" / "launches.jsonl").touch()
    run = settings.load(tmp_path / "run")
    _evaluated(run, request.param, 7)
    _evaluated(run, request.param, 3, memory_steps=2)
    written = small_run.write(_evaluated(run, request.param, 3), tmp_path / "a" / "small")
    return run, settings.load(written)


OF_ONE_AGENT = pytest.mark.parametrize("small", ["r2d2"], indirect=True)


def test_it_has_the_parameters_in_half_the_bytes_and_what_is_known_of_them(
    small: tuple[Settings, Settings],
) -> None:
    run, written = small
    assert written.configs == run.configs
    assert str(run.path) not in RunFolder(written.path).config.read_text()
    name = f"{run.agent}-3"
    assert set(files.read_all(written.path)) == {name, f"{name}-memory2"}
    found = sorted(path.name for path in written.path.rglob("*") if path.is_file())
    of_all = [f"best-{run.agent}.npz", "config.json", "launches.jsonl"]
    assert found == sorted([*of_all, f"{name}.csv", f"{name}-memory2.csv"])
    kept = best.read(written.folder.checkpoints, run.agent)
    assert kept is not None
    returns = [row.episode_return for row in files.read_all(run.path)[name]]
    assert kept.learner_step == 3
    assert kept.score == pytest.approx(np.mean(returns))
    whole = evaluation.load(run, checkpoint=3).network.variables
    for narrow, value in zip(kept.parameters, whole, strict=True):
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, value.numpy(), rtol=2**-11, atol=2**-24)
    npz = written.folder.checkpoints / f"best-{run.agent}.npz"
    assert npz.stat().st_size < 2.5 * sum(v.numpy().size for v in whole) + 6_000


def test_it_plays_and_a_run_goes_on_from_it(small: tuple[Settings, Settings]) -> None:
    run, written = small
    player = evaluation.load(written)
    assert player.played.learner_steps == 3
    assert len(evaluation.play(player, "catch", 4)) == 4
    with pytest.raises(SettingsError, match="holds the best parameters alone, and no other"):
        evaluation.load(written, checkpoint=7)
    limited = dataclasses.replace(written, max_learner_steps=3)
    with pytest.raises(SettingsError, match=r"has reached --max_learner_steps=3: .* and 3 updates"):
        resuming.check_limits(limited, None)
    spec = building.environment_spec(written)
    updates = {run.agent: building.make_agent(written, run.agent).make_update(spec)}
    made = resuming.manifests(written, updates, step=None, with_replay=True)
    (manifest,) = made.values()
    assert (manifest.learner_step, manifest.replay) == (3, None)
    kept = best.read(written.folder.checkpoints, run.agent)
    assert kept is not None
    update: Any = updates[run.agent]
    assert int(update.step) == 3
    for network in (update.network, getattr(update, "target_network", update.network)):
        for variable, value in zip(network.variables, kept.parameters, strict=True):
            np.testing.assert_array_equal(variable.numpy(), value)
    assert not resuming.has_best_alone(written, run.agent)
    assert resuming.manifests(written, updates, step=None, with_replay=True) == made
    again = evaluation.load(written)
    assert again.played.actor_steps == player.played.actor_steps


@OF_ONE_AGENT
def test_a_copy_is_locked_before_a_learner_is_saved_in_it(
    small: tuple[Settings, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, written = small
    taken: list[pathlib.Path] = []
    monkeypatch.setattr(run_lock, "take", taken.append)
    asked = {"run_dir": written.run_dir}
    assert resuming.resumed(asked, {}) == written
    assert taken == [written.path]
    saved_runs.save(written.path.with_name("usual"), "r2d2")
    resuming.resumed({"run_dir": str(written.path.with_name("usual"))}, {})
    assert taken == [written.path]  # it has a learner


def test_a_policy_lag_counts_from_the_best_parameters(tmp_path: pathlib.Path) -> None:
    run = saved_runs.save(tmp_path / "run", "impala", overrides=dict(policy_lag="2"))
    written = settings.load(small_run.write(evaluation.load(run), tmp_path / "small"))
    update: Any = building.make_agent(written, "impala").make_update(
        building.environment_spec(written)
    )
    resuming.manifests(written, {"impala": update}, step=None, with_replay=True)
    kept = best.read(written.folder.checkpoints, "impala")
    assert kept is not None
    for network in (update.learned_network, update.network):
        for variable, value in zip(network.variables, kept.parameters, strict=True):
            np.testing.assert_array_equal(variable.numpy(), value)
    for variable in update.learned_network.variables:
        variable.assign(tf.zeros_like(variable))
    for step, is_kept in ((7, True), (8, False)):
        update._lagged.before_update(tf.constant(step, tf.int64))
        for variable, value in zip(update.network.variables, kept.parameters, strict=True):
            np.testing.assert_array_equal(variable.numpy(), value if is_kept else 0 * value)


def test_of_several_agents_those_without_a_learner_go_on_from_their_best(
    tmp_path: pathlib.Path,
) -> None:
    run = saved_runs.save(tmp_path / "run", "r2d2,impala", steps=(3,))
    folder = run.folder.checkpoints
    written = small_run.write(evaluation.load(run, "impala"), tmp_path / "small")
    shutil.copy(written / "checkpoints" / "best-impala.npz", folder)
    for path in folder.glob("manifest-impala*.json"):
        path.unlink()
    shutil.rmtree(folder / "learner-impala")
    spec = building.environment_spec(run)
    updates = {name: building.make_agent(run, name).make_update(spec) for name in run.agents}
    made = resuming.manifests(run, updates, step=None, with_replay=True)
    assert {name: manifest.learner_step for name, manifest in made.items()} == dict.fromkeys(
        run.agents, 3
    )


@OF_ONE_AGENT
def test_parameters_that_are_damaged_are_told_and_no_way_around_them(
    small: tuple[Settings, Settings],
) -> None:
    run, written = small
    path = written.folder.checkpoints / best.file_name(run.agent)
    path.write_bytes(path.read_bytes()[:-9])
    spec = building.environment_spec(written)
    updates = {run.agent: building.make_agent(written, run.agent).make_update(spec)}
    with pytest.raises(SettingsError, match=r"are corrupt: .* No learner that was kept is whole"):
        resuming.manifests(written, updates, step=None, with_replay=True)


@OF_ONE_AGENT
def test_what_16_bits_do_not_hold_and_where_nothing_can_be_written_is_said(
    small: tuple[Settings, Settings], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = evaluation.load(small[0])
    with pytest.raises(SettingsError, match="/proc/small cannot be written: "):
        small_run.write(player, pathlib.Path("/proc/small"))
    with monkeypatch.context() as full:
        error = OSError(errno.ENOSPC, "No space left on device")
        full.setattr(best, "write", mock.Mock(side_effect=error))
        with pytest.raises(SettingsError, match="small cannot be written: No space left on device"):
            small_run.write(player, tmp_path / "b" / "small")
    assert not list((tmp_path / "b").iterdir())
    (tmp_path / "b" / "small.new").mkdir()  # somebody's
    assert small_run.write(player, tmp_path / "b" / "small").is_dir()
    assert len(list((tmp_path / "b").iterdir())) == 2
    player.network.variables[0].assign(player.network.variables[0] + 1e6)
    with pytest.raises(SettingsError, match="'s parameters are too large to be kept in 16 bits"):
        small_run.write(player, tmp_path / "large")
    assert not (tmp_path / "large").exists()
