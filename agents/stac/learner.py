"""The self-tuning learner step (Zahavy et al. 2020, Algorithm 2).

The inner loss is V-trace's with hyperparameters ζ(η), and RMSProp's step makes θ̃(η) of the
parameters θ. The outer loss is V-trace's with fixed hyperparameters ζ, on the same batch, at θ̃:

    ∂L_outer / ∂η = (∂θ̃ / ∂η)ᵀ ∂L_outer / ∂θ̃

The right factor is an ordinary gradient, once the network has the parameters θ̃. The left one is
linear in the losses' gradient by the network's outputs, so only the way back from there to the
parameters is differentiated a second time: no second derivative of the network.
"""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from agents.compilation import update_function
from agents.impala.distributions import Distribution, without_last
from agents.impala.learner import VTraceUpdate, is_sum
from agents.impala.network import ActorCriticHead, PolicyAndValue
from agents.impala.vtrace import (
    Evaluation,
    Hyperparameters,
    Outputs,
    fixed_hyperparameters,
    vtrace_losses,
)
from agents.masking import masked_sum
from agents.networks.network import RecurrentNetwork, apply_to_rows
from agents.optimization import Adam, create_slots
from agents.several_learners import current, gradients_of, whole_metrics
from agents.stac.config import OUTER_COSTS, Config
from agents.stac.network import Heads
from replay.structures import Batch, TrainedRows

_FIELDS = {
    "gamma": ("discount",),
    "lambda": ("lambda_",),
    "alpha": ("alpha_rho", "alpha_c"),
    "alpha_rho": ("alpha_rho",),
    "alpha_c": ("alpha_c",),
} | {name: (cost,) for name, cost in OUTER_COSTS.items()}


def outer_hyperparameters(config: Config) -> Hyperparameters:
    """ζ, the fixed hyperparameters of the outer loss (Zahavy et al. 2020, Table 3)."""
    return fixed_hyperparameters(config)._replace(
        policy_gradient_cost=config.policy_gradient_cost,
        alpha_rho=config.alpha,
        alpha_c=config.alpha,
    )


