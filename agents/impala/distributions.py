"""The policies that a network can give: chances of numbered actions, squashed Gaussians.

A distribution is a named tuple of tensors, so graphs, tapes and `tree.map_structure` take it as it
is. It samples actions as replay holds them, and gives their probabilities: for a squashed Gaussian
these are the vectors before squashing, u, of which `squashed` makes the environment's actions.
Nothing ever has to be inverted: near a bound tanh(u) no longer tells u.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import tensorflow as tf
import tree
from acme import specs

from agents import random_numbers
from agents.networks.network import choices_of, is_discrete
from replay.structures import Array

LOG_SIGMA_MIN, LOG_SIGMA_MAX = -5.0, 2.0
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)

AnyDistribution = TypeVar("AnyDistribution", bound="Distribution")


class Distribution(Protocol):
    """A policy at some observations `[...]`."""

    def sample(self, generator: tf.random.Generator) -> tf.Tensor:
        """An action for each of N observations."""

    def for_evaluation(self, generator: tf.random.Generator) -> tf.Tensor:
        """The actions by which the agent is evaluated, N of them."""

    def log_probability(self, action: tf.Tensor) -> tf.Tensor:
        """log π(a | x), `[...]`; a density's where actions are vectors."""

    def regularisation(self) -> tf.Tensor:
        """A loss that keeps the policy broad beside the others, `[...]`."""

    def regularisation_metric(self, mean: tf.Tensor) -> dict[str, tf.Tensor]:
        """The mean of `regularisation`, by its column of the log."""

    def divergence(self, other: Any) -> tf.Tensor:
        """KL(π, π') of this policy from another of the same kind, `[...]`."""


class Categorical(NamedTuple):
    """A chance for each of A actions; one of them is its number."""

    logits: tf.Tensor  # [..., A]

    def sample(self, generator: tf.random.Generator) -> tf.Tensor:
        """Draws from softmax(logits): `[N]` int32."""
        return random_numbers.categorical(generator, self.logits)

    def for_evaluation(self, generator: tf.random.Generator) -> tf.Tensor:
        """As `sample`: what IMPALA's paper trains and measures is a stochastic policy."""
        return self.sample(generator)

    def log_probability(self, action: tf.Tensor) -> tf.Tensor:
        """log softmax(logits)[action]: actions `[...]` -> `[...]`."""
        rank = action.shape.rank
        return tf.gather(tf.nn.log_softmax(self.logits), action, axis=-1, batch_dims=rank)

    def regularisation(self) -> tf.Tensor:
        """The negative entropy (Espeholt et al. 2018, Section 4.2): Σ_a π(a) log π(a)."""
        log_pi = tf.nn.log_softmax(self.logits)
        return tf.reduce_sum(tf.exp(log_pi) * log_pi, axis=-1)

    def regularisation_metric(self, mean: tf.Tensor) -> dict[str, tf.Tensor]:
        """The entropy in nats."""
        return {"entropy": -mean}

    def divergence(self, other: "Categorical") -> tf.Tensor:
        """KL(π, π') = Σ_a π(a) log π(a) / π'(a)."""
        log_pi = tf.nn.log_softmax(self.logits)
        log_other = tf.nn.log_softmax(other.logits)
        return tf.reduce_sum(tf.exp(log_pi) * (log_pi - log_other), axis=-1)


class Several(NamedTuple):
    """A `Categorical` for each of D numbers that make one action; they are drawn independently."""

    parts: tuple[Categorical, ...]

    def sample(self, generator: tf.random.Generator) -> tf.Tensor:
        """`[N, D]` int32."""
        return tf.stack([part.sample(generator) for part in self.parts], axis=-1)

    def for_evaluation(self, generator: tf.random.Generator) -> tf.Tensor:
        """As `sample`."""
        return self.sample(generator)

    def log_probability(self, action: tf.Tensor) -> tf.Tensor:
        """Σ_d log π_d(a_d): actions `[..., D]` -> `[...]`."""
        parts = enumerate(self.parts)
        return tf.add_n([part.log_probability(action[..., d]) for d, part in parts])

    def regularisation(self) -> tf.Tensor:
        """The negative entropy, which is the sum of the parts'."""
        return tf.add_n([part.regularisation() for part in self.parts])

    def regularisation_metric(self, mean: tf.Tensor) -> dict[str, tf.Tensor]:
        """The entropy in nats."""
        return {"entropy": -mean}

    def divergence(self, other: "Several") -> tf.Tensor:
        """KL(π, π'), the sum of the parts'."""
        parts = enumerate(self.parts)
        return tf.add_n([part.divergence(other.parts[d]) for d, part in parts])


