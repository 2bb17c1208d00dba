"""Every hyperparameter of multi-task PopArt-IMPALA, with the paper's values as defaults."""

import dataclasses

from agents import fields
from agents.fields import field
from agents.impala.config import OF_DMLAB
from agents.impala.config import Config as ImpalaConfig
from agents.requirements import FRACTION, POSITIVE, RewardTransform, or_infinite, whole


@dataclasses.dataclass(frozen=True)
class Config(ImpalaConfig):
    """PopArt-IMPALA's hyperparameters, for Atari: Hessel et al. 2018, Tables 3 and 5 to 7.

    The fields that it shares with IMPALA are explained there. The paper tuned learning rate,
    entropy cost, RMSProp's ε and the gradient's norm by population-based training (Table 9): here
    they are IMPALA's.
    """

    reward_transform: RewardTransform = field(
        "none",
        None,
        "The paper trains with clipped rewards and without. Here rewards are as they are, since "
        "scales that differ between tasks are what the normalisation is for; with `clip` the "
        "agent learns how often it is rewarded, not how much.",
    )
    num_tasks: int = field(
        1, whole(1, 1_000), "K, the tasks of the suite; each has a value output and statistics."
    )
    normalise: bool = field(
        True,
        None,
        "Whether values are normalised. Without, it is MultiHead-IMPALA, the baseline that has a "
        'value output for each task ("Atari-57 results").',
    )
    statistics_decay: float = field(
        3e-4, FRACTION, "β, of the moving averages of targets; one update of them per unroll."
    )
    scale_min: float = field(1e-4, POSITIVE, "The least σ.")
    scale_max: float = field(1e6, or_infinite(POSITIVE), "The greatest σ; inf sets none.")

    def __post_init__(self) -> None:
        """Raises ValueError with a sentence about the first value that cannot be."""
        super().__post_init__()
        fields.check(self)
        if self.scale_min > self.scale_max:
            raise ValueError(
                f"scale_min must be at most scale_max ({self.scale_max}), got {self.scale_min}."
            )


ATARI = Config()

# Tables 4, 6 and 7: the deep network with an LSTM. What was tuned is as for IMPALA on DMLab, and so
# is a level's horizon. The 15 actions are the environment's (Table 2).
DMLAB = Config(**OF_DMLAB)

MULTIHEAD_ATARI = dataclasses.replace(ATARI, normalise=False)
MULTIHEAD_DMLAB = dataclasses.replace(DMLAB, normalise=False)
