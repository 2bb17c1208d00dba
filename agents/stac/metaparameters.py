"""The metaparameters η, and the inner loss's hyperparameters that they stand for."""

import tensorflow as tf

from agents.impala.losses import Hyperparameters, fixed_hyperparameters
from agents.stac.config import OUTER_COSTS, Config

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
      config: which are tuned, how many heads there are, and where η begins.

    Attributes:
      names: M of them, in the order of η's columns.
      eta: `[P, M]`, before the sigmoid.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(name="metaparameters")
        self.names = _names(config)
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
        """`[M]` -> what they stand for."""
        tuned = {}
        for name, value in zip(self.names, tf.unstack(values), strict=True):
            for field in _FIELDS[name]:
                tuned[field] = value * getattr(self._outer, field) if name in OUTER_COSTS else value
        return self._outer._replace(**tuned)


def _names(config: Config) -> tuple[str, ...]:
    alphas = ("alpha_rho", "alpha_c") if config.separate_alphas else ("alpha",)
    return tuple(
        name for tuned in config.self_tuned for name in (alphas if tuned == "alpha" else (tuned,))
    )
