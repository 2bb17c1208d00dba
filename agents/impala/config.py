"""Every hyperparameter of IMPALA, with the paper's values as defaults."""

import dataclasses
from collections.abc import Mapping

from agents.impala.vtrace import Correction
from agents.networks.layers import Precision
from agents.networks.torsos import TorsoKind
from agents.requirements import (
    BATCH_SIZE,
    BURN_IN,
    COUNT,
    FRACTION,
    FRAMES,
    ITEMS,
    LAYER_SIZES,
    LENGTH,
    NOT_NEGATIVE,
    OPTIONAL_LAYER_SIZE,
    POSITIVE,
    Requirement,
    check_fields,
    check_layers,
    one_of,
    or_infinite,
    or_none,
    whole,
)
from agents.rewards import RewardTransform
from replay.structures import Layout


@dataclasses.dataclass(frozen=True)
class Config:
    """IMPALA's hyperparameters, for Atari: Espeholt et al. 2018, Table F.1, unless stated.

    What neither the paper's tables nor its text give is taken from its authors' published code
    (google-deepmind/scalable_agent), called "the code" here.

    Attributes:
      burn_in: steps before an unroll that only warm up the recurrent state: none in the paper; for
        streams in which another agent's network acted.
      length: steps of an unroll, n; unrolls follow one another without overlap. Actors fetch
        parameters once per unroll (Section 3).
      frame_stack: frames of one network input.
      queue_size: unrolls that wait for the learner at most, more than a batch and one; the paper
        says nothing of it. Two batches keep the learner busy and the unrolls fresh.
      replay_fraction: of each batch that is drawn uniformly from replay; Section 5.2.2: 0 or 0.5.
      replay_size: unrolls in replay, the oldest leaves first (Table C.3).
      discount: γ.
      correction: for off-policy data (Section 5.2.2): `vtrace`, `one_step` importance sampling,
        `epsilon`-correction, or `none`.
      rho_bar: ρ̄, where the importance weights ρ are truncated (Section 5.2.2); inf does not.
      c_bar: c̄, where the traces c are truncated (Section 5.2.2); at most ρ̄ (Section 4.1).
      lambda_: λ, which multiplies the traces (Remark 2); the paper leaves it out.
      reward_transform: what happens to each reward first: `none`, `clip` to [-1, 1], or
        `asymmetric` (Figure C.1).
      life_loss: whether a lost life ends the episode, for the learner's returns and for the
        recurrent state; the environment goes on.
      baseline_cost: what the baseline loss is multiplied with.
      entropy_cost: what the entropy bonus is multiplied with.
      pixel_control_cost: what the loss of pixel control, summed over cells, is multiplied with
        (Hessel et al. 2018, who do not give it; Jaderberg et al. 2016 searched 0.01 to 0.1 in
        Labyrinth, 0.0001 to 0.01 on Atari). 0 is none, as in IMPALA's paper.
      batch_size: unrolls of one update. The loss is summed over them and over time (Table C.1), so
        the learning rate suits this batch size, and `length`.
      learning_rate: of RMSProp, at first.
      annealing_steps: updates after which the learning rate has fallen linearly to 0. The paper
        anneals from beginning to end of training: here 200 million frames, four to a step, in
        batches of 32 x 20 steps.
      rmsprop_decay: of the mean square; the code's, where it begins at 1 as it does here.
      rmsprop_momentum: of the update.
      rmsprop_epsilon: ε, inside the root.
      max_gradient_norm: global norm the gradient is clipped to; None does not clip.
      policy_lag: updates by which the parameters that are handed out are older than the learner's
        (Figure D.1); 0 hands out the newest.
      torso: `shallow` or `resnet` (Figure 4), R2D2's `dqn`, `mlp` for small observations.
      hidden_sizes: units of the layers of the `mlp` torso; no other torso reads them.
      lstm_size: units of the LSTM; 0 is a feed-forward network (Appendix F: on Atari).
      precision: of the arithmetic in the torso and of the LSTM's products with its inputs;
        `bfloat16` is faster where the machine has it. All else is float32.
    """

    burn_in: int = 0
    length: int = 20
    frame_stack: int = 4
    queue_size: int = 64
    replay_fraction: float = 0.0
    replay_size: int = 10_000
    discount: float = 0.99
    correction: Correction = "vtrace"
    rho_bar: float = 1.0
    c_bar: float = 1.0
    lambda_: float = 1.0
    reward_transform: RewardTransform = "clip"
    life_loss: bool = True
    baseline_cost: float = 0.5
    entropy_cost: float = 0.01
    pixel_control_cost: float = 0.0
    batch_size: int = 32
    learning_rate: float = 6e-4
    annealing_steps: int = 78_125
    rmsprop_decay: float = 0.99
    rmsprop_momentum: float = 0.0
    rmsprop_epsilon: float = 0.01
    max_gradient_norm: float | None = 40.0
    policy_lag: int = 0
    torso: TorsoKind = "resnet"
    hidden_sizes: tuple[int, ...] = (256,)
    lstm_size: int = 0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        check_fields(self, _REQUIREMENTS)
        if self.c_bar > self.rho_bar:
            raise ValueError(f"c_bar must be at most rho_bar ({self.rho_bar}), got {self.c_bar}.")
        if self.batch_size * self.replay_fraction % 1:
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
        check_layers(hidden_sizes, self.lstm_size, policy_lag=self.policy_lag)

    @property
    def layout(self) -> Layout:
        """How the actors' stream is cut into unrolls."""
        return Layout(
            self.burn_in, self.length, self.length, self.frame_stack, crosses_episodes=True
        )

    @property
    def num_replayed(self) -> int:
        """Unrolls of a batch that come from replay."""
        return int(self.batch_size * self.replay_fraction)


