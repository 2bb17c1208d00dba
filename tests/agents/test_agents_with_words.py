"""Every agent with an instruction beside the image: it acts, learns, and does as it is told."""

from typing import Any

import acme
import numpy as np
import pytest
import tensorflow as tf
import tree

from agents.contract import Agent
from agents.impala import agent as impala
from agents.popart import agent as popart
from agents.single_process import SingleProcessAgent
from agents.stac import agent as stac
from r2d2 import agent as r2d2
from replay.structures import Batch
from tests.agents.recording import Episodes, run_episodes
from tests.batches import NUM_ACTIONS, random_batch
from tests.eager import eagerly
from tests.observations import NUM_WORDS, random_observation, spec_with_words, with_words

SMALL: dict[str, Any] = dict(
    torso="mlp", hidden_sizes=(8,), lstm_size=8, length=4, batch_size=16, frame_stack=1
)
SMALL_R2D2 = SMALL | dict(
    burn_in=0,
    period=4,
    min_replay_size=2,
    head_size=16,
    learning_rate=1e-2,
    adam_epsilon=1e-5,
    target_update_period=5,
)
SMALL_IMPALA = SMALL | dict(learning_rate=1e-2, rmsprop_epsilon=1e-3, rmsprop_decay=0.9)


def _agents(**changes: Any) -> dict[str, Agent]:
    return {
        "r2d2": r2d2.make(r2d2.Config(**SMALL_R2D2 | changes)),
        "feedforward": r2d2.make(r2d2.Config(**SMALL_R2D2 | dict(lstm_size=0) | changes)),
        "impala": impala.make(impala.Config(**SMALL_IMPALA | changes)),
        "popart": popart.make(popart.Config(**SMALL_IMPALA | changes)),
        "stac": stac.make(stac.Config(**SMALL_IMPALA | changes)),
    }


NAMES = tuple(_agents())


@pytest.mark.parametrize("name", NAMES)
@eagerly()
def test_an_update_changes_the_embeddings_of_the_words_it_read(name: str) -> None:
    agent = _agents()[name]
    update = agent.make_update(spec_with_words())
    batch = with_words(random_batch(agent.config))
    (embeddings,) = [v for v in update.network.trainable_variables if "embeddings" in v.name]
    before, unread = embeddings.numpy(), NUM_WORDS
    instruction = batch.inputs.observation["instruction"]
    batch.inputs.observation["instruction"] = tf.where(instruction == unread, 1, instruction)
    _, metrics = update(batch)
    assert all(np.isfinite(value).all() for value in metrics.values())
    changed = (embeddings.numpy() != before).any(axis=-1)
    assert changed.tolist() == [True] * (NUM_WORDS - 1) + [False]


def _told(rng: np.random.Generator, template: Batch) -> Batch:
    """Random actions; the first word names the one that is rewarded, the others mean nothing."""
    observation = random_observation(rng, *template.valid.shape)
    target = rng.integers(NUM_ACTIONS, size=template.valid.shape)
    others = observation["instruction"] % (NUM_WORDS - NUM_ACTIONS) + NUM_ACTIONS + 1
    instruction = np.where(observation["instruction"] > 0, others, 0)
    instruction[..., 0] = 1 + target
    action = rng.integers(NUM_ACTIONS, size=template.action.shape)
    leaves = {"image": observation["image"], "instruction": instruction.astype(np.int32)}
    return template._replace(
        inputs=template.inputs._replace(observation=tree.map_structure(tf.constant, leaves)),
        action=tf.constant(action, tf.int32),
        log_probability=tf.fill(action.shape, -np.log(np.float32(NUM_ACTIONS))),
        reward=tf.constant(action == target[:-1], tf.float32),
        continuation=tf.zeros(action.shape),
    )


@pytest.mark.parametrize("name", ["r2d2", "impala"])
def test_learns_to_do_as_it_is_told(name: str) -> None:
    agent = _agents(hidden_sizes=(1,))[name]
    tf.random.set_seed(0)
    update = agent.make_update(spec_with_words())
    rng, template = np.random.default_rng(0), random_batch(agent.config)
    tested = _told(np.random.default_rng(1), template)

    def obedience() -> float:
        state = update.network.initial_state(16)
        never = tf.zeros([5, 16], tf.bool)
        outputs, _ = update.network.unroll(tested.inputs, state, never, ~never)
        preferences: Any = outputs.policy.logits if hasattr(outputs, "policy") else outputs
        told = tested.inputs.observation["instruction"][..., 0] - 1
        return float(np.mean(np.argmax(preferences, axis=-1) == told))

    before = obedience()
    for _ in range(200):
        update(_told(rng, template))
    assert before < 0.6
    assert obedience() > 0.9


@pytest.mark.parametrize(
    ("make", "config"),
    [
        (r2d2.R2D2, r2d2.Config(**SMALL_R2D2 | dict(batch_size=2))),
        (impala.IMPALA, impala.Config(**SMALL_IMPALA | dict(batch_size=2))),
        (popart.PopArtIMPALA, popart.Config(**SMALL_IMPALA | dict(batch_size=2))),
        (stac.STAC, stac.Config(**SMALL_IMPALA | dict(batch_size=2, num_heads=2))),
    ],
)
def test_the_library_s_agents_run_in_acme_s_loop(make: Any, config: Any) -> None:
    spec = spec_with_words()
    environment = Episodes(spec.observations, spec.actions, length=3)
    agent: SingleProcessAgent = make(acme.make_environment_spec(environment), config)
    run_episodes(environment, agent, 10)
    assert agent.learner.learner_steps > 0
