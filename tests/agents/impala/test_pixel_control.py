"""Pixel control inside the update: what it adds, and what it must not touch."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from agents.impala.agent import Config
from agents.impala.learner import ImpalaUpdate
from agents.networks.network import unroll_trained_core
from agents.pixel_control import Grid, PixelControl
from replay.structures import Batch
from tests.batches import environment_spec, random_batch
from tests.eager import eagerly
from tests.observations import COLOURED, spec_with_words, with_words
from tests.small_agents import make_update, small_config, with_ends

IMAGE = (32, 36)
COST = 0.5


def _config(**changes: Any) -> Any:
    """A Config with unrolls of four trained rows after a burn-in of two."""
    values = dict(length=4, burn_in=2, batch_size=3, pixel_control_cost=COST)
    return small_config("impala", **values | changes)


def _update(config: Config) -> ImpalaUpdate:
    update: ImpalaUpdate = make_update(config, spec=environment_spec(IMAGE))
    return update


def _control(update: ImpalaUpdate) -> PixelControl:
    (control,) = [m for m in update.submodules if isinstance(m, PixelControl)]
    return control


def _batch(config: Config) -> Batch:
    """Images of floats, for gradients to reach; a termination and a truncation inside."""
    end = config.burn_in + 2
    batch = with_ends(random_batch(config), {(end, 0): True, (end, 1): False})
    shape = (*batch.reset.shape, *IMAGE, 1)
    images = np.random.default_rng(0).random(size=shape)
    inputs = batch.inputs._replace(observation=tf.constant(images, tf.float32))
    return batch._replace(inputs=inputs)


def _auxiliary(update: ImpalaUpdate, batch: Batch) -> tf.Tensor:
    return update.evaluate(batch).metrics["pixel_control_loss"]


def _loss_of_rows(update: ImpalaUpdate, batch: Batch, config: Config) -> float:
    """Of the trained rows, as the episode's ends in `batch` stand."""
    core_output = unroll_trained_core(
        update.learned_network, batch, batch.core_state, batch.reset, config.burn_in
    )
    fields = (batch.inputs.observation, batch.action, batch.continuation, batch.mask)
    observation, action, continuation, mask = (x[config.burn_in :] for x in fields)
    control = _control(update)
    return float(control.loss(core_output, observation, action, continuation, mask))


def test_the_loss_is_added_with_its_cost() -> None:
    config = _config()
    update, batch = _update(config), _batch(config)
    evaluation = update.evaluate(batch)
    metrics = evaluation.metrics
    auxiliary = _loss_of_rows(update, batch, config)
    assert auxiliary > 0
    assert float(metrics["pixel_control_loss"]) == pytest.approx(auxiliary, rel=1e-5)
    others = metrics["policy_gradient_loss"] + 0.5 * metrics["baseline_loss"]
    others -= 0.01 * metrics["entropy"] * tf.reduce_sum(batch.trained(config.burn_in).mask)
    assert float(evaluation.loss) == pytest.approx(float(others) + COST * auxiliary, rel=1e-5)


def test_a_lost_life_ends_the_episode_as_in_the_other_losses() -> None:
    config = _config()
    update, batch = _update(config), _batch(config)
    lost = np.zeros(batch.life_lost.shape, bool)
    lost[4, 2] = True  # by the action of row 3
    ended = batch._replace(
        reset=batch.reset | lost, continuation=tf.where(lost[1:], 0.0, batch.continuation)
    )
    expected = _loss_of_rows(update, ended, config)
    actual = _auxiliary(update, batch._replace(life_lost=tf.constant(lost)))
    assert float(actual) == pytest.approx(expected, rel=1e-5)
    assert expected != pytest.approx(_loss_of_rows(update, batch, config), rel=1e-4)


def test_only_trained_rows_have_a_gradient() -> None:
    config = _config(lstm_size=6)
    update, batch = _update(config), _batch(config)
    observation = batch.inputs.observation
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(observation)
        loss = _auxiliary(update, batch)
    gradient = np.abs(tape.gradient(loss, observation).numpy()).sum(axis=(2, 3, 4))
    assert (gradient[:2] == 0).all()  # burn-in
    assert (gradient[-1] == 0).all()  # only bootstraps
    assert (gradient[4, :2] == 0).all()  # an episode's last observation
    assert (gradient[2:4] > 0).all()
    torso = [v for v in update.learned_network.trainable_variables if "torso" in v.name]
    assert all(np.any(g) for g in tape.gradient(loss, torso))


@eagerly()
def test_actors_never_get_the_head_and_the_learner_trains_it() -> None:
    config = _config()
    update, plain = _update(config), _update(_config(pixel_control_cost=0.0))
    assert [v.name for v in update.network.variables] == [v.name for v in plain.network.variables]
    assert not [m for m in plain.submodules if isinstance(m, PixelControl)]
    control = _control(update)
    held = {v.ref() for v in update.variables}  # what a checkpoint holds
    assert {v.ref() for v in control.variables} <= held
    assert len(update._optimizer.ms) == len(plain._optimizer.ms) + len(control.variables)
    before = [v.numpy() for v in control.trainable_variables]
    _, metrics = update(_batch(config))
    for x, y in zip(before, control.trainable_variables, strict=True):
        assert (x != y.numpy()).any()
    assert float(metrics["pixel_control_loss"]) > 0
    assert "pixel_control_loss" not in plain(_batch(config))[1]


@eagerly()
def test_where_there_are_words_it_controls_the_image() -> None:
    config = _config()
    update = make_update(config, spec=spec_with_words())
    control = _control(update)
    assert control.grid == Grid.of(COLOURED)
    batch = with_words(random_batch(config))
    core_output = unroll_trained_core(
        update.learned_network, batch, batch.core_state, batch.reset, config.burn_in
    )
    fields = (batch.inputs.observation["image"], batch.action, batch.continuation, batch.mask)
    images, action, continuation, mask = (x[config.burn_in :] for x in fields)
    expected = control.loss(core_output, images, action, continuation, mask)
    assert float(expected) > 0
    assert float(update(batch)[1]["pixel_control_loss"]) == pytest.approx(float(expected), rel=1e-4)


def test_observations_that_are_no_images_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got observations of shape \(5,\)"):
        make_update(_config())
