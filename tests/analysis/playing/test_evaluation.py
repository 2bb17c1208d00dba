"""Frozen parameters play: which, how, and how many episodes where."""

import dataclasses
import pathlib
from collections import Counter

import numpy as np
import pytest

from analysis.playing import evaluation, session
from analysis.playing.evaluation import Player
from run_folder import best
from run_folder.checkpoints import CheckpointError
from run_folder.settings import Settings
from tests.run_folder import saved_runs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """R2D2 and IMPALA on catch, saved twice."""
    folder = tmp_path_factory.mktemp("runs") / "catch"
    return saved_runs.save(folder, "r2d2,impala", steps=(3, 7))


@pytest.fixture(scope="module")
def r2d2(run: Settings) -> Player:
    """R2D2's newest."""
    return evaluation.load(run, "r2d2")


@pytest.fixture(scope="module")
def impala(run: Settings) -> Player:
    """IMPALA's newest."""
    return evaluation.load(run, "impala")


def _parameters(player: Player) -> list[np.ndarray]:
    return [variable.numpy() for variable in player.network.trainable_variables]


@pytest.mark.parametrize(("checkpoint", "step"), [(None, 7), (7, 7), (3, 3)])
def test_the_parameters_are_those_of_the_checkpoint(
    run: Settings, checkpoint: int | None, step: int
) -> None:
    player = evaluation.load(run, "r2d2", checkpoint=checkpoint)
    assert (player.played.learner_steps, player.played.actor_steps) == (step, 100 * step)
    found = _parameters(player)
    saved_runs.set_parameters(player.update, step)
    for x, y in zip(found, _parameters(player), strict=True):
        np.testing.assert_array_equal(x, y)
    saved_runs.set_parameters(player.update, 10 - step)
    assert any((x != y).any() for x, y in zip(found, _parameters(player), strict=True))


def test_the_parameters_of_the_best_evaluation_play_and_estimate_nothing(
    r2d2: Player, tmp_path: pathlib.Path
) -> None:
    run = saved_runs.save(tmp_path / "run", steps=())  # before the learner saves
    values = [variable.numpy() + 1 for variable in r2d2.update.network.variables]
    best.write(run.folder.checkpoints, "r2d2", best.Best(0.5, 5, 520, 7.0, values))
    player = evaluation.load(run, "r2d2", checkpoint="best", memory_steps=2)
    played = player.played
    assert (played.learner_steps, played.actor_steps, played.walltime) == (5, 520, 7.0)
    for variable, value in zip(player.update.network.variables, values, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)
    assert len(evaluation.play(player, "catch", 2)) == 2
    (film,) = session.film_all(player, lambda line: None)
    assert film.exists()
    assert player.agent.estimates(player.update, {}, 0) == {}
    best.write(run.folder.checkpoints, "r2d2", best.Best(0.5, 5, 520, 7.0, values[1:]))
    with pytest.raises(CheckpointError, match="of a network of other sizes"):
        evaluation.load(run, "r2d2", checkpoint="best")


def test_every_environment_plays_its_share(r2d2: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "_MAX_ENVIRONMENTS", 3)
    told: list[tuple[int, int]] = []
    episodes = evaluation.play(r2d2, "catch", 7, lambda *step: told.append(step))
    assert [episode.environment for episode in episodes] == [0, 0, 0, 1, 1, 2, 2]
    assert {episode.length for episode in episodes} == {9}
    assert {abs(episode.episode_return) for episode in episodes} == {1.0}
    assert len(told) == 29  # three episodes of nine steps, and a reset before the second and third
    assert sum(ended for _, ended in told) == 7
    assert sum(steps for steps, _ in told) == 3 * 27


def test_fewer_episodes_than_environments_are_one_each(impala: Player) -> None:
    episodes = evaluation.play(impala, "catch", 5)
    assert Counter(episode.environment for episode in episodes) == dict.fromkeys(range(5), 1)


def test_a_seed_fixes_every_episode(impala: Player) -> None:
    played = (dataclasses.replace(impala.played, seed=seed) for seed in (1, 1, 2))
    first, again, other = (
        evaluation.play(dataclasses.replace(impala, played=each), "catch", 60) for each in played
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("task", "episodes"), [("atari:pong", 200), ("dmlab:rooms_watermaze", 500), ("catch", 100)]
)
def test_as_many_episodes_as_in_the_papers(task: str, episodes: int) -> None:
    assert evaluation.num_episodes(task) == episodes


def test_that_many_are_played_where_no_number_is_given(
    r2d2: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "_OTHER_EPISODES", 6)
    assert len(evaluation.play(r2d2, "catch")) == 6


def test_epsilon_is_the_probability_of_a_random_action(
    run: Settings, r2d2: Player, impala: Player
) -> None:
    random = evaluation.load(run, "r2d2", epsilon=1.0)
    assert [s.played.epsilon for s in (r2d2, random, impala)] == [0.0, 1.0, None]
    assert random.agent.config.evaluation_epsilon == 1.0
    returns = [
        [episode.episode_return for episode in evaluation.play(player, "catch", 60)]
        for player in (r2d2, random)
    ]
    assert returns[0] != returns[1]


def test_memory_can_be_limited(run: Settings, r2d2: Player) -> None:
    limited = evaluation.load(run, "r2d2", memory_steps=2)
    assert (r2d2.played.memory_steps, limited.played.memory_steps) == (None, 2)
    assert r2d2.network is r2d2.update.network
    assert r2d2.network.initial_state(1).cell.shape == (1, 8)
    assert limited.network.initial_state(1).cell.shape == (1, 2, 8)
    assert len(evaluation.play(limited, "catch", 3)) == 3


def test_a_suite_is_played_task_by_task(tmp_path: pathlib.Path) -> None:
    env = "catch,catch:large_rewards"
    player = evaluation.load(saved_runs.save(tmp_path / "run", "popart", env), "popart")
    assert player.tasks == ["catch", "catch:large_rewards"]
    sizes = [
        {abs(episode.episode_return) for episode in evaluation.play(player, task, 4)}
        for task in player.tasks
    ]
    assert sizes == [{1.0}, {1000.0}]


def test_a_level_with_a_held_out_twin_is_evaluated_on_that(run: Settings, r2d2: Player) -> None:
    env = "dmlab:language_select_described_object,dmlab:rooms_collect_good_objects_train"
    of_levels = dataclasses.replace(run, env=env)
    assert dataclasses.replace(r2d2, run=of_levels).tasks == [
        "dmlab:language_select_described_object",
        "dmlab:rooms_collect_good_objects_test",
    ]
