"""The metagradient against differences of the outer loss through the whole update, in float64."""

import dataclasses

import numpy as np
import pytest

from agents.impala.vtrace import Outputs
from agents.stac.agent import Config
from agents.stac.learner import outer_hyperparameters
from tests.agents.impala import oracle
from tests.agents.stac.batches import batch_of_images, outputs_of, update_in_float64
from tests.small_agents import small_config, with_ends

ENDS = {(3, 0): True, (3, 1): False, (1, 2): True}
STEP = 1e-4  # of η: small, so that no ReLU switches between two points

# No value is one at which something vanishes; both importance weights are truncated for some rows
# and not for others.
CONFIG = small_config(
    "stac",
    torso="shallow",
    head_hidden_sizes=(5,),
    num_heads=2,
    batch_size=4,
    length=6,
    separate_alphas=True,
    discount=0.9,
    lambda_=0.8,
    rho_bar=1.3,
    c_bar=0.8,
    alpha=0.7,
    policy_gradient_cost=0.7,
    baseline_cost=0.4,
    entropy_cost=0.6,
    kl_cost=0.5,
    learning_rate=2e-2,
    rmsprop_decay=0.9,
    rmsprop_momentum=0.5,
    rmsprop_epsilon=0.2,
    max_gradient_norm=None,
    meta_initial=0.6,
)


class Trial:
    """An update and a batch, to be made again from the same parameters with another η."""

    def __init__(self, config: Config, *, continuous: bool = False) -> None:
        self.config = config
        self.batch = with_ends(batch_of_images(config, continuous=continuous), ENDS)
        self.update = update_in_float64(config, continuous=continuous)
        self._variables = self.update.variables
        self._before = [v.numpy() for v in self._variables]
        rng = np.random.default_rng(3)
        eta = self.update.metaparameters.eta
        self.eta = eta.numpy() + rng.normal(size=eta.shape) / 2
        self.old = outputs_of(self.update, self.batch)[0]

    def metagradient(self) -> np.ndarray:
        """[P, M], as the update takes it: its optimizer is plain gradient descent."""
        self.make_step(self.eta)
        return self.eta - self.update.metaparameters.eta.numpy()

    def make_step(self, eta: np.ndarray) -> Outputs:
        """The acting head's outputs for the batch, after an update with that η."""
        for variable, value in zip(self._variables, self._before, strict=True):
            variable.assign(value)
        self.update.metaparameters.eta.assign(eta)
        self.update(self.batch)
        return outputs_of(self.update, self.batch)[0]

    def objective(self, eta: np.ndarray, held: "Held") -> float:
        """The outer loss and its KL after an update with that η, what is stopped held."""
        return held.objective(self.make_step(eta), self.old, self.config)


class Held:
    """The constants of Algorithm 1's outer loss: weights, targets and advantages at one η."""

    def __init__(self, trial: Trial, eta: np.ndarray) -> None:
        outputs, h = trial.make_step(eta), outer_hyperparameters(trial.config)
        rows = trial.batch.trained(0)
        self._real = rows.mask.numpy() > 0
        self._rows = arrays = type(rows)(*(x.numpy() for x in rows))
        self.ratio = np.exp(oracle.log_ratio(outputs, arrays))[self._real]
        self._v, q, policy = oracle.targets(outputs, arrays, h, "vtrace")
        self._weighted = policy * (q - outputs.value[:-1])

    def objective(self, outputs: Outputs, old: Outputs, config: Config) -> float:
        taken = oracle.log_probability(outputs, self._rows)
        each = -config.policy_gradient_cost * self._weighted * taken
        each = each + config.baseline_cost * 0.5 * (self._v - outputs.value[:-1]) ** 2
        each = each + config.entropy_cost * oracle.regularisation(outputs.policy)
        each = each + config.kl_cost * oracle.divergence(outputs.policy, old.policy)
        return float(each[self._real].sum())


def _difference(trial: Trial, held: Held, index: tuple[int, ...]) -> float:
    """The derivative by one number of η, from five points."""
    total = 0.0
    for steps, weight in [(-2, 1), (-1, -8), (1, 8), (2, -1)]:
        eta = trial.eta.copy()
        eta[index] += steps * STEP
        total += weight * trial.objective(eta, held)
    return total / (12 * STEP)


@pytest.mark.parametrize(
    ("limit", "separate", "continuous"),
    [(None, True, False), (1.0, False, False), (None, False, True), (1.0, True, True)],
)
def test_the_metagradient_is_the_outer_losss_slope(
    limit: float | None, separate: bool, continuous: bool
) -> None:
    """Each two of the three choices meet in every way."""
    config = dataclasses.replace(CONFIG, max_gradient_norm=limit, separate_alphas=separate)
    if continuous and limit is None:  # else one step would move the Gaussians too far
        config = dataclasses.replace(config, learning_rate=CONFIG.learning_rate / 10)
    trial = Trial(config, continuous=continuous)
    held = Held(trial, trial.eta)
    for bar in (config.rho_bar, config.c_bar):
        assert 3 < (held.ratio > bar).sum() < held.ratio.size - 3
    actual = trial.metagradient()
    assert actual.shape == (2, 7 if separate else 6)
    expected = [_difference(trial, held, index) for index in np.ndindex(*actual.shape)]
    np.testing.assert_allclose(actual.ravel(), expected, rtol=1e-5)
    assert (np.abs(actual) > 1e-7).all()
