"""The self-tuning learner step (Zahavy et al. 2020, Algorithm 2).

The inner loss is V-trace's with hyperparameters ζ(η), and RMSProp's step makes θ̃(η) of the
parameters θ. The outer loss is V-trace's with fixed hyperparameters ζ, on the same batch, at θ̃:

    ∂L_outer / ∂η = (∂θ̃ / ∂η)ᵀ ∂L_outer / ∂θ̃

The right factor is an ordinary gradient, once the network has the parameters θ̃. The left one is
linear in what the losses' gradient is by the network's outputs, so nothing but the way back from
there to the parameters is differentiated a second time: no second derivative of the network.
"""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from agents.compilation import update_function
from agents.contract import Network
from agents.impala.distributions import Distribution, without_last
from agents.impala.lag import LaggedCopy
from agents.impala.learner import is_sum
from agents.impala.losses import Evaluation, Hyperparameters, Outputs, vtrace_losses
from agents.impala.network import PolicyAndValue
from agents.impala.rows import parameter_lag, resets, trained_rows
from agents.masking import masked_sum
from agents.networks.network import RecurrentNetwork, apply_to_rows, unroll_trained_core
from agents.optimization import (
    Adam,
    RMSProp,
    annealed,
    clip_by_global_norm,
    create_slots,
)
from agents.peers import ALONE, Peers, whole_metrics
from agents.stac.config import Config
from agents.stac.metaparameters import Metaparameters, outer_hyperparameters
from agents.stac.network import Head, Heads
from replay.structures import Batch, TrainedRows


