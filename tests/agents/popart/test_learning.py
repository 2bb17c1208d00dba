"""Two tasks whose rewards differ a thousandfold: the small ones count too."""

from agents.popart.agent import Config, make
from tests.training import train_suite

SUITE = "catch,catch:large_rewards"  # rewards of ±1, and of ±1,000
SEED = 7  # of 4 to 8, on which no rate was chosen, that of the median margin
MARGIN = 1.0  # of a mean return that lies between -1 and 1; those seeds have 1.31 to 1.74
NUM_ENVIRONMENTS = 32
VECTOR_STEPS = 3_000  # 96,000 steps of both tasks together, 300 updates


def _small_rewards(normalise: bool, seed: int) -> float:
    """The mean return in the task of ±1."""
    config = Config(
        num_tasks=2,
        normalise=normalise,
        length=10,
        frame_stack=1,
        torso="mlp",
        hidden_sizes=(64,),
        learning_rate=5e-3,
        rmsprop_epsilon=1e-3,
        annealing_frames=320_000,
        frames_per_step=1,
    )
    mean_returns = train_suite(
        make(config), SUITE, num_environments=NUM_ENVIRONMENTS, vector_steps=VECTOR_STEPS, seed=seed
    )
    return mean_returns[0]


def test_popart_learns_the_task_of_small_rewards_and_its_baseline_does_not() -> None:
    """PopArt exceeds multihead_impala by MARGIN."""
    assert _small_rewards(True, SEED) - _small_rewards(False, SEED) >= MARGIN
