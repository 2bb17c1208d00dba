"""Every hyperparameter of R2D2 and its variants, with the paper's values as defaults."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from agents.networks.layers import Precision
from agents.networks.torsos import TorsoKind
from agents.requirements import (
    BATCH_SIZE,
    BURN_IN,
    COUNT,
    EXPONENT,
    FRACTION,
    FRAMES,
    ITEMS,
    LAYER_SIZE,
    LAYER_SIZES,
    LENGTH,
    NOT_NEGATIVE,
    OPTIONAL_LAYER_SIZE,
    POSITIVE,
    Requirement,
    check_fields,
    check_layers,
    number,
    one_of,
    or_none,
)
from agents.rewards import RewardTransform
from replay.structures import Layout

LifeLoss = Literal["none", "reset", "roll"]


@dataclasses.dataclass(frozen=True)
class Config:
    """R2D2's hyperparameters: Kapturowski et al. 2019, Table 2, unless another source is named.

    Attributes:
      burn_in: steps that only warm up the recurrent state (Section 3: 40; ablations 0 and 20).
      length: trained steps of an item, the paper's m.
      period: steps from one item's start to the next one's (Section 2.3: items overlap by 40).
      frame_stack: frames of one network input (Section 2.3; 1 on DMLab).
      replay_size: items, the largest number kept.
      min_replay_size: items before learning starts. Ape-X (Horgan et al. 2018, Appendix C) waits
        for 50,000 transitions, and an item brings `period` new ones: 50,000 / 40.
      samples_per_insert: samples of an item for each item inserted; None, as in the paper, sets no
        limit.
      priority_exponent: α of P(i) ∝ p_i^α.
      importance_exponent: β of the weights (N P(i))^-β; 0 switches them off.
      eta: η of p = η max |δ| + (1 − η) mean |δ| (Section 2.3).
      discount: γ; the ablation "Discount" has 0.99.
      n_step: n, rewards of a target (Section 2.3).
      rescale: whether values are rescaled with h; the ablation "Clipped" does without.
      rescaling_epsilon: ε of h.
      reward_transform: what happens to each reward first: `none`, `clip` to [-1, 1] (the ablation
        "Clipped"), or `asymmetric` (R2D2+; Espeholt et al. 2018, Figure C.1).
      batch_size: items of one update.
      learning_rate: of Adam.
      adam_epsilon: ε of Adam.
      max_gradient_norm: global norm the gradient is clipped to (Ape-X, Appendix C).
      target_update_period: updates from one copy into the target network to the next.
      variable_update_period: steps of an environment between two fetches of parameters.
      epsilon_base: ε of the actors' ladder ε^(1 + α i / (N − 1)) (Ape-X, Section 4).
      epsilon_alpha: α of that ladder (Ape-X, Section 4).
      evaluation_epsilon: ε of evaluation; the paper does not say, and 0 is greedy.
      stored_state: whether an item starts from its stored recurrent state or from zero (Section 3).
      life_loss: what a lost life means (Figure 8): nothing (`none`), no bootstrapping across it
        (`roll`), or that and a reset of the recurrent state (`reset`).
      torso: `dqn` (Appendix), IMPALA's `shallow` or `resnet` (R2D2+), `mlp` for small observations.
      hidden_sizes: units of the layers of the `mlp` torso; no other torso reads them.
      lstm_size: units of the LSTM (Appendix); 0 is the feed-forward variant.
      head_size: units of the hidden layer of each dueling head (Appendix).
      precision: of the arithmetic in the torso and the heads' hidden layers, and of the LSTM's
        products with its inputs; `bfloat16` is faster where the machine has it. All else, the
        LSTM's gates, targets and losses among it, is float32.
    """

    burn_in: int = 40
    length: int = 80
    period: int = 40
    frame_stack: int = 4
    replay_size: int = 100_000
    min_replay_size: int = 1_250
    samples_per_insert: float | None = None
    priority_exponent: float = 0.9
    importance_exponent: float = 0.6
    eta: float = 0.9
    discount: float = 0.997
    n_step: int = 5
    rescale: bool = True
    rescaling_epsilon: float = 1e-3
    reward_transform: RewardTransform = "none"
    batch_size: int = 64
    learning_rate: float = 1e-4
    adam_epsilon: float = 1e-3
    max_gradient_norm: float = 40.0
    target_update_period: int = 2_500
    variable_update_period: int = 400
    epsilon_base: float = 0.4
    epsilon_alpha: float = 7.0
    evaluation_epsilon: float = 0.0
    stored_state: bool = True
    life_loss: LifeLoss = "none"
    torso: TorsoKind = "dqn"
    hidden_sizes: tuple[int, ...] = (256,)
    lstm_size: int = 512
    head_size: int = 512
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        check_fields(self, _REQUIREMENTS)
        if self.min_replay_size > self.replay_size:
            raise ValueError(
                f"min_replay_size must be at most replay_size ({self.replay_size}), or learning "
                f"would never start; got {self.min_replay_size}."
            )
        _ = self.layout  # which refuses what does not fit
        hidden_sizes = self.hidden_sizes if self.torso == "mlp" else ()
        check_layers(hidden_sizes, self.lstm_size, self.head_size)

    @property
    def layout(self) -> Layout:
        """How the actors' stream is cut into items."""
        return Layout(self.burn_in, self.length, self.period, self.frame_stack)


_REQUIREMENTS: Mapping[str, Requirement] = {
    "burn_in": BURN_IN,
    "length": LENGTH,
    "period": LENGTH,
    "frame_stack": FRAMES,
    "replay_size": ITEMS,
    "min_replay_size": ITEMS,
    "samples_per_insert": or_none(number(1e-4, 1e6)),  # beyond, one side waits for ever
    "priority_exponent": EXPONENT,
    "importance_exponent": EXPONENT,
    "eta": FRACTION,
    "discount": FRACTION,
    "n_step": LENGTH,
    "rescaling_epsilon": POSITIVE,
    "reward_transform": one_of(RewardTransform),
    "batch_size": BATCH_SIZE,
    "learning_rate": POSITIVE,
    "adam_epsilon": POSITIVE,
    "max_gradient_norm": POSITIVE,
    "target_update_period": COUNT,
    "variable_update_period": COUNT,
    "epsilon_base": FRACTION,
    "epsilon_alpha": NOT_NEGATIVE,
    "evaluation_epsilon": FRACTION,
    "life_loss": one_of(LifeLoss),
    "torso": one_of(TorsoKind),
    "hidden_sizes": LAYER_SIZES,
    "lstm_size": OPTIONAL_LAYER_SIZE,
    "head_size": LAYER_SIZE,
    "precision": one_of(Precision),
}

VARIANTS: Mapping[str, Config] = {
    "r2d2": Config(),
    # Section 4.2 and Table 2, for DMLab only.
    "r2d2_plus": Config(
        torso="resnet",
        reward_transform="asymmetric",
        target_update_period=400,
        batch_size=32,
    ),
    # Section 5: "all other parameters held fixed". Without a state there is nothing to burn in.
    "r2d2_feedforward": Config(lstm_size=0, burn_in=0),
}

# Section 2.3: no stacks of frames on DMLab.
DMLAB_VARIANTS: Mapping[str, Config] = {
    name: dataclasses.replace(config, frame_stack=1) for name, config in VARIANTS.items()
}
