"""Masks of legal actions in networks and policies: an illegal action is one that nobody chooses.

An environment's mask is the part `ACTION_MASK` of its observations, so replay holds it as any other
part. A head gets it beside the core's output, `(x, Legal)`, and gives illegal actions a constant
value or logit that is far below all others. Maxima, softmaxes, entropies and the targets made of
them are then those of the legal actions, and no gradient reaches what a head computes for others.
"""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from agents import random_numbers
from agents.contract import Agent
from agents.networks.network import RecurrentNetwork
from environments.copies.masks import check_any as check_any
from environments.copies.vector import ACTION_MASK
from replay.structures import Nest, NetworkInput

ILLEGAL = -1e9
"""The value, or the logit, of an illegal action: finite, so that 0 times it is 0."""


class Legal(NamedTuple):
    """The legal actions at some observations, at least one each."""

    actions: tf.Tensor  # [..., A] bool

    def only(self, values: tf.Tensor) -> tf.Tensor:
        """Values `[..., A]`, those of illegal actions being `ILLEGAL`."""
        return tf.where(self.actions, values, tf.constant(ILLEGAL, values.dtype))

    def mean(self, values: tf.Tensor) -> tf.Tensor:
        """Σ_a legal_a x_a / Σ_a legal_a: `[..., A]` -> `[..., 1]`."""
        total = tf.reduce_sum(tf.where(self.actions, values, tf.zeros_like(values)), axis=-1)
        return (total / self.number())[..., tf.newaxis]

    def number(self) -> tf.Tensor:
        """How many actions are legal, `[...]` float32."""
        return tf.reduce_sum(tf.cast(self.actions, tf.float32), axis=-1)

    def any(self, generator: tf.random.Generator) -> tf.Tensor:
        """Draws evenly from the legal actions at N observations: `[N]` int32."""
        even = self.only(tf.zeros(tf.shape(self.actions)))
        return random_numbers.categorical(generator, even)


class MaskedNetwork(RecurrentNetwork):
    """A network whose head gets the legal actions too; its torso does not see the mask."""

    def step(self, inputs: NetworkInput, core_state: Nest) -> tuple[Nest, Nest]:
        x, core_state = self._core.step(self._embed(inputs), core_state)
        return self._head((x, legal(inputs.observation))), core_state

    def unroll_core(
        self, inputs: NetworkInput, core_state: Nest, reset: tf.Tensor, valid: tf.Tensor
    ) -> tuple[Nest, Nest]:
        x, core_state = super().unroll_core(inputs, core_state, reset, valid)
        return (x, legal(inputs.observation)), core_state

    def _embed(self, inputs: NetworkInput) -> tf.Tensor:
        return super()._embed(inputs._replace(observation=shown(inputs.observation)))


def legal(observation: Mapping[str, tf.Tensor]) -> Legal:
    """The legal actions at observations `[..., *]` with masks `[..., A]`, 1 where one is legal.

    Without a single 1 all are: the row is padding, or an episode's last observation. No action is
    taken there, but a truncated episode bootstraps from its value.
    """
    allowed = tf.not_equal(observation[ACTION_MASK], 0)
    return Legal(allowed | ~tf.reduce_any(allowed, axis=-1, keepdims=True))


def shown(observation: Mapping[str, Nest]) -> Nest:
    """What a torso sees of an observation with a mask, or of its specs: all else.

    A part that is then alone is an observation of its own.
    """
    rest = {name: part for name, part in observation.items() if name != ACTION_MASK}
    return next(iter(rest.values())) if len(rest) == 1 else rest


def check(agent: Agent) -> None:
    """Accepts an agent for environments with a mask.

    Raises:
      ValueError: it does not say that it takes legal actions alone.
    """
    if not agent.masks_actions:
        raise ValueError(
            "the environment shows which actions are legal, and the agent does not say "
            "masks_actions=True (docs/legal-actions.md)."
        )
