"""Every hyperparameter of recurrent SAC, with the values of the papers it is made of."""

import dataclasses

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
    LAYER_SIZES,
    LENGTH,
    LOG_SIGMA,
    OPTIONAL_LAYER_SIZE,
    POSITIVE,
    TORSO,
    Precision,
    check_layers,
    number,
    or_none,
)
from replay.layout import Layout


@dataclasses.dataclass(frozen=True)
class Config:
    """Hyperparameters of soft actor-critic on R2D2's sequences.

    Soft actor-critic's are from Haarnoja et al. 2018 ("Soft Actor-Critic Algorithms and
    Applications", Appendix D), called SAC; its authors' published code (rail-berkeley/softlearning)
    is "SAC's code". Replay's are R2D2's (Kapturowski et al. 2019, Table 2). The recurrent network's
    are from the published code of Ni et al. 2022 ("Recurrent Model-Free RL Can Be a Strong Baseline
    for Many POMDPs"), called Ni.
    """

    burn_in: int = field(
        40, BURN_IN, "Steps that only warm up the recurrent state (R2D2; none in Ni)."
    )
    length: int = field(80, LENGTH, "Trained steps of an item (R2D2; Ni: 64).")
    period: int = field(
        40,
        LENGTH,
        "Steps from one item's start to the next one's (R2D2); a preset's gives way to a shorter "
        "`length`.",
    )
    frame_stack: int = field(1, FRAMES, "Frames of one network input, of images alone.")
    replay_size: int = field(
        25_000, ITEMS, "Items, the largest number kept: SAC's million steps, 40 new ones an item."
    )
    min_replay_size: int = field(
        250, ITEMS, "Items before learning starts: Ni's ten episodes of 1,000 steps."
    )
    samples_per_insert: float | None = field(
        128.0,
        or_none(number(1e-4, 1e6)),
        "Samples of an item for each item inserted. SAC draws 256 steps for each new one, and a "
        "step is in length / period = 2 items. None sets no limit.",
    )
    priority_exponent: float = field(0.9, EXPONENT, "α of P(i) ∝ p_i^α (R2D2).")
    importance_exponent: float = field(
        0.6, EXPONENT, "β of the weights (N P(i))^-β (R2D2); 0 switches them off."
    )
    eta: float = field(0.9, FRACTION, "η of p = η max |δ| + (1 − η) mean |δ| (R2D2).")
    discount: float = field(0.99, FRACTION, "γ (SAC).")
    n_step: int = field(1, LENGTH, "n, rewards of a target (SAC: 1).")
    target_entropy: float | None = field(
        None,
        or_none(number(-1e6, 1e6)),
        "H̄, the entropy of a step's action that the temperature keeps, in nats, of actions "
        "scaled to [-1, 1]. None is -D for actions of D numbers (SAC).",
    )
    initial_temperature: float = field(
        1.0, number(1e-6, 1e6), "α, the weight of entropy beside reward, at first (SAC's code)."
    )
    tau: float = field(
        0.005,
        number(1e-6, 1),
        "τ, the share of the difference by which target parameters follow in an update (SAC).",
    )
    log_sigma_min: float = field(
        -20.0, LOG_SIGMA, "The least log σ of the policy's Gaussian (SAC's code)."
    )
    log_sigma_max: float = field(2.0, LOG_SIGMA, "The greatest log σ (SAC's code).")
    batch_size: int = field(64, BATCH_SIZE, "Items of one update (R2D2, and Ni).")
    learning_rate: float = field(3e-4, POSITIVE, "Of Adam, for all parameters (SAC, Ni).")
    adam_epsilon: float = field(1e-8, POSITIVE, "ε of Adam (its authors' value, as SAC's code).")
    max_gradient_norm: float = field(
        40.0,
        POSITIVE,
        "Global norm that the critics' gradient and the policy's are each clipped to (R2D2; SAC "
        "does not clip).",
    )
    variable_update_period: int = field(
        40, COUNT, "Steps of an environment between two fetches of parameters (R2D2: 400)."
    )
    torso: str = field(
        "mlp",
        TORSO,
        "`mlp` for vectors, `strided` for images (Zahavy et al. 2020, Table 2), `dqn`, `shallow`, "
        f"`resnet`, or your own as `{TORSO_EXAMPLE}`.",
    )
    hidden_sizes: tuple[int, ...] = field(
        (128,),
        LAYER_SIZES,
        "Units of the layers of the `mlp` torso, and of a vector's beside images (Ni: one layer).",
    )
    core: str = field(
        "lstm",
        CORE,
        "What carries memory: `lstm` (Ni), `gru`, `lru` or `mingru` (docs/cores.md), or your "
        f"own as `{CORE_EXAMPLE}`.",
    )
    lstm_size: int = field(
        128,
        OPTIONAL_LAYER_SIZE,
        "Units of the core, of whichever kind (Ni); 0 is the feed-forward variant.",
    )
    forget_bias: float = field(
        FORGET_BIAS,
        GATE_BIAS,
        "Of the forget gate of `lstm` and `mingru` at the start, where it keeps σ(this) of a state "
        "for a step.",
        stays="with which its core's gates began",
    )
    head_hidden_sizes: tuple[int, ...] = field(
        (256, 256),
        LAYER_SIZES,
        "Units of the hidden layers of the policy's head and of each critic's (SAC, Ni).",
    )
    precision: Precision = field(
        "float32",
        None,
        "Of the arithmetic in the torso and the heads' hidden layers, and of the LSTM's products "
        "with its inputs; `bfloat16` is faster where the machine has it. All else is float32.",
    )

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        fields.check(self)
        if self.min_replay_size > self.replay_size:
            raise ValueError(
                f"min_replay_size must be at most replay_size ({self.replay_size}), or learning "
                f"would never start; got {self.min_replay_size}."
            )
        _ = self.layout  # which refuses what does not fit
        if self.log_sigma_min > self.log_sigma_max:
            raise ValueError(
                f"log_sigma_min must be at most log_sigma_max ({self.log_sigma_max:g}), "
                f"got {self.log_sigma_min:g}."
            )
        hidden_sizes = self.hidden_sizes if self.torso == "mlp" else ()
        check_layers(hidden_sizes, self.lstm_size, self.head_hidden_sizes[0], core=self.core)
        check_layers(self.head_hidden_sizes, 0)

    @property
    def layout(self) -> Layout:
        """How the actors' stream is cut into items."""
        return Layout(self.burn_in, self.length, self.period, self.frame_stack)


CONTROL = Config()
CONTROL_IMAGE = Config(torso="strided")
