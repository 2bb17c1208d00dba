"""A small config for the tests of R2D2, and items for its batches."""

from typing import Any

from r2d2.agent import Config

# For `random_batch` of a small config: three trained steps and a terminal; an episode's start; a
# single trained step; a whole item.
ITEMS: dict[str, Any] = {
    "num_real": [6, 6, 4, 9],
    "padding": [0, 3, 0, 0],
    "terminated": [True, False, True, False],
}


def small_config(**changes: Any) -> Config:
    """A config whose update takes milliseconds, for observations of OBSERVATION_SIZE floats."""
    values: dict[str, Any] = {
        "burn_in": 3,
        "length": 6,
        "period": 3,
        "frame_stack": 1,
        "n_step": 3,
        "discount": 0.9,
        "batch_size": 4,
        "learning_rate": 1e-2,
        "target_update_period": 3,
        "torso": "mlp",
        "hidden_sizes": (8,),
        "lstm_size": 6,
        "head_size": 7,
    }
    return Config(**{**values, **changes})
