"""Every hyperparameter of multi-task PopArt-IMPALA, with the paper's values as defaults."""

import dataclasses
from collections.abc import Mapping

from agents.impala.config import Config as ImpalaConfig
from agents.requirements import (
    FRACTION,
    POSITIVE,
    Requirement,
    check_fields,
    or_infinite,
    whole,
)
from agents.rewards import RewardTransform


@dataclasses.dataclass(frozen=True)
class Config(ImpalaConfig):
    """PopArt-IMPALA's hyperparameters, for Atari: Hessel et al. 2018, Tables 3 and 5 to 7.

    The fields that it shares with IMPALA are explained there. The paper tuned learning rate,
    entropy cost, RMSProp's ε and the gradient's norm by population-based training (Table 9): here
    they are IMPALA's.

    Attributes:
      reward_transform: the paper trains with clipped rewards and without. Here rewards are as they
        are, since scales that differ between tasks are what the normalisation is for; with `clip`
        the agent learns how often it is rewarded, not how much.
      annealing_steps: updates after which the learning rate has fallen linearly to 0: 200 million
        frames for each of 57 games (Figure 1), four to a step, in batches of 32 x 20 steps.
      num_tasks: K, the tasks of the suite; each has a value output and statistics.
      normalise: whether values are normalised. Without, it is MultiHead-IMPALA, the baseline that
        has a value output for each task ("Atari-57 results").
      statistics_decay: β, of the moving averages of targets; one update of them per unroll.
      scale_min: the least σ.
      scale_max: the greatest σ; inf sets none.
    """

    reward_transform: RewardTransform = "none"
    annealing_steps: int = 57 * 78_125
    num_tasks: int = 1
    normalise: bool = True
    statistics_decay: float = 3e-4
    scale_min: float = 1e-4
    scale_max: float = 1e6

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        super().__post_init__()
        check_fields(self, _REQUIREMENTS)
        if self.scale_min > self.scale_max:
            raise ValueError(
                f"scale_min must be at most scale_max ({self.scale_max}), got {self.scale_min}."
            )


_REQUIREMENTS: Mapping[str, Requirement] = {
    "num_tasks": whole(1, 1_000),
    "statistics_decay": FRACTION,
    "scale_min": POSITIVE,
    "scale_max": or_infinite(POSITIVE),
}

ATARI = Config()

# Tables 4, 6 and 7: the deep network with an LSTM, and ten billion frames, four to a step, in
# batches of 32 x 100 steps. What was tuned is as for IMPALA on DMLab. The 15 actions are the
# environment's (Table 2).
DMLAB = Config(
    length=100,
    frame_stack=1,
    life_loss=False,
    reward_transform="asymmetric",
    entropy_cost=0.00025,
    learning_rate=0.00048,
    annealing_steps=781_250,
    rmsprop_epsilon=0.1,
    max_gradient_norm=None,
    lstm_size=256,
)

MULTIHEAD_ATARI = dataclasses.replace(ATARI, normalise=False)
MULTIHEAD_DMLAB = dataclasses.replace(DMLAB, normalise=False)
