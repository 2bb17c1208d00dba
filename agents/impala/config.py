"""Every hyperparameter of IMPALA, with the paper's values as defaults."""

import dataclasses
from typing import Any, Literal

from agents import fields
from agents.fields import field
from agents.networks.named import CORE_EXAMPLE, FORGET_BIAS, TORSO_EXAMPLE
from agents.requirements import (
    BATCH_SIZE,
    BURN_IN,
    CORE,
    COUNT,
    FRACTION,
    FRAMES,
    GATE_BIAS,
    ITEMS,
    LAYER_SIZES,
    LENGTH,
    LOG_SIGMA,
    NOT_NEGATIVE,
    OPTIONAL_LAYER_SIZE,
    POSITIVE,
    TORSO,
    Precision,
    Requirement,
    RewardTransform,
    check_layers,
    or_infinite,
    or_none,
    whole,
)
from replay.layout import Layout

Correction = Literal["vtrace", "one_step", "epsilon", "none"]


@dataclasses.dataclass(frozen=True)
class Config:
    """IMPALA's hyperparameters, for Atari: Espeholt et al. 2018, Table F.1, unless stated.

    What neither the paper's tables nor its text give is taken from its authors' published code
    (google-deepmind/scalable_agent), called "the code" here.
    """

    burn_in: int = field(
        0,
        BURN_IN,
        "Steps before an unroll that only warm up the recurrent state: none in the paper; for "
        "streams in which another agent's network acted.",
    )
    length: int = field(
        20, LENGTH, "Steps of an unroll, n. Actors fetch parameters once per unroll (Section 3)."
    )
    period: int | None = field(
        None,
        or_none(LENGTH),
        "Steps from the beginning of one unroll to that of the next, at most `length`. None is "
        "`length`: unrolls follow one another without overlap, as in the paper. A preset's gives "
        "way to a shorter `length`.",
    )
    frame_stack: int = field(4, FRAMES, "Frames of one network input.")
    queue_size: int = field(
        64,
        ITEMS,
        "Unrolls that wait for the learner at most, more than a batch and one; the paper says "
        "nothing of it. Two batches keep the learner busy and the unrolls fresh.",
    )
    replay_fraction: float = field(
        0.0,
        Requirement("at least 0 and less than 1", lambda value: 0 <= value < 1),
        "Of each batch that is drawn uniformly from replay; Section 5.2.2: 0 or 0.5.",
    )
    replay_size: int = field(
        10_000, ITEMS, "Unrolls in replay, the oldest leaves first (Table C.3)."
    )
    discount: float = field(0.99, FRACTION, "γ.")
    correction: Correction = field(
        "vtrace",
        None,
        "For off-policy data (Section 5.2.2): `vtrace`, `one_step` importance sampling, "
        "`epsilon`-correction, or `none`.",
    )
    rho_bar: float = field(
        1.0,
        or_infinite(POSITIVE),
        "ρ̄, where the importance weights ρ are truncated (Section 5.2.2); inf is 100,000.",
    )
    c_bar: float = field(
        1.0,
        or_infinite(POSITIVE),
        "c̄, where the traces c are truncated (Section 5.2.2); at most ρ̄ (Section 4.1).",
    )
    lambda_: float = field(
        1.0, FRACTION, "λ, which multiplies the traces (Remark 2); the paper leaves it out."
    )
    reward_transform: RewardTransform = field(
        "clip",
        None,
        "What happens to each reward first: `none`, `clip` to [-1, 1], or `asymmetric` (Figure "
        "C.1).",
    )
    life_loss: bool = field(
        True,
        None,
        "Whether a lost life ends the episode, for the learner's returns and for the recurrent "
        "state; the environment goes on.",
    )
    baseline_cost: float = field(0.5, NOT_NEGATIVE, "What the baseline loss is multiplied with.")
    entropy_cost: float = field(
        0.01,
        NOT_NEGATIVE,
        "What the entropy bonus is multiplied with; of a Gaussian policy, its divergence from the "
        "standard Gaussian.",
    )
    log_sigma_min: float = field(
        -5.0,
        LOG_SIGMA,
        "The least log σ of a Gaussian policy, where actions are vectors (Zahavy et al. 2020, "
        "Section 9.3, who do not give it).",
    )
    log_sigma_max: float = field(
        2.0, LOG_SIGMA, "The greatest log σ of a Gaussian policy; as little known."
    )
    pixel_control_cost: float = field(
        0.0,
        NOT_NEGATIVE,
        "What the loss of pixel control, summed over cells, is multiplied with (Hessel et al. "
        "2018, who do not give it; Jaderberg et al. 2016 searched 0.01 to 0.1 in Labyrinth, "
        "0.0001 to 0.01 on Atari). 0 is none, as in IMPALA's paper.",
    )
    batch_size: int = field(
        32,
        BATCH_SIZE,
        "Unrolls of one update. The loss is summed over them and over time (Table C.1), so the "
        "learning rate suits this batch size, and `length`.",
    )
    learning_rate: float = field(6e-4, POSITIVE, "Of RMSProp, at first.")
    final_learning_rate: float = field(0.0, NOT_NEGATIVE, "What it falls to, linearly.")
    annealing_frames: int | None = field(
        200_000_000,
        or_none(COUNT),
        "New frames of all environments by which it has fallen; None leaves it as it is. The paper "
        "anneals from beginning to end of training: 200 million frames of each Atari game (Section "
        "5.3.2).",
    )
    frames_per_step: int = field(4, COUNT, "Frames of one step, which repeats its action.")
    rmsprop_decay: float = field(
        0.99, FRACTION, "Of the mean square; the code's, where it begins at 1 as it does here."
    )
    rmsprop_momentum: float = field(0.0, FRACTION, "Of the update.")
    rmsprop_epsilon: float = field(0.01, POSITIVE, "ε, inside the root.")
    max_gradient_norm: float | None = field(
        40.0, or_none(POSITIVE), "Global norm the gradient is clipped to; None does not clip."
    )
    policy_lag: int = field(
        0,
        whole(0, 1000),
        "Updates by which the parameters that are handed out are older than the learner's (Figure "
        "D.1); 0 hands out the newest.",
    )
    torso: str = field(
        "resnet",
        TORSO,
        "`shallow` or `resnet` (Figure 4), `strided` (Zahavy et al. 2020, Table 2: control from "
        "pixels), R2D2's `dqn`, `mlp` for small observations, or your own as "
        f"`{TORSO_EXAMPLE}`.",
    )
    hidden_sizes: tuple[int, ...] = field(
        (256,),
        LAYER_SIZES,
        "Units of the layers of the `mlp` torso, and of a vector's beside images.",
    )
    core: str = field(
        "lstm",
        CORE,
        "What carries memory: `lstm` (Figure 4), `gru`, `lru` or `mingru` (docs/cores.md), or your "
        f"own as `{CORE_EXAMPLE}`.",
    )
    lstm_size: int = field(
        0,
        OPTIONAL_LAYER_SIZE,
        "Units of the core, of whichever kind; 0 is a feed-forward network (Appendix F: on Atari).",
    )
    forget_bias: float = field(
        FORGET_BIAS,
        GATE_BIAS,
        "Of the forget gate of `lstm` and `mingru` at the start, where it keeps σ(this) of a state "
        "for a step.",
        stays="with which its core's gates began",
    )
    precision: Precision = field(
        "float32",
        None,
        "Of the arithmetic in the torso and of the core's products with its inputs; `bfloat16` is "
        "faster where the machine has it. All else is float32.",
    )

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        fields.check(self)
        if self.c_bar > self.rho_bar:
            raise ValueError(f"c_bar must be at most rho_bar ({self.rho_bar}), got {self.c_bar}.")
        _ = self.layout  # which refuses what does not fit
        if self.log_sigma_min > self.log_sigma_max:
            raise ValueError(
                f"log_sigma_min must be at most log_sigma_max ({self.log_sigma_max:g}), "
                f"got {self.log_sigma_min:g}."
            )
        if abs(self.batch_size * self.replay_fraction - self.num_replayed) > 1e-9:
            raise ValueError(
                f"replay_fraction must give a whole number of a batch of {self.batch_size}, "
                f"got {self.replay_fraction}."
            )
        if self.queue_size <= self.batch_size + 1:
            raise ValueError(
                f"queue_size must be more than a batch and one ({self.batch_size + 1}), or actors "
                f"and learner would wait for each other; got {self.queue_size}."
            )
        hidden_sizes = self.hidden_sizes if self.torso == "mlp" else ()
        check_layers(hidden_sizes, self.lstm_size, policy_lag=self.policy_lag, core=self.core)

    @property
    def layout(self) -> Layout:
        """How the actors' stream is cut into unrolls."""
        period = self.length if self.period is None else self.period
        return Layout(self.burn_in, self.length, period, self.frame_stack, crosses_episodes=True)

    @property
    def frames_per_update(self) -> int:
        """Frames that a batch is the first to hold: replay brings none, nor do overlaps."""
        new_unrolls = self.batch_size - self.num_replayed
        return new_unrolls * self.layout.period * self.frames_per_step

    @property
    def annealing_updates(self) -> float | None:
        """Updates by which the learning rate has fallen; None if it never does."""
        if self.annealing_frames is None:
            return None
        return self.annealing_frames / self.frames_per_update

    @property
    def num_replayed(self) -> int:
        """Unrolls of a batch that come from replay."""
        return round(self.batch_size * self.replay_fraction)