_REQUIREMENTS: Mapping[str, Requirement] = {
    "burn_in": BURN_IN,
    "length": LENGTH,
    "frame_stack": FRAMES,
    "queue_size": ITEMS,
    "replay_fraction": Requirement("at least 0 and less than 1", lambda value: 0 <= value < 1),
    "replay_size": ITEMS,
    "discount": FRACTION,
    "correction": one_of(Correction),
    "rho_bar": or_infinite(POSITIVE),
    "c_bar": or_infinite(POSITIVE),
    "lambda_": FRACTION,
    "reward_transform": one_of(RewardTransform),
    "baseline_cost": NOT_NEGATIVE,
    "entropy_cost": NOT_NEGATIVE,
    "pixel_control_cost": NOT_NEGATIVE,
    "batch_size": BATCH_SIZE,
    "learning_rate": POSITIVE,
    "annealing_steps": COUNT,
    "rmsprop_decay": FRACTION,
    "rmsprop_momentum": FRACTION,
    "rmsprop_epsilon": POSITIVE,
    "max_gradient_norm": or_none(POSITIVE),
    "policy_lag": whole(0, 1_000),  # as many copies of the parameters; the paper has up to 500
    "torso": one_of(TorsoKind),
    "hidden_sizes": LAYER_SIZES,
    "lstm_size": OPTIONAL_LAYER_SIZE,
    "precision": one_of(Precision),
}

ATARI = Config()

# Tables C.1 and C.3 as on DMLab-30 and for its experts, with Figure 4's large network; Section
# 5.2's studies of single levels have `torso="shallow"` and `reward_transform="clip"`. Entropy cost,
# learning rate and ε lie in Table C.1's ranges, which the paper searched for every experiment: the
# values are the code's, as is its not clipping the gradient. A billion frames, four to a step, in
# batches of 32 x 100 steps, are as many updates as on Atari.
DMLAB = Config(
    length=100,
    frame_stack=1,
    life_loss=False,
    reward_transform="asymmetric",
    entropy_cost=0.00025,
    learning_rate=0.00048,
    annealing_steps=78_125,
    rmsprop_epsilon=0.1,
    max_gradient_norm=None,
    lstm_size=256,
)
