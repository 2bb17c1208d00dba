"""Every hyperparameter of STAC and STACX, with the paper's values as defaults."""

import dataclasses
from typing import Literal, get_args

from agents import fields
from agents.fields import field
from agents.impala.config import OF_CONTROL, OF_DMLAB, Correction
from agents.impala.config import Config as ImpalaConfig
from agents.requirements import (
    FRACTION,
    LAYER_SIZE,
    NOT_NEGATIVE,
    POSITIVE,
    Requirement,
    number,
    or_none,
    whole,
)

Metaparameter = Literal["gamma", "lambda", "g_v", "g_p", "g_e", "alpha"]
ALL: tuple[Metaparameter, ...] = get_args(Metaparameter)

# The coefficients of the losses, which the metaparameters scale, by the field that has each.
OUTER_COSTS = dict(g_v="baseline_cost", g_p="policy_gradient_cost", g_e="entropy_cost")
_BETA = number(0, 0.999999)  # of 1 nothing would be learned, and Adam would divide by 0


@dataclasses.dataclass(frozen=True)
class Config(ImpalaConfig):
    """STAC's hyperparameters, for Atari: Zahavy et al. 2020, Table 3, unless stated.

    The fields that it shares with IMPALA are explained there. Those of the loss are the outer
    loss's, ζ; the inner loss has them too where it is not self-tuned.
    """

    discount: float = field(0.995, FRACTION, "γ of the outer loss.")
    correction: Correction = field(
        "vtrace",
        Requirement("vtrace, which leaks here", lambda value: value == "vtrace"),
        "For off-policy data: leaky V-trace (Section 3.1).",
    )
    alpha: float = field(
        1.0, FRACTION, "α of the outer loss: 1 truncates importance weights, 0 leaves them."
    )
    policy_gradient_cost: float = field(
        1.0, NOT_NEGATIVE, "What the policy gradient's loss is multiplied with, g_p."
    )
    baseline_cost: float = field(
        0.5,
        NOT_NEGATIVE,
        "What the baseline loss, which has a half, is multiplied with: 2 g_v, for the paper's has "
        "none.",
    )
    pixel_control_cost: float = field(
        0.0,
        Requirement("0: no pixel control is self-tuned", lambda value: value == 0),
        "STACX's auxiliary losses are other heads of the same kind.",
    )
    rmsprop_epsilon: float = field(0.1, POSITIVE, "ε, inside the root.")
    max_gradient_norm: float | None = field(
        None, or_none(POSITIVE), "Global norm the gradient is clipped to; None does not clip."
    )
    self_tuned: tuple[Metaparameter, ...] = field(
        ALL,
        Requirement(
            f"none, or several of {', '.join(ALL)}, each once",
            lambda value: len(set(value)) == len(value),
        ),
        "The metaparameters η, with commas between them; what is not among them stands at its "
        "outer value (Figure 2b). With `none` it is IMPALA, or IMPALA with auxiliary heads.",
        stays="of which η is",
    )
    separate_alphas: bool = field(
        False,
        None,
        "Whether `alpha` is α_ρ and α_c, each tuned by itself, or one for both.",
        stays="of which η is",
    )
    num_heads: int = field(
        1, whole(1, 64), "P: the first acts, the others are auxiliary tasks (Section 3.2)."
    )
    head_hidden_sizes: tuple[int, ...] = field(
        (256,),
        Requirement(
            f"none, or up to 16 layers, each {LAYER_SIZE.text}",
            lambda value: len(value) <= 16 and all(map(LAYER_SIZE.holds, value)),
        ),
        "Units of the hidden layers of each head's policy and of its value, with commas between "
        "them. The paper's heads are `2-layered` with 256 units (Section 9.3), which is `256` or "
        "`256,256`; `none` is IMPALA's linear head.",
    )
    kl_cost: float = field(
        1.0, NOT_NEGATIVE, "What KL(new policy, old policy) is multiplied with in the outer loss."
    )
    meta_initial: float = field(
        4.6, number(-20, 20), "η at the beginning, before its sigmoid, which makes 0.99 of 4.6."
    )
    meta_learning_rate: float = field(1e-3, POSITIVE, "Of Adam, which learns η.")
    meta_beta1: float = field(0.9, _BETA, "Of Adam's mean.")
    meta_beta2: float = field(0.999, _BETA, "Of Adam's mean square.")
    meta_epsilon: float = field(1e-4, POSITIVE, "Of Adam, outside the root.")

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        super().__post_init__()
        fields.check(self)
        for name, cost in OUTER_COSTS.items():
            if name in self.self_tuned and not getattr(self, cost):
                raise ValueError(
                    f"{cost} must be more than 0 where {name}, which it is multiplied with, is "
                    f"self-tuned; got {getattr(self, cost)}."
                )


ATARI = Config()

# The paper does not play DeepMind Lab: IMPALA's values there are the outer loss's.
DMLAB = Config(**OF_DMLAB, discount=0.99)

# Tables 2 and 3: what IMPALA has from there too.
CONTROL = Config(**OF_CONTROL, discount=0.99)
CONTROL_IMAGE = dataclasses.replace(CONTROL, torso="strided")

NUM_HEADS = 3  # of STACX
STACX_ATARI = dataclasses.replace(ATARI, num_heads=NUM_HEADS)
STACX_DMLAB = dataclasses.replace(DMLAB, num_heads=NUM_HEADS)
STACX_CONTROL = dataclasses.replace(CONTROL, num_heads=NUM_HEADS)
STACX_CONTROL_IMAGE = dataclasses.replace(CONTROL_IMAGE, num_heads=NUM_HEADS)
