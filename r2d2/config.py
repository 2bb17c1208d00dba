"""Every hyperparameter of R2D2 and its variants, with the paper's values as defaults."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from agents import fields
from agents.fields import field
from agents.networks.named import CORE_EXAMPLE, FORGET_BIAS, TORSO_EXAMPLE
from agents.requirements import (
    BATCH_SIZE,
    BURN_IN,
    CORE,
    COUNT,
    EXPONENT,
    FRACTION,
    FRAMES,
    GATE_BIAS,
    ITEMS,
    LAYER_SIZE,
    LAYER_SIZES,
    LENGTH,
    NOT_NEGATIVE,
    OPTIONAL_LAYER_SIZE,
    POSITIVE,
    TORSO,
    Precision,
    RewardTransform,
    check_layers,
    number,
    or_none,
)
from replay.layout import Layout

LifeLoss = Literal["none", "reset", "roll"]
Returns = Literal["n_step", "watkins", "retrace"]


@dataclasses.dataclass(frozen=True)
class Config:
    """R2D2's hyperparameters: Kapturowski et al. 2019, Table 2, unless another source is named."""

    burn_in: int = field(
        40,
        BURN_IN,
        "Steps that only warm up the recurrent state (Section 3: 40; ablations 0 and 20).",
    )
    length: int = field(80, LENGTH, "Trained steps of an item, the paper's m.")
    period: int = field(
        40,
        LENGTH,
        "Steps from one item's start to the next one's (Section 2.3: items overlap by 40); a "
        "preset's gives way to a shorter `length`.",
    )
    frame_stack: int = field(4, FRAMES, "Frames of one network input (Section 2.3; 1 on DMLab).")
    replay_size: int = field(100_000, ITEMS, "Items, the largest number kept.")
    min_replay_size: int = field(
        1_250,
        ITEMS,
        "Items before learning starts. Ape-X (Horgan et al. 2018, Appendix C) waits for 50,000 "
        "transitions, and an item brings `period` new ones: 50,000 / 40.",
    )
    samples_per_insert: float | None = field(
        None,
        or_none(number(1e-4, 1e6)),
        "Samples of an item for each item inserted; None, as in the paper, sets no limit.",
    )
    priority_exponent: float = field(0.9, EXPONENT, "α of P(i) ∝ p_i^α.")
    importance_exponent: float = field(
        0.6, EXPONENT, "β of the weights (N P(i))^-β; 0 switches them off."
    )
    eta: float = field(0.9, FRACTION, "η of p = η max |δ| + (1 − η) mean |δ| (Section 2.3).")
    discount: float = field(0.997, FRACTION, 'γ; the ablation "Discount" has 0.99.')
    n_step: int = field(5, LENGTH, "n, rewards of a target (Section 2.3), with `returns` n_step.")
    returns: Returns = field(
        "n_step",
        None,
        "What a target is: n rewards, or a λ-return, which ends where an action was not the "
        "policy's: soft Watkins Q(λ) (Kapturowski et al. 2022, MEME) or Retrace(λ).",
    )
    lambda_: float = field(0.95, FRACTION, "λ of `watkins` and `retrace` (MEME, Table 2).")
    kappa: float = field(0.01, NOT_NEGATIVE, "κ of `watkins`: the part of V an action may lack.")
    trust_region: float = field(
        0.0,
        NOT_NEGATIVE,
        "α of MEME's trust region: targets are the online network's, and no step is learned that "
        "leads on beyond α σ from the target network; 0 is none.",
    )
    normalise_td: bool = field(False, None, "Whether the loss is of errors divided by σ (MEME).")
    munchausen_alpha: float = field(0.0, FRACTION, "α of Munchausen's bonus (0.9 there); 0: none.")
    munchausen_l0: float = field(-1.0, number(-1e15, 0), "l_0, the least that τ log π counts for.")
    tau: float = field(
        0.03, number(1e-4, 1e4), "τ of π = softmax(Q / τ), without h, of Munchausen and `retrace`."
    )
    rescale: bool = field(
        True, None, 'Whether values are rescaled with h; the ablation "Clipped" does without.'
    )
    rescaling_epsilon: float = field(1e-3, POSITIVE, "ε of h.")
    reward_transform: RewardTransform = field(
        "none",
        None,
        'What happens to each reward first: `none`, `clip` to [-1, 1] (the ablation "Clipped"), '
        "or `asymmetric` (R2D2+; Espeholt et al. 2018, Figure C.1).",
    )
    batch_size: int = field(64, BATCH_SIZE, "Items of one update.")
    learning_rate: float = field(1e-4, POSITIVE, "Of Adam.")
    adam_epsilon: float = field(1e-3, POSITIVE, "ε of Adam.")
    max_gradient_norm: float = field(
        40.0, POSITIVE, "Global norm the gradient is clipped to (Ape-X, Appendix C)."
    )
    target_update_period: int = field(
        2_500, COUNT, "Updates from one copy into the target network to the next."
    )
    variable_update_period: int = field(
        400, COUNT, "Steps of an environment between two fetches of parameters."
    )
    epsilon_base: float = field(
        0.4, FRACTION, "ε of the actors' ladder ε^(1 + α i / (N − 1)) (Ape-X, Section 4)."
    )
    epsilon_alpha: float = field(7.0, NOT_NEGATIVE, "α of that ladder (Ape-X, Section 4).")
    evaluation_epsilon: float = field(
        0.0, FRACTION, "ε of evaluation; the paper does not say, and 0 is greedy."
    )
    stored_state: bool = field(
        True,
        None,
        "Whether an item starts from its stored recurrent state or from zero (Section 3).",
    )
    life_loss: LifeLoss = field(
        "none",
        None,
        "What a lost life means (Figure 8): nothing (`none`), no bootstrapping across it "
        "(`roll`), or that and a reset of the recurrent state (`reset`).",
    )
    torso: str = field(
        "dqn",
        TORSO,
        "`dqn` (Appendix), IMPALA's `shallow` or `resnet` (R2D2+), `mlp` for small observations, "
        f"or your own as `{TORSO_EXAMPLE}`.",
    )
    hidden_sizes: tuple[int, ...] = field(
        (256,),
        LAYER_SIZES,
        "Units of the layers of the `mlp` torso, and of a vector's beside images.",
    )
    core: str = field(
        "lstm",
        CORE,
        "What carries memory: `lstm` (Appendix), `gru`, `lru` or `mingru` (docs/cores.md), or your "
        f"own as `{CORE_EXAMPLE}`.",
    )
    lstm_size: int = field(
        512,
        OPTIONAL_LAYER_SIZE,
        "Units of the core, of whichever kind (Appendix); 0 is the feed-forward variant.",
    )
    forget_bias: float = field(
        FORGET_BIAS,
        GATE_BIAS,
        "Of the forget gate of `lstm` and `mingru` at the start, where it keeps σ(this) of a state "
        "for a step.",
        stays="with which its core's gates began",
    )
    head_size: int = field(
        512, LAYER_SIZE, "Units of the hidden layer of each dueling head (Appendix)."
    )
    precision: Precision = field(
        "float32",
        None,
        "Of the arithmetic in the torso and the heads' hidden layers, and of the core's products "
        "with its inputs; `bfloat16` is faster where the machine has it. All else, the core's "
        "gates, targets and losses among it, is float32.",
    )

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        fields.check(self)
        if self.min_replay_size > self.replay_size:
            raise ValueError(
                f"min_replay_size must be at most replay_size ({self.replay_size}), or learning "
                f"would never start; got {self.min_replay_size}."
            )
        if self.trust_region and self.munchausen_alpha:
            raise ValueError(
                "munchausen_alpha takes targets of the target network, trust_region of the other: "
                f"one must be 0, got {self.munchausen_alpha} and {self.trust_region}."
            )
        _ = self.layout  # which refuses what does not fit
        hidden_sizes = self.hidden_sizes if self.torso == "mlp" else ()
        check_layers(hidden_sizes, self.lstm_size, self.head_size, core=self.core)

    @property
    def layout(self) -> Layout:
        """How the actors' stream is cut into items."""
        return Layout(self.burn_in, self.length, self.period, self.frame_stack)


VARIANTS: Mapping[str, Config] = {
    "r2d2": Config(),
    # Section 4.2 and Table 2, for DMLab only.
    "r2d2_plus": Config(
        torso="resnet", reward_transform="asymmetric", target_update_period=400, batch_size=32
    ),
    # Section 5: "all other parameters held fixed". Without a state there is nothing to burn in.
    "r2d2_feedforward": Config(lstm_size=0, burn_in=0),
}

# Section 2.3: no stacks of frames on DMLab.
DMLAB_VARIANTS: Mapping[str, Config] = {
    name: dataclasses.replace(config, frame_stack=1) for name, config in VARIANTS.items()
}