ATARI = Config()

# Tables C.1 and C.3 as on DMLab-30 and for its experts, with Figure 4's large network; Section
# 5.2's studies of single levels have `torso="shallow"` and `reward_transform="clip"`. Entropy cost,
# learning rate and ε lie in Table C.1's ranges, which the paper searched for every experiment: the
# values are the code's, as are its not clipping the gradient and a level's billion frames.
# PopArt and STAC have them too, and differ in what else they say.
OF_DMLAB: dict[str, Any] = dict(
    length=100,
    frame_stack=1,
    life_loss=False,
    reward_transform="asymmetric",
    entropy_cost=0.00025,
    learning_rate=0.00048,
    annealing_frames=1_000_000_000,
    rmsprop_epsilon=0.1,
    max_gradient_norm=None,
    lstm_size=256,
)
DMLAB = Config(**OF_DMLAB)

# Zahavy et al. 2020, Tables 2 and 3: their IMPALA for continuous control, without the heads'
# hidden layers. Rewards there are from 0 to 1, and nothing is said of clipping gradients.
OF_CONTROL: dict[str, Any] = dict(
    length=40,
    period=10,
    frame_stack=1,
    life_loss=False,
    reward_transform="none",
    batch_size=24,
    learning_rate=1e-3,
    final_learning_rate=1e-4,
    annealing_frames=30_000_000,
    frames_per_step=1,
    rmsprop_epsilon=0.1,
    max_gradient_norm=None,
    torso="mlp",
    hidden_sizes=(256, 256),
    lstm_size=256,
)
CONTROL = Config(**OF_CONTROL)
CONTROL_IMAGE = dataclasses.replace(CONTROL, torso="strided")