class StacUpdate(tf.Module):
    """One update of parameters and metaparameters. Implements `agents.contract.Update`.

    Args:
      network: whose parameters are learned; its variables exist, and its head is `Heads`.
      config: hyperparameters.
      lagging_network: another of the same make, for actors to fetch, where the config has a policy
        lag; None where actors are to have the newest parameters.
      peers: the learners that each see a part of every batch.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        config: Config,
        *,
        lagging_network: RecurrentNetwork | None = None,
        peers: Peers = ALONE,
    ) -> None:
        super().__init__(name="stac")
        self.learned_network = network
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self.metaparameters = Metaparameters(config)
        self._config = config
        self.peers = peers
        self._outer = outer_hyperparameters(config)
        self._optimizer = RMSProp(
            self._parameters,
            decay=config.rmsprop_decay,
            momentum=config.rmsprop_momentum,
            epsilon=config.rmsprop_epsilon,
        )
        self._meta_optimizer = Adam(
            config.meta_learning_rate, config.meta_beta1, config.meta_beta2, config.meta_epsilon
        )
        create_slots(self._meta_optimizer, [self.metaparameters.eta])
        self._lagged = (
            LaggedCopy(network, lagging_network, config.policy_lag) if lagging_network else None
        )
        self.network: Network = lagging_network or network

    @update_function
    def __call__(self, batch: Batch) -> tuple[None, Mapping[str, tf.Tensor]]:
        """Improves parameters and metaparameters; returns no priorities, and metrics."""
        config, parameters, eta = self._config, self._parameters, self.metaparameters.eta
        learning_rate = annealed(
            config.learning_rate, config.final_learning_rate, self.step, config.annealing_updates
        )
        with tf.GradientTape(watch_accessed_variables=False) as meta_tape:
            meta_tape.watch(eta)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(parameters)
                evaluations, policy = self.evaluate(batch)
                loss = tf.add_n([each.loss for each in evaluations]) / config.num_heads
            gradients = tape.gradient(
                loss, parameters, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )
            gradients = self.peers.sum(gradients)  # as the loss is one, over batch and time
            gradients, norm = clip_by_global_norm(gradients, config.max_gradient_norm)
            rate = tf.cast(learning_rate, norm.dtype)
            values, slots = self._optimizer.step(gradients, parameters, rate)
        age = parameter_lag(batch, config, self.step)
        if self._lagged is not None:
            self._lagged.before_update(self.step)
        self._optimizer.assign(parameters, values, slots)
        metrics = {"loss": loss, **evaluations[0].metrics, "parameter_lag": age}
        own = {
            "gradient_norm": norm,
            "learning_rate": learning_rate,
            **self.metaparameters.metrics(),
        }
        if self.metaparameters.names:
            of_part, norms = self._tune(batch, policy, values, meta_tape)
            metrics |= of_part
            own |= norms
        self.step.assign_add(1)
        return None, {**whole_metrics(self.peers, metrics, is_sum), **own}

    def evaluate(self, batch: Batch) -> tuple[list[Evaluation], Distribution]:
        """Each head's inner loss of a batch (Algorithm 1), and the acting head's policy.

        Only the trained rows have a gradient.

        Returns:
          P evaluations, and policies `[L, B]`.
        """
        rows, outputs = trained_rows(batch, self._config), self._outputs(batch, self._heads)
        tuned = self.metaparameters.hyperparameters()
        evaluations = [losses(rows, *each) for each in zip(outputs, tuned, strict=True)]
        return evaluations, without_last(outputs[0].policy)

    def evaluate_outer(
        self, batch: Batch, old_policy: Distribution
    ) -> tuple[Evaluation, tf.Tensor]:
        """The outer loss of a batch (Equation 3) without its KL, and that.

        Args:
          batch: that was learned from.
          old_policy: `[L, B]`, of the acting head before it was.
        """
        rows, (outputs,) = trained_rows(batch, self._config), self._outputs(batch, self._heads[:1])
        divergence = without_last(outputs.policy).divergence(old_policy)
        return losses(rows, outputs, self._outer), masked_sum(divergence, rows.mask)

    def _tune(
        self,
        batch: Batch,
        old_policy: Distribution,
        values: Sequence[tf.Tensor],
        meta_tape: tf.GradientTape,
    ) -> tuple[dict[str, tf.Tensor], dict[str, tf.Tensor]]:
        """Moves η by the metagradient (Algorithm 2, lines 13 to 15).

        Args:
          batch: that was learned from.
          old_policy: `[L, B]`, of the acting head before it was.
          values: θ̃(η), which the network's parameters are already.
          meta_tape: knows how η made them.

        Returns:
          Metrics of this learner's part of the batch, and those that all of them share.
        """
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._parameters)
            outer, kl = self.evaluate_outer(batch, old_policy)
            loss = outer.loss + self._config.kl_cost * kl
        # The outer loss reaches the torso, the core and the acting head alone.
        of_values = tape.gradient(loss, self._parameters)
        reached = [pair for pair in zip(values, of_values, strict=True) if pair[1] is not None]
        moved, of_moved = zip(*reached, strict=True)
        eta = self.metaparameters.eta
        # Of all parts of the batch at θ̃; then what this part has done to θ̃, and so all of them.
        metagradient = meta_tape.gradient(
            list(moved), eta, output_gradients=self.peers.sum(of_moved)
        )
        (metagradient,) = self.peers.sum([metagradient])
        self._meta_optimizer.apply([metagradient], [eta])
        norms = tf.unstack(tf.norm(metagradient, axis=0))
        return {"outer_loss": loss, "kl": kl}, {
            "metagradient_norm": tf.norm(metagradient),
            **{
                f"{name}_metagradient": norm
                for name, norm in zip(self.metaparameters.names, norms, strict=True)
            },
        }

    @property
    def _parameters(self) -> Sequence[tf.Variable]:
        return self.learned_network.trainable_variables

    @property
    def _heads(self) -> Sequence[Head]:
        assert isinstance(self.learned_network.head, Heads)
        return self.learned_network.head.heads

    def _outputs(self, batch: Batch, heads: Sequence[Head]) -> list[PolicyAndValue]:
        """What heads say of the trained rows and the last, `[L + 1, B, ...]`."""
        config = self._config
        core_output = unroll_trained_core(
            self.learned_network, batch, batch.core_state, resets(batch, config), config.burn_in
        )
        return [apply_to_rows(head, core_output) for head in heads]


def losses(
    rows: TrainedRows, outputs: PolicyAndValue, hyperparameters: Hyperparameters
) -> Evaluation:
    """One head's losses; its value is in the rewards' units.

    Args:
      rows: L of them, what was played.
      outputs: `[L + 1, B, ...]`, of the head.
      hyperparameters: of the inner or the outer loss.
    """
    value = outputs.value[..., 0]
    zero, one = tf.zeros([], value.dtype), tf.ones([], value.dtype)
    return vtrace_losses(
        Outputs(without_last(outputs.policy), value, shift=zero, scale=one), rows, hyperparameters
    )