class SquashedGaussian(NamedTuple):
    """a = tanh(u), u ~ N(μ, σ²), each of D numbers by itself (Zahavy et al. 2020, Section 9.3).

    Its actions are u, everywhere but in the environment.
    """

    mean: tf.Tensor  # [..., D], μ
    log_sigma: tf.Tensor  # [..., D], log σ

    def sample(self, generator: tf.random.Generator) -> tf.Tensor:
        """Draws u: `[N, D]`."""
        return self.at(random_numbers.normal(generator, tf.shape(self.mean)))

    def at(self, noise: tf.Tensor) -> tf.Tensor:
        """u of standard normal numbers `[..., D]`: μ + σ ε, to be differentiated by μ and σ."""
        return self.mean + tf.exp(self.log_sigma) * noise

    def for_evaluation(self, generator: tf.random.Generator) -> tf.Tensor:
        """The mean, μ."""
        del generator
        return self.mean

    def log_probability(self, action: tf.Tensor) -> tf.Tensor:
        """The log-density of tanh(u) (Haarnoja et al. 2018, Appendix C).

            Σ_d log N(u_d | μ_d, σ_d²) − log(1 − tanh² u_d)

        Args:
          action: u, `[..., D]`.

        Returns:
          `[...]`.
        """
        mean, log_sigma = self.mean, self.log_sigma
        tf.debugging.assert_shapes([(x, (..., "D")) for x in (action, mean, log_sigma)])
        z = (action - mean) * tf.exp(-log_sigma)
        gaussian = -0.5 * tf.square(z) - log_sigma - _HALF_LOG_TWO_PI
        return tf.reduce_sum(gaussian - log_slope(action), axis=-1)

    def regularisation(self) -> tf.Tensor:
        """KL(N(μ, σ²), N(0, 1)), which stands for the entropy (Zahavy et al. 2020, Section 4.2).

        ½ Σ_d μ_d² + σ_d² − 1 − 2 log σ_d
        """
        variance = tf.exp(2.0 * self.log_sigma)
        each = tf.square(self.mean) + variance - 1.0 - 2.0 * self.log_sigma
        return 0.5 * tf.reduce_sum(each, axis=-1)

    def regularisation_metric(self, mean: tf.Tensor) -> dict[str, tf.Tensor]:
        """The divergence in nats, as it is."""
        return {"standard_kl": mean}

    def divergence(self, other: "SquashedGaussian") -> tf.Tensor:
        """KL(π, π'), which is the Gaussians': squashing both alike does not change it.

        Σ_d log σ'_d / σ_d + (σ_d² + (μ_d − μ'_d)²) / (2 σ'_d²) − ½
        """
        log_ratio = self.log_sigma - other.log_sigma
        z = (self.mean - other.mean) * tf.exp(-other.log_sigma)
        each = 0.5 * (tf.exp(2.0 * log_ratio) + tf.square(z) - 1.0) - log_ratio
        return tf.reduce_sum(each, axis=-1)


class Form(NamedTuple):
    """The reading of a network layer's outputs as a policy."""

    size: int  # N, numbers for an observation
    make: Callable[[tf.Tensor], Distribution]  # of `[..., N]`


def form_of(
    actions: specs.BoundedArray,
    log_sigma_min: float = LOG_SIGMA_MIN,
    log_sigma_max: float = LOG_SIGMA_MAX,
) -> Form:
    """A logit for each of A actions, or of each of several numbers; 2 D numbers for vectors `[D]`.

    Args:
      actions: the spec of the environment's, as `environments.copies.spec.spec_of` makes it.
    """
    if not is_discrete(actions):
        bounds = dict(log_sigma_min=log_sigma_min, log_sigma_max=log_sigma_max)
        return Form(2 * actions.shape[0], functools.partial(squashed_gaussian, **bounds))
    counts = choices_of(actions)
    several_numbers = functools.partial(several, counts=counts)
    return Form(sum(counts), several_numbers if actions.shape else Categorical)


def several(outputs: tf.Tensor, counts: Sequence[int]) -> Several:
    """The policies of outputs `[..., Σ_d A_d]`: A_d logits of each number, one after another."""
    return Several(tuple(map(Categorical, tf.split(outputs, counts, axis=-1))))


def squashed_gaussian(
    outputs: tf.Tensor, log_sigma_min: float, log_sigma_max: float
) -> SquashedGaussian:
    """The Gaussian of outputs `[..., 2 D]`, y₁ then y₂ (Zahavy et al. 2020, Section 9.3).

    μ = tanh y₁,   log σ = min + ½ (max − min) (tanh y₂ + 1)
    """
    bounded = tf.tanh(outputs)
    mean, spread = tf.split(bounded, 2, axis=-1)
    return SquashedGaussian(
        mean, log_sigma_min + 0.5 * (log_sigma_max - log_sigma_min) * (spread + 1.0)
    )


def log_slope(u: tf.Tensor) -> tf.Tensor:
    """log(d tanh(u) / du) = log(1 − tanh² u) = 2 (log 2 − u − softplus(−2 u)), of any shape.

    The last form is exact where tanh(u) rounds to 1 and the middle one is −∞: |u| > 9 in float32.
    """
    return 2.0 * (math.log(2.0) - u - tf.nn.softplus(-2.0 * u))


def squashed(u: Array, actions: specs.BoundedArray) -> Array:
    """The environment's actions: tanh(u), scaled from [-1, 1] to the bounds of each number.

    u is `[..., D]`, an actor's array or an exported policy's tensor.
    """
    low, high = actions.minimum, actions.maximum
    tanh, clip = (tf.tanh, tf.clip_by_value) if tf.is_tensor(u) else (np.tanh, np.clip)
    share = 0.5 * (tanh(u) + 1)
    # Each bound's part by itself, since high − low may be beyond float32; clipped for rounding.
    within = clip((1 - share) * low + share * high, low, high)
    return within if tf.is_tensor(u) else within.astype(u.dtype)


def without_last(distribution: AnyDistribution) -> AnyDistribution:
    """The policies of all rows but the last: `[T + 1, B, ...]` -> `[T, B, ...]`."""
    shortened: AnyDistribution = tree.map_structure(lambda x: x[:-1], distribution)
    return shortened