class Metaparameters(tf.Module):
    """η: for each head, a number for each hyperparameter that is self-tuned.

    Args:
      config: says which are tuned, the number of heads, and the initial η.

    Attributes:
      names: M of them, in the order of η's columns.
      eta: `[P, M]`, before the sigmoid.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(name="metaparameters")
        alphas = ("alpha_rho", "alpha_c") if config.separate_alphas else ("alpha",)
        self.names = tuple(
            name
            for tuned in config.self_tuned
            for name in (alphas if tuned == "alpha" else (tuned,))
        )
        self._outer = outer_hyperparameters(config)
        shape = [config.num_heads, len(self.names)]
        self.eta = tf.Variable(tf.fill(shape, config.meta_initial), name="eta")

    def hyperparameters(self) -> list[Hyperparameters]:
        """ζ(η) of each head, to be differentiated by η (Algorithm 2, line 10).

        A sigmoid bounds each; the losses' coefficients are multiplied with their outer values.
        What is not tuned has its outer value.
        """
        return [self._of_head(values) for values in tf.unstack(tf.sigmoid(self.eta))]

    def metrics(self) -> dict[str, tf.Tensor]:
        """σ(η) as `<name>/<head>`: the coefficients without their outer values (Figure 5)."""
        values = tf.sigmoid(self.eta)
        return {
            f"{name}/{head + 1}": values[head, column]
            for column, name in enumerate(self.names)
            for head in range(values.shape[0])
        }

    def _of_head(self, values: tf.Tensor) -> Hyperparameters:
        """`[M]` -> the hyperparameters that they stand for."""
        tuned = {}
        for name, value in zip(self.names, tf.unstack(values), strict=True):
            for field in _FIELDS[name]:
                tuned[field] = value * getattr(self._outer, field) if name in OUTER_COSTS else value
        return self._outer._replace(**tuned)


class StacUpdate(VTraceUpdate):
    """One update of parameters and metaparameters.

    Args:
      network: as for `VTraceUpdate`, and its head is `Heads`; so are `config` and
        `lagging_network`.
    """

    _config: Config

    def __init__(
        self,
        network: RecurrentNetwork,
        config: Config,
        *,
        lagging_network: RecurrentNetwork | None = None,
    ) -> None:
        super().__init__("stac", network, config, lagging_network)
        self.metaparameters = Metaparameters(config)
        self._outer = outer_hyperparameters(config)
        self._meta_optimizer = Adam(
            config.meta_learning_rate, config.meta_beta1, config.meta_beta2, config.meta_epsilon
        )
        create_slots(self._meta_optimizer, [self.metaparameters.eta])

    @update_function
    def __call__(self, batch: Batch) -> tuple[None, Mapping[str, tf.Tensor]]:
        """Improves parameters and metaparameters; returns no priorities, and metrics."""
        parameters, eta = self._parameters, self.metaparameters.eta
        learning_rate = self._annealed_rate()
        with tf.GradientTape(watch_accessed_variables=False) as meta_tape:
            meta_tape.watch(eta)
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(parameters)
                evaluations, policy = self.evaluate(batch)
                loss = tf.add_n([each.loss for each in evaluations]) / self._config.num_heads
            gradients = gradients_of(loss, parameters, tape)
            gradients, norm = self._summed(gradients)
            rate = tf.cast(learning_rate, norm.dtype)
            values, slots = self._optimizer.step(gradients, parameters, rate)
        age = self._parameter_lag(batch)
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
        return None, {**whole_metrics(metrics, is_sum), **own}

    def evaluate(self, batch: Batch) -> tuple[list[Evaluation], Distribution]:
        """Each head's inner loss of a batch (Algorithm 1), and the acting head's policy.

        Only the trained rows have a gradient.

        Returns:
          P evaluations, and policies `[L, B]`.
        """
        rows, outputs = self._trained_rows(batch), self._outputs(batch, self._heads)
        tuned = self.metaparameters.hyperparameters()
        evaluations = [losses(rows, *each) for each in zip(outputs, tuned, strict=True)]
        return evaluations, without_last(outputs[0].policy)

    def evaluate_outer(
        self, batch: Batch, old_policy: Distribution
    ) -> tuple[Evaluation, tf.Tensor]:
        """The outer loss of a batch (Equation 3) without its KL, and the KL.

        Args:
          batch: the one that was learned from.
          old_policy: `[L, B]`, of the acting head before the update.
        """
        rows, (outputs,) = self._trained_rows(batch), self._outputs(batch, self._heads[:1])
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
          batch: the one that was learned from.
          old_policy: `[L, B]`, of the acting head before the update.
          values: θ̃(η), already the network's parameters.
          meta_tape: recorded θ̃(η).

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
            list(moved),
            eta,
            output_gradients=current().sum(of_moved),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,  # as λ of unrolls of one step
        )
        (metagradient,) = current().sum([metagradient])
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
    def _heads(self) -> Sequence[ActorCriticHead]:
        assert isinstance(self.learned_network.head, Heads)
        return self.learned_network.head.heads

    def _outputs(self, batch: Batch, heads: Sequence[ActorCriticHead]) -> list[PolicyAndValue]:
        """The heads' outputs on the trained rows and the last, `[L + 1, B, ...]`."""
        core_output = self._core_output(batch)
        return [apply_to_rows(head, core_output) for head in heads]


def losses(
    rows: TrainedRows, outputs: PolicyAndValue, hyperparameters: Hyperparameters
) -> Evaluation:
    """One head's losses; its value is in the rewards' units.

    Args:
      rows: L steps.
      outputs: `[L + 1, B, ...]`, of the head.
      hyperparameters: of the inner or the outer loss.
    """
    value = outputs.value[..., 0]
    zero, one = tf.zeros([], value.dtype), tf.ones([], value.dtype)
    return vtrace_losses(
        Outputs(without_last(outputs.policy), value, shift=zero, scale=one), rows, hyperparameters
    )
